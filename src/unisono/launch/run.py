"""Starts the ranks of a job as processes on this machine, shows their output, and leaves none of them behind.

Everything that happens is an event in one loop, which also runs while ranks are being started: a rank has written or
ended, a signal has arrived, a time has passed. A job is ended by a **shutdown sequence**: signals to all ranks, each
at its time. outcome.py determines the rank that caused a failure.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from selectors import EVENT_READ, DefaultSelector
from signal import SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGTSTP
from typing import IO, NamedTuple

from unisono.bootstrap.environment import environment_of_rank, trace_request
from unisono.bootstrap.fault_log import make_fault_log, read_fault_log
from unisono.bootstrap.private_directory import write_secret
from unisono.errors import UsageError
from unisono.launch import messages
from unisono.launch.limits import check_size
from unisono.launch.line_prefix import InterruptFilter, LineAssembler, with_prefix, write_all
from unisono.launch.mps import mps_variables
from unisono.launch.outcome import Ending, Outcome, outcome_of
from unisono.launch.signals import SignalReader
from unisono.launch.stdin_forwarding import TerminalInput, is_controlling_terminal
from unisono.launch.unix_process_group import UnixProcessGroup

STDIN, STDOUT, STDERR = 0, 1, 2
READ_BYTES = 1 << 16  # the capacity of a pipe
SAME_PRESS_S = 0.25  # two interrupts within this time count as one: `timeout`, for example, sends each signal twice

Prefix = Callable[[int, int], bytes]  # of the lines of a rank on standard output (1) or standard error (2)


@dataclass(frozen=True)
class GracePeriods:
    """The time that ranks have to end by themselves."""

    after_failure_s: float = 2.0  # after another rank has failed: to report it, which may take a second
    after_signal_s: float = 5.0  # after a signal, before they are killed
    after_end_s: float = 1.0  # after all ranks have ended: for processes that they started and left behind


GRACE_PERIODS = GracePeriods()


class TimedSignal(NamedTuple):
    """A signal to all ranks at a time."""

    at_s: float
    number: signal.Signals


def plain_prefix(rank: int, descriptor: int) -> bytes:
    """Return ``[2] `` for rank 2."""
    return b"[%d] " % rank


def no_prefix(rank: int, descriptor: int) -> bytes:
    """Return nothing: lines are shown whole, without their rank."""
    return b""


def launch(
    command: Sequence[str], size: int, *, prefix: Prefix = plain_prefix, bind: bool = False,
    trace: str | None = None, grace: GracePeriods = GRACE_PERIODS, oversubscribe: bool = False, mps: bool = False,
) -> Outcome:  # fmt: skip
    """Run a command on ``size`` ranks; return when all of them, and all processes that they started, have ended.

    Rank 0 has the standard input of the launcher. With ``bind``, rank r is pinned to core r modulo the number of
    cores. ``trace`` is the folder to which every rank writes a trace of its communicators. ``oversubscribe`` lifts
    the limit on the number of ranks. With ``mps``, the ranks share GPUs through a private MPS daemon.
    """
    check_size(size, oversubscribe=oversubscribe, override="--oversubscribe")
    with (
        SignalReader((SIGINT, SIGTERM, SIGHUP, SIGTSTP)) as signals,
        job_directory() as directory,
        mps_variables(wanted=mps) as gpu_variables,  # it quits when all ranks have ended
        UnixProcessGroup(directory) as group,
        contextlib.closing(Job(range(size), group, signals, grace)) as job,
    ):
        request = None
        if trace is not None:
            request = trace_request(time.monotonic_ns(), os.path.basename(directory), trace)
        job.start(
            command, lambda rank: environment_of_rank(rank, size, directory, trace=request) | gpu_variables, prefix,
            bind,
        )  # fmt: skip
        job.wait()
        return outcome_of(job.endings, read_fault_log(directory), job.ended_by)


@contextlib.contextmanager
def job_directory() -> Iterator[str]:
    """Make the private directory of a job, with the secret by which its ranks recognize each other."""
    path = tempfile.mkdtemp(prefix="unisono-")
    try:
        prepare_directory(path)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def prepare_directory(path: str) -> None:
    """Write the files that the ranks of a job expect in its directory."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        write_secret(directory, secrets.token_hex(32))
    finally:
        os.close(directory)
    make_fault_log(path)


