"""Start the ranks of a job as processes of this machine, show what they write, and leave none behind.

All that happens is an event of one loop: a rank has written or ended, a signal has come, a time has passed. How a job
is ended is a **plan**: signals to all ranks, each with its time. outcome.py says
which rank a job failed because of.
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

from unisono.bootstrap.environment import environment_of_rank
from unisono.bootstrap.fault_log import make_fault_log, read_fault_log
from unisono.bootstrap.private_directory import write_secret
from unisono.errors import UsageError
from unisono.launch.line_prefix import LineAssembler, write_whole
from unisono.launch.outcome import Ending, Outcome, outcome_of
from unisono.launch.signals import SignalReader
from unisono.launch.stdin_forwarding import TerminalInput, is_controlling_terminal
from unisono.launch.unix_process_group import UnixProcessGroup

STDIN, STDOUT, STDERR = 0, 1, 2
READ_BYTES = 1 << 16  # what a pipe holds
SAME_PRESS_S = 0.25  # two interrupts within this are one: `timeout` for one sends each signal twice
MOST_RANKS = 1024  # of one machine: each is a process with three descriptors here; more is a slip of the keyboard

Prefix = Callable[[int, int], bytes]  # of a rank's lines on standard output (1) or standard error (2)


@dataclass(frozen=True)
class GracePeriods:
    """How long ranks are left to themselves before they are ended."""

    after_failure_s: float = 2.0  # of another rank: to say what became of it, for which they may need a second
    after_signal_s: float = 5.0  # to end by themselves before they are killed
    after_end_s: float = 1.0  # of all ranks: for what they have started and left behind


GRACE_PERIODS = GracePeriods()


class TimedSignal(NamedTuple):
    """A signal to all ranks at a time."""

    at_s: float
    number: signal.Signals


def plain_prefix(rank: int, descriptor: int) -> bytes:
    """Return ``[2] `` for rank 2."""
    return b"[%d] " % rank


def no_prefix(rank: int, descriptor: int) -> bytes:
    """Return nothing: lines are whole, and nobody knows whose."""
    return b""


def launch(
    command: Sequence[str], size: int, *, prefix: Prefix = plain_prefix, bind: bool = False,
    trace: str | None = None, grace: GracePeriods = GRACE_PERIODS,
) -> Outcome:  # fmt: skip
    """Run a command on ``size`` ranks; return when all of them and all that they have started are gone.

    Rank 0 has our standard input. With ``bind``, rank r is pinned to core r modulo the number of cores. ``trace`` is
    the folder that every rank writes to what it did on every communicator, and when.
    """
    if not 1 <= size <= MOST_RANKS:
        raise UsageError(f"{size} ranks; expected 1 to {MOST_RANKS}: every rank is a process of this machine")
    with (
        SignalReader((SIGINT, SIGTERM, SIGHUP, SIGTSTP)) as signals,
        _directory() as directory,
        UnixProcessGroup(directory) as group,
        contextlib.closing(_Job(size, group, signals, grace)) as job,
    ):
        job.start(command, directory, prefix, bind, None if trace is None else f"{time.monotonic_ns()}:{trace}")
        job.wait()
        return outcome_of(job.endings, read_fault_log(directory), job.ended_by)


@contextlib.contextmanager
def _directory() -> Iterator[str]:
    """A directory for the ranks to meet in, closed to others, with a secret by which they know each other."""
    path = tempfile.mkdtemp(prefix="unisono-")
    try:
        prepare_directory(path)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def prepare_directory(path: str) -> None:
    """Write what the ranks of a job expect in its directory."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        write_secret(directory, secrets.token_hex(32))
    finally:
        os.close(directory)
    make_fault_log(path)


class _Stream:
    """What one rank writes to its standard output or standard error, on its way to ours."""

    def __init__(self, pipe: IO[bytes], descriptor: int, rank: int, prefix: Prefix) -> None:
        self.pipe = pipe  # the object, as it closes the pipe when nobody refers to it
        self.descriptor = descriptor
        self.rank = rank
        self.prefix = prefix
        self.lines: LineAssembler | None = None

    def pass_on(self) -> bool:
        """Write the lines that have become whole; return whether more can come."""
        if self.lines is None:  # not before: for a prefix in colour there is much to import, while the ranks start
            self.lines = LineAssembler(self.prefix(self.rank, self.descriptor))
        data = os.read(self.pipe.fileno(), READ_BYTES)
        write_whole(self.descriptor, self.lines.take(data) if data else self.lines.rest())
        return bool(data)

    def give_up(self) -> None:
        """Write what there is, also of a line that may never end."""
        os.set_blocking(self.pipe.fileno(), False)
        with contextlib.suppress(BlockingIOError):
            self.pass_on()
        if self.lines is not None:
            write_whole(self.descriptor, self.lines.rest())


