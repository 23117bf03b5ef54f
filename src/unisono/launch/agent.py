"""The agent of a job on several hosts: it starts the ranks of its host, as ``unisono run`` does on one host.

``unisono run --hosts`` starts one agent on each host through ssh. The agent reads its **task** from the first line of
its standard input, so that the token of the job appears in no list of processes. Further lines are names of signals
for the ranks. When the standard input ends, the launcher or the connection to it has ended, and the agent ends its
ranks. The output of the ranks is the output of the agent; its last line, which begins with ``REPORT``, tells the
launcher how each rank ended. If the job is traced, lines with the traces of the ranks precede it (trace_files.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from dataclasses import asdict, dataclass
from selectors import EVENT_READ
from signal import SIGHUP, SIGINT, SIGTERM, SIGTSTP
from typing import Any

from unisono.bootstrap.environment import JobNetwork, environment_of_rank, trace_request
from unisono.bootstrap.fault_log import read_fault_log
from unisono.bootstrap.tls import Tls
from unisono.errors import UsageError
from unisono.launch import messages
from unisono.launch.limits import check_size
from unisono.launch.line_prefix import write_all
from unisono.launch.outcome import outcome_of
from unisono.launch.run import GRACE_PERIODS, STDIN, STDOUT, Job, job_directory
from unisono.launch.signals import SignalReader
from unisono.launch.trace_files import send_files
from unisono.launch.unix_process_group import UnixProcessGroup

REPORT = b"\x1funisono "
LONGEST_TASK = 1 << 20
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGTSTP", "SIGCONT")


@dataclass(frozen=True)
class Task:
    """The ranks that an agent starts, and how."""

    host: str
    ranks: tuple[int, int]  # the first rank, and the one after the last
    size: int  # of the job
    command: list[str]
    directory: str  # in which the command runs
    rendezvous: str  # HOST:PORT of rank 0
    token: str
    prefix: bool
    bind: bool
    oversubscribe: bool
    transport: str = ""  # that carries the data of the ranks; empty: they decide
    trace: str = ""  # the name of the run, if it is traced
    tls: tuple[str, str, str] | None = None  # the certificate, the key and the authority

    def as_line(self) -> bytes:
        """Return the line that an agent reads."""
        return json.dumps(asdict(self)).encode() + b"\n"


def task_from(line: bytes) -> Task:
    """Return the task in a line."""
    try:
        task = Task(**json.loads(line))
        first, end = task.ranks
        if not 0 <= first < end <= task.size or not all(isinstance(word, str) for word in task.command):
            raise ValueError
        if task.tls is not None and [type(path) for path in task.tls] != [str, str, str]:
            raise ValueError
    except (ValueError, TypeError) as error:
        raise UsageError(messages.BAD_TASK()) from error
    return task


class _Control:
    """The standard input of the agent, after the task: names of signals, and the end of the job."""

    def __init__(self, job: Job, received: bytes) -> None:
        self.job = job
        self.received = received
        os.set_blocking(STDIN, False)
        job.selector.register(STDIN, EVENT_READ, self.read)

    def read(self) -> None:
        """Handle the signals that have arrived."""
        try:
            data = os.read(STDIN, 4096)
        except BlockingIOError:
            return
        *lines, self.received = (self.received + data).split(b"\n")
        for line in lines:
            if line.decode(errors="replace") in SIGNALS:
                self.job.handle_signal(signal.Signals[line.decode()])
        if not data:
            self.job.selector.unregister(STDIN)
            self.job.handle_signal(SIGTERM)


def serve() -> int:
    """Run the task that the standard input names; return the exit code."""
    task, received = _read_task()
    first, end = task.ranks
    check_size(end - first, oversubscribe=task.oversubscribe, override="--oversubscribe")
    try:
        os.chdir(task.directory)
    except OSError as error:
        raise UsageError(messages.NO_DIRECTORY(host=task.host, path=task.directory, reason=error.strerror)) from error
    tls = Tls(*map(os.path.abspath, task.tls)) if task.tls else None
    network = JobNetwork(address=task.rendezvous, token=task.token, transport=task.transport, tls=tls)
    began_ns = time.monotonic_ns()

    def prefix(rank: int, descriptor: int) -> bytes:
        return f"[{rank} {task.host}] ".encode() if task.prefix else b""

    with (
        SignalReader((SIGINT, SIGTERM, SIGHUP, SIGTSTP)) as signals,
        job_directory() as directory,
        UnixProcessGroup(directory) as group,
        contextlib.closing(Job(range(first, end), group, signals, GRACE_PERIODS, reads_stdin=False)) as job,
    ):
        traces = os.path.join(directory, "trace")
        request = trace_request(began_ns, task.trace, traces) if task.trace else None

        def environment(rank: int) -> dict[str, str]:
            local = (rank - first, end - first)
            return environment_of_rank(rank, task.size, directory, trace=request, local=local, network=network)

        _Control(job, received)
        job.start(task.command, environment, prefix, task.bind)
        job.wait()
        faults = read_fault_log(directory)
        if task.trace:
            send_files(traces, task.ranks, lambda line: write_all(STDOUT, line))
    report: dict[str, Any] = {"endings": job.endings, "faults": faults}
    write_all(STDOUT, REPORT + json.dumps(report).encode() + b"\n")
    return outcome_of(job.endings, faults, job.ended_by).code


def _read_task() -> tuple[Task, bytes]:
    """Return the task, and what has arrived behind it."""
    received = b""
    while b"\n" not in received:
        data = os.read(STDIN, 1 << 16)
        received += data
        if not data or len(received) > LONGEST_TASK:
            raise UsageError(messages.BAD_TASK())
    line, _, rest = received.partition(b"\n")
    return task_from(line), rest


def command_line(python: str) -> list[str]:
    """Return the command that starts an agent."""
    return [python, "-m", "unisono", "agent"]