class Stream:
    """The standard output or standard error of one rank, on its way to that of the launcher."""

    def __init__(self, pipe: IO[bytes], descriptor: int, rank: int, prefix: Prefix) -> None:
        self.pipe = pipe  # the object, since the pipe is closed when it is collected
        self.descriptor = descriptor
        self.rank = rank
        self.make_prefix = prefix
        self.prefix: bytes | None = None
        self.lines = LineAssembler()
        self.filter: InterruptFilter | None = None

    def interrupted(self) -> None:
        """Hide the traceback of the KeyboardInterrupt that follows."""
        if self.descriptor == STDERR and self.filter is None:
            self.filter = InterruptFilter()

    def forward(self) -> bool:
        """Show the lines that are complete; return whether more can come."""
        data = os.read(self.pipe.fileno(), READ_BYTES)
        self._show(self.lines.take(data) if data else self.lines.rest())
        if not data:
            self._show_held()
        return bool(data)

    def give_up(self) -> None:
        """Show all that has arrived, including a line that may never end."""
        os.set_blocking(self.pipe.fileno(), False)
        with contextlib.suppress(BlockingIOError):
            self.forward()
        self._show(self.lines.rest())
        self._show_held()

    def _show(self, lines: bytes) -> None:
        self._write(lines if self.filter is None else self.filter.take(lines))

    def _show_held(self) -> None:
        if self.filter is not None:
            self._write(self.filter.rest())

    def _write(self, lines: bytes) -> None:
        if not lines:
            return
        if self.prefix is None:  # made late: the first prefix in colour imports much, while ranks are starting
            self.prefix = self.make_prefix(self.rank, self.descriptor)
        write_all(self.descriptor, with_prefix(self.prefix, lines))