class _Job:
    """The ranks that run, and what is to be done when."""

    def __init__(self, size: int, group: UnixProcessGroup, signals: SignalReader, grace: GracePeriods) -> None:
        self.size = size
        self.group = group
        self.signals = signals
        self.grace = grace
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.streams: list[_Stream] = []  # that are still open
        self.endings: list[Ending] = []  # in the order in which they happened
        self.ended_by: signal.Signals | None = None  # a signal to us, before any rank failed
        self.ending = False  # we have told the ranks to end
        self.shutdown: list[TimedSignal] = []
        self.interrupted_s: float | None = None
        self.selector = DefaultSelector()
        self.terminal_input = TerminalInput(STDIN, self.selector) if is_controlling_terminal(STDIN) else None

    def start(self, command: Sequence[str], directory: str, prefix: Prefix, bind: bool, trace: str | None) -> None:
        """Start the ranks, unless a signal comes or a rank fails before all of them run."""
        self.selector.register(self.signals, EVENT_READ, self._on_signal)
        cores = os.sched_getaffinity(0)
        try:
            for rank in range(self.size):
                if bind:  # a process may run where the one that starts it may: so it is never anywhere else
                    os.sched_setaffinity(0, {sorted(cores)[rank % len(cores)]})
                self._start_rank(rank, command, environment_of_rank(rank, self.size, directory, trace=trace), prefix)
                self._handle_events(0)
                if self.shutdown:
                    break
        finally:
            if bind:
                os.sched_setaffinity(0, cores)

    def _start_rank(self, rank: int, command: Sequence[str], environment: dict[str, str], prefix: Prefix) -> None:
        typed = self.terminal_input.for_rank_0 if self.terminal_input else None  # None: it inherits ours
        try:
            process = subprocess.Popen(
                command, stdin=typed if rank == 0 else subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, bufsize=0, env=environment, process_group=self.group.id,
            )  # fmt: skip
            self.running[rank] = process
            pidfd = os.pidfd_open(process.pid)
        except OSError as error:
            advice = "; raise the limit on open files (ulimit -n)" if error.errno == errno.EMFILE else ""
            raise UsageError(f"rank {rank}: {command[0]!r} cannot be run: {error.strerror}{advice}") from error
        if self.terminal_input and rank == 0:
            self.terminal_input.handed_over()
        self.selector.register(pidfd, EVENT_READ, lambda: self._on_end(rank, pidfd))
        for pipe, descriptor in ((process.stdout, STDOUT), (process.stderr, STDERR)):
            assert pipe is not None  # as asked for above
            self._watch(_Stream(pipe, descriptor, rank, prefix))

    def _watch(self, stream: _Stream) -> None:
        self.streams.append(stream)
        self.selector.register(stream.pipe, EVENT_READ, lambda: self._on_output(stream))

    def wait(self) -> None:
        """Wait for all ranks, and then for the last of what they and those that they started have to say."""
        while self.running:
            self._wait_for_events()
        # A stream that survives even SIGKILL is in the hands of a process that has left our group on purpose.
        self.shutdown = self._shutdown_sequence(SIGTERM, SIGKILL, SIGKILL, every_s=self.grace.after_end_s)
        while self.streams and self.shutdown:
            self._wait_for_events()
        for stream in self.streams:
            stream.give_up()

    def _wait_for_events(self) -> None:
        waits_s = [max(0.0, self.shutdown[0].at_s - time.monotonic())] if self.shutdown else []
        if self.terminal_input:
            waits_s += self.terminal_input.watch()
        self._handle_events(min(waits_s, default=None))
        while self.shutdown and self.shutdown[0].at_s <= time.monotonic():
            self.ending = True
            self._send(self.shutdown.pop(0).number)

    def _handle_events(self, longest_s: float | None) -> None:
        """Wait until something happens, but no longer than that (None: for ever), and do what is to be done."""
        # In the order in which they happened, as epoll keeps it: the first rank that ended comes first.
        for key, _ in self.selector.select(longest_s):
            key.data()

    def _send(self, number: signal.Signals) -> None:
        """Send a signal to all ranks, with what they have started, also to those that have left our group."""
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

    def _on_output(self, stream: _Stream) -> None:
        if not stream.pass_on():
            self.selector.unregister(stream.pipe)
            self.streams.remove(stream)
            stream.pipe.close()

    def _on_end(self, rank: int, pidfd: int) -> None:
        self.selector.unregister(pidfd)
        os.close(pidfd)
        returncode = self.running.pop(rank).wait()
        self.endings.append(Ending(rank, returncode, self.ending))
        if returncode and not self.shutdown and not self.ending:
            told_s = time.monotonic() + self.grace.after_failure_s
            self.shutdown = [TimedSignal(told_s, SIGTERM), TimedSignal(told_s + self.grace.after_signal_s, SIGKILL)]

    def _on_signal(self) -> None:
        for number in self.signals.read():
            now_s = time.monotonic()
            if number == SIGTSTP:
                self._send(SIGTSTP)
                self.signals.stop_us()
                self._send(SIGCONT)
            elif number == SIGINT and self.interrupted_s is not None:
                if now_s > self.interrupted_s + SAME_PRESS_S:
                    self.shutdown = [TimedSignal(now_s, SIGKILL)]
            else:
                self.interrupted_s = now_s if number == SIGINT else self.interrupted_s
                if not any(ending.returncode for ending in self.endings):
                    self.ended_by = self.ended_by or number
                self.ending = True
                self._send(number)
                kill = TimedSignal(now_s + self.grace.after_signal_s, SIGKILL)
                self.shutdown = [min([kill, *self.shutdown[-1:]])]  # what was planned before may come sooner

    def close(self) -> None:
        """Give everything back; ranks that still run are killed."""
        self._send(SIGKILL)
        for process in self.running.values():
            process.wait()
        for stream in self.streams:
            stream.pipe.close()
        if self.terminal_input:
            self.terminal_input.close()
        self.selector.close()
