"""Starts the ranks of a job on several hosts: one agent on each host, through ssh.

The agents start the ranks (agent.py); this launcher shows their output, forwards signals, and ends all of them when a
rank, an agent or a host fails.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from selectors import EVENT_READ
from signal import SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGTSTP

from unisono.bootstrap.fault_log import FaultRecord
from unisono.bootstrap.network_options import DEFAULT_PORTS, join_port
from unisono.bootstrap.tls import Tls
from unisono.errors import UsageError
from unisono.launch import messages
from unisono.launch.agent import REPORT, Task, command_line
from unisono.launch.host_list import Host
from unisono.launch.outcome import Ending, Outcome, outcome_of
from unisono.launch.run import (
    GRACE_PERIODS,
    STDERR,
    STDOUT,
    GracePeriods,
    Job,
    Prefix,
    Stream,
    job_directory,
    no_prefix,
)
from unisono.launch.signals import SignalReader
from unisono.launch.trace_files import TRACE, FileReceiver
from unisono.launch.unix_process_group import UnixProcessGroup
from unisono.message import Message

# The launcher notices after 15 s that a host is gone, even if no rank fails because of it.
SSH = "ssh -o BatchMode=yes -o ServerAliveInterval=5 -o ServerAliveCountMax=3"


@dataclass(frozen=True)
class HostsOptions:
    """How a job on several hosts is started."""

    ssh: str = SSH
    rendezvous: str | None = None  # HOST:PORT; by default the first host, and a port chosen at random
    prefix: bool = True
    bind: bool = False
    oversubscribe: bool = False
    transport: str | None = None  # that carries the data; by default, the program decides
    trace: str | None = None  # the folder to which the agents' traces are written
    tls: Tls | None = None  # paths on every host


@dataclass(frozen=True)
class HostsOutcome:
    """The outcome of a job on several hosts."""

    job: Outcome
    lost: list[tuple[str, int]]  # hosts whose agent ended without a report, and its return code
    trace_problems: list[Message] = field(default_factory=list)  # files of traces that did not arrive

    @property
    def code(self) -> int:
        """The exit code of the job."""
        return self.job.code or (1 if self.lost else 0)


def launch_on_hosts(
    command: Sequence[str], hosts: Sequence[Host], python: str, options: HostsOptions,
    grace: GracePeriods = GRACE_PERIODS,
) -> HostsOutcome:  # fmt: skip
    """Run a command on the ranks of several hosts; return when all agents have ended."""
    rendezvous = options.rendezvous or join_port(hosts[0].address, secrets.choice(DEFAULT_PORTS))
    token = secrets.token_hex(32)
    run = "" if options.trace is None else f"hosts-{secrets.token_hex(4)}"
    tasks = [
        Task(
            host.address, (host.ranks.start, host.ranks.stop), hosts[-1].ranks.stop, list(command), os.getcwd(),
            rendezvous, token, options.prefix, options.bind, options.oversubscribe, options.transport or "", run,
            options.tls.paths if options.tls else None,
        )
        for host in hosts
    ]  # fmt: skip
    remote = shlex.join(command_line(python))
    with (
        SignalReader((SIGINT, SIGTERM, SIGHUP, SIGTSTP)) as signals,
        job_directory() as directory,
        UnixProcessGroup(directory) as group,
        contextlib.closing(_Agents(hosts, tasks, group, signals, grace, options.trace)) as job,
    ):
        job.start([*shlex.split(options.ssh), remote], lambda _: dict(os.environ), no_prefix, bind=False)
        job.wait()
    lost = job.lost_hosts if job.ended_by is None else []
    if lost and all(ending.was_signalled or not ending.returncode for ending in job.rank_endings):
        return HostsOutcome(Outcome(), lost, job.trace_problems)  # no rank failed by itself
    return HostsOutcome(outcome_of(job.rank_endings, job.faults, job.ended_by), lost, job.trace_problems)


class _Agents(Job):
    """The agents of a job, one process each; in the terms of Job, an agent is a rank."""

    def __init__(
        self, hosts: Sequence[Host], tasks: Sequence[Task], group: UnixProcessGroup, signals: SignalReader,
        grace: GracePeriods, trace: str | None,
    ) -> None:  # fmt: skip
        # An agent ends its ranks after the same grace periods, so it needs more time itself.
        longer = GracePeriods(grace.after_failure_s + 1, grace.after_signal_s + 2, grace.after_end_s)
        super().__init__(range(len(hosts)), group, signals, longer, reads_stdin=False)
        self.hosts, self.tasks = hosts, tasks
        self.rank_endings: list[Ending] = []
        self.faults: list[FaultRecord] = []
        self.reported: set[int] = set()
        self.lost_hosts: list[tuple[str, int]] = []
        self.receivers = [] if trace is None else [FileReceiver(Path(trace), host.ranks) for host in hosts]
        self.trace_problems: list[Message] = []

    def start_rank(self, rank: int, command: Sequence[str], environment: dict[str, str], prefix: Prefix) -> None:
        """Start the agent of a host, and watch it."""
        host = self.hosts[rank]
        *ssh, remote = command
        try:
            process = subprocess.Popen(
                [*ssh, host.name, remote], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                bufsize=0, env=environment, process_group=self.group.id,
            )  # fmt: skip
        except OSError as error:
            raise UsageError(
                messages.CANNOT_START_AGENT(host=host.name, program=ssh[0], reason=error.strerror)
            ) from error
        self.running[rank] = process
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its end is reported
            process.stdin.write(self.tasks[rank].as_line())
        pidfd = os.pidfd_open(process.pid)
        self.selector.register(pidfd, EVENT_READ, lambda: self._on_end(rank, pidfd))
        for pipe, descriptor in ((process.stdout, STDOUT), (process.stderr, STDERR)):
            assert pipe is not None  # both are pipes, see above
            self._watch(_AgentStream(pipe, descriptor, rank, prefix, self._on_report, self._on_trace))

    def _on_report(self, agent: int, report: bytes) -> None:
        try:
            found = json.loads(report)
            endings = [Ending(*ending) for ending in found["endings"]]
            faults = [FaultRecord(*fault) for fault in found["faults"]]
        except (ValueError, KeyError, TypeError, RecursionError):  # the connection has ended in the middle of it
            return
        self.reported.add(agent)
        self.rank_endings += endings
        self.faults += faults

    def _on_trace(self, agent: int, line: bytes) -> None:
        if self.receivers and (problem := self.receivers[agent].take(line)) is not None:
            self.trace_problems.append(messages.TRACE_NOT_RECEIVED(host=self.hosts[agent].name, reason=problem))

    def _on_end(self, rank: int, pidfd: int) -> None:
        process = self.running[rank]
        was_ending = self.ending
        super()._on_end(rank, pidfd)
        assert process.stdin is not None
        process.stdin.close()
        for stream in [stream for stream in self.streams if stream.rank == rank and stream.descriptor == STDOUT]:
            os.set_blocking(stream.pipe.fileno(), False)
            with contextlib.suppress(BlockingIOError):  # ssh may have left a process that has the pipe open
                while self._on_output(stream):  # its report
                    pass
        if rank not in self.reported and not was_ending:
            self.lost_hosts.append((self.hosts[rank].name, process.returncode))

    def close(self) -> None:
        """Kill the agents that are still running, and close everything."""
        super().close()
        for receiver in self.receivers:
            receiver.close()

    def _send(self, number: signal.Signals) -> None:
        """Send a signal to the ranks of all hosts; SIGKILL ends the agents, which end their ranks."""
        for process in self.running.values():
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                if number == SIGKILL:
                    process.stdin.close()
                    process.kill()
                else:
                    process.stdin.write(number.name.encode() + b"\n")


class _AgentStream(Stream):
    """The output of an agent: that of its ranks, their traces, and its report."""

    def __init__(
        self, pipe: object, descriptor: int, rank: int, prefix: Prefix, on_report: Callable[[int, bytes], None],
        on_trace: Callable[[int, bytes], None],
    ) -> None:  # fmt: skip
        super().__init__(pipe, descriptor, rank, prefix)  # type: ignore[arg-type]
        self.on_report, self.on_trace = on_report, on_trace

    def _write(self, lines: bytes) -> None:
        if REPORT in lines or TRACE in lines:
            kept = []
            for line in lines.splitlines(keepends=True):
                if line.startswith(REPORT):
                    self.on_report(self.rank, line.removeprefix(REPORT))
                elif line.startswith(TRACE):
                    self.on_trace(self.rank, line.removeprefix(TRACE))
                else:
                    kept.append(line)
            lines = b"".join(kept)
        super()._write(lines)