class Job:
    """The ranks that are running on this host, and the signals to send them."""

    def __init__(
        self, ranks: Sequence[int], group: UnixProcessGroup, signals: SignalReader, grace: GracePeriods, *,
        reads_stdin: bool = True,
    ) -> None:  # fmt: skip
        self.ranks = ranks
        self.group = group
        self.signals = signals
        self.grace = grace
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.streams: list[Stream] = []  # those still open
        self.endings: list[Ending] = []  # in the order in which the ranks ended
        self.ended_by: signal.Signals | None = None  # a signal to the launcher, before any rank failed
        self.ending = False  # the ranks were told to end
        self.shutdown: list[TimedSignal] = []
        self.interrupted_s: float | None = None
        self.selector = DefaultSelector()
        self.reads_stdin = reads_stdin  # rank 0 reads the standard input of the launcher
        has_terminal = reads_stdin and is_controlling_terminal(STDIN)
        self.terminal_input = TerminalInput(STDIN, self.selector) if has_terminal else None

    def start(
        self, command: Sequence[str], environment: Callable[[int], dict[str, str]], prefix: Prefix, bind: bool
    ) -> None:
        """Start the ranks, one after the other; stop starting when a signal arrives or a rank fails."""
        self.selector.register(self.signals, EVENT_READ, self._on_signal)
        cores = os.sched_getaffinity(0)
        try:
            for index, rank in enumerate(self.ranks):
                if bind:  # a process inherits the cores of its parent, so it never runs on any other
                    os.sched_setaffinity(0, {sorted(cores)[index % len(cores)]})
                self.start_rank(rank, command, environment(rank), prefix)
                self._handle_events(0)
                if self.shutdown:
                    break
        finally:
            if bind:
                os.sched_setaffinity(0, cores)

    def start_rank(self, rank: int, command: Sequence[str], environment: dict[str, str], prefix: Prefix) -> None:
        """Start a rank, and watch it."""
        stdin = self.terminal_input.read_end if self.terminal_input else None  # None: rank 0 inherits it
        if rank != 0 or not self.reads_stdin:
            stdin = subprocess.DEVNULL
        try:
            process = subprocess.Popen(
                command, stdin=stdin, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, bufsize=0, env=environment, process_group=self.group.id,
            )  # fmt: skip
            self.running[rank] = process
            pidfd = os.pidfd_open(process.pid)
        except OSError as error:
            hints = {errno.EMFILE: messages.RAISE_OPEN_FILES, errno.EAGAIN: messages.RAISE_PROCESSES}
            hint = hints.get(error.errno or 0, messages.NO_HINT)()
            raise UsageError(
                messages.CANNOT_START(rank=rank, program=command[0], reason=error.strerror, hint=hint)
            ) from error
        if self.terminal_input and rank == 0:
            self.terminal_input.handed_over()
        self.selector.register(pidfd, EVENT_READ, lambda: self._on_end(rank, pidfd))
        for pipe, descriptor in ((process.stdout, STDOUT), (process.stderr, STDERR)):
            assert pipe is not None  # both are pipes, see above
            self._watch(Stream(pipe, descriptor, rank, prefix))

    def _watch(self, stream: Stream) -> None:
        self.streams.append(stream)
        self.selector.register(stream.pipe, EVENT_READ, lambda: self._on_output(stream))

    def wait(self) -> None:
        """Wait for all ranks, and then for the last output of the processes that they have started."""
        while self.running:
            self._wait_for_events()
        # A stream that stays open after SIGKILL belongs to a process that has left the group on purpose.
        self.shutdown = self._shutdown_sequence(SIGTERM, SIGKILL, SIGKILL, every_s=self.grace.after_end_s)
        while self.streams and self.shutdown:
            self._wait_for_events()
        for stream in self.streams:
            stream.give_up()

    def _wait_for_events(self) -> None:
        waits_s = [max(0.0, self.shutdown[0].at_s - time.monotonic())] if self.shutdown else []
        if self.terminal_input:
            waits_s += self.terminal_input.watch()
        self._handle_events(min([*waits_s, *self.waits_s()], default=None))
        self.on_time()
        while self.shutdown and self.shutdown[0].at_s <= time.monotonic():
            self.ending = True
            self._send(self.shutdown.pop(0).number)

    def waits_s(self) -> list[float]:
        """Return further times until ``on_time`` is to be called."""
        return []

    def on_time(self) -> None:
        """Do what is due."""

    def _handle_events(self, longest_s: float | None) -> None:
        """Wait for events, at most this long (None: without a limit), and handle them."""
        # epoll keeps the order of events, so the first rank that has ended comes first.
        for key, _ in self.selector.select(longest_s):
            key.data()

    def _send(self, number: signal.Signals) -> None:
        """Send a signal to all ranks and their children, including ranks that have left the group."""
        self.group.send(number)
        for process in self.running.values():
            with contextlib.suppress(ProcessLookupError):
                group = os.getpgid(process.pid)
                if group == process.pid:
                    os.killpg(group, number)
                elif group != self.group.id:
                    os.kill(process.pid, number)

    def _shutdown_sequence(self, *numbers: signal.Signals, every_s: float) -> list[TimedSignal]:
        now_s = time.monotonic()
        return [TimedSignal(now_s + every_s * count, number) for count, number in enumerate(numbers, 1)]

    def _on_output(self, stream: Stream) -> bool:
        """Show what has arrived; return whether more can come."""
        if stream not in self.streams:  # an earlier event of the same batch has ended it
            return False
        if stream.forward():
            return True
        self.selector.unregister(stream.pipe)
        self.streams.remove(stream)
        stream.pipe.close()
        return False

    def _on_end(self, rank: int, pidfd: int) -> None:
        self.selector.unregister(pidfd)
        os.close(pidfd)
        self.rank_ended(rank, self.running.pop(rank).wait())

    def rank_ended(self, rank: int, returncode: int) -> None:
        """Note the end of a rank; after a failure, the others have a moment to report it."""
        self.endings.append(Ending(rank, returncode, self.ending))
        if returncode and not self.shutdown and not self.ending:
            ends_s = time.monotonic() + self.grace.after_failure_s
            self.shutdown = [TimedSignal(ends_s, SIGTERM), TimedSignal(ends_s + self.grace.after_signal_s, SIGKILL)]

    def _on_signal(self) -> None:
        for number in self.signals.read():
            self.handle_signal(number)

    def handle_signal(self, number: signal.Signals) -> None:
        """Do what a signal to the launcher asks for."""
        now_s = time.monotonic()
        if number == SIGTSTP:
            self._send(SIGTSTP)
            self.signals.stop_process()
            self._send(SIGCONT)
        elif number == SIGINT and self.interrupted_s is not None:
            if now_s > self.interrupted_s + SAME_PRESS_S:
                self.shutdown = [TimedSignal(now_s, SIGKILL)]
        else:
            if number == SIGINT:
                self.interrupted_s = now_s
                for stream in self.streams:
                    stream.interrupted()
            if not any(ending.returncode for ending in self.endings):
                self.ended_by = self.ended_by or number
            self.ending = True
            self._send(number)
            kill = TimedSignal(now_s + self.grace.after_signal_s, SIGKILL)
            self.shutdown = [min([kill, *self.shutdown[-1:]])]  # an earlier sequence may kill sooner

    def close(self) -> None:
        """Kill the ranks that are still running, and close everything."""
        self._send(SIGKILL)
        for process in self.running.values():
            process.wait()
        for stream in self.streams:
            stream.pipe.close()
        if self.terminal_input:
            self.terminal_input.close()
        self.selector.close()
