"""``unisono run --elastic``: a job that continues without lost ranks, starts them again, and changes its size.

The launcher only starts and ends processes. The ranks that are left continue with ``shrink``, and admit those that
were started with ``grow`` (docs/elastic.md). ``unisono resize`` writes the requested size into the job's directory.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM, SIGTSTP
from typing import Any, NamedTuple

from unisono.bootstrap.environment import RankIdentity, environment_of_rank, new_join_address
from unisono.bootstrap.fault_log import mark_ending
from unisono.bootstrap.private_directory import job_directory, remove_quietly
from unisono.errors import UsageError
from unisono.launch import messages
from unisono.launch.limits import check_size
from unisono.launch.outcome import Ending, Outcome, outcome_of
from unisono.launch.run import GRACE_PERIODS, GracePeriods, Job, Prefix, plain_prefix
from unisono.launch.run import job_directory as new_job_directory
from unisono.launch.signals import SignalReader
from unisono.launch.unix_process_group import UnixProcessGroup

LIMITS, SIZE = "elastic", "size"  # files in the directory of a job
LOOK_EVERY_S = 0.2  # for a new size
FIRST_PAUSE_S = 0.5  # before the first new start of a rank; doubled each time
LONGEST_PAUSE_S = 30.0
END_S = 5.0  # the time that a rank has to end when the job shrinks


@dataclass(frozen=True)
class Elastic:
    """The limits of an elastic job; each rank is started again at most ``restarts`` times."""

    least: int
    most: int
    restarts: int = 3


def parse_elastic(text: str, restarts: int) -> Elastic:
    """Return the limits in a text such as ``2:8``."""
    least, _, most = text.partition(":")
    if not (least.isdecimal() and most.isdecimal() and 1 <= int(least) <= int(most)):
        raise UsageError(messages.BAD_ELASTIC(text=repr(text)))
    return Elastic(int(least), int(most), restarts)


class Restart(NamedTuple):
    """A rank to be started."""

    at_s: float
    rank: int


class ElasticJob(Job):
    """The ranks of an elastic job. ``start_rank`` starts a rank that joins the others."""

    def __init__(self, *args: Any, elastic: Elastic, directory: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.elastic, self.directory = elastic, directory
        self.start_joining: Callable[[int], None] = lambda rank: None
        self.restarts: dict[int, int] = {}  # by rank
        self.due: list[Restart] = []
        self.leaving: dict[int, float] = {}  # ranks that were told to end, and when they are killed
        self.joined: set[int] = set()  # ranks that were started to join
        self.is_finishing = False  # a rank has ended well
        self.look_s = 0.0

    def rank_ended(self, rank: int, returncode: int) -> None:
        """Decide what the end of a rank means for the job."""
        if self.ending or self.shutdown:
            super().rank_ended(rank, returncode)
        elif rank in self.leaving:
            del self.leaving[rank]
            self.endings.append(Ending(rank, 0))
        elif returncode == 0:
            self._finish()
            self.endings.append(Ending(rank, 0))
        elif self.is_finishing and rank in self.joined:  # it has learnt that it is no longer needed
            self.endings.append(Ending(rank, 0))
        elif self.is_finishing or len(self.running) < self.elastic.least:
            super().rank_ended(rank, returncode)
        else:
            self._start_again(rank, returncode)

    def _finish(self) -> None:
        self.is_finishing = True
        self.due = []
        mark_ending(self.directory)

    def _start_again(self, rank: int, returncode: int) -> None:
        count = self.restarts[rank] = self.restarts.get(rank, 0) + 1
        ended = {"rank": rank, "code": returncode}
        if count > self.elastic.restarts:
            print(messages.RANK_LOST(**ended, restarts=self.elastic.restarts), file=sys.stderr)
            return
        pause_s = min(FIRST_PAUSE_S * 2 ** (count - 1), LONGEST_PAUSE_S)
        text = messages.RANK_STARTS_AGAIN(
            **ended, seconds=f"{pause_s:g}", count=count, restarts=self.elastic.restarts
        )
        print(text, file=sys.stderr)
        self.due.append(Restart(time.monotonic() + pause_s, rank))

    def waits_s(self) -> list[float]:
        """Return the times until something is to be done."""
        if self.ending or self.shutdown:
            return []
        now_s = time.monotonic()
        return [max(0.0, at_s - now_s) for at_s in [self.look_s, *(restart.at_s for restart in self.due)]]

    def on_time(self) -> None:
        """Start the ranks that are due, and look for a new size."""
        now_s = time.monotonic()
        if self.ending or self.shutdown or self.is_finishing:
            return
        for restart in [each for each in self.due if each.at_s <= now_s]:
            self.due.remove(restart)
            self._start_joining(restart.rank)
        for rank in [rank for rank, at_s in self.leaving.items() if at_s <= now_s]:
            self.running[rank].kill()
        if now_s >= self.look_s:
            self.look_s = now_s + LOOK_EVERY_S
            if (size := take_size(self.directory)) is not None:
                self._resize(size)

    def _start_joining(self, rank: int) -> None:
        self.joined.add(rank)
        self.start_joining(rank)

    def _resize(self, size: int) -> None:
        """Start ranks, or tell the highest ones to end, until there are ``size``."""
        present = {*self.running, *(restart.rank for restart in self.due)} - set(self.leaving)
        print(messages.RESIZING(before=len(present), after=size), file=sys.stderr)
        for rank in range(self.elastic.most * 2):
            if len(present) < size and rank not in present and rank not in self.leaving:
                present.add(rank)
                self.restarts.pop(rank, None)
                self._start_joining(rank)
        for rank in sorted(present, reverse=True)[: max(0, len(present) - size)]:
            self.due = [restart for restart in self.due if restart.rank != rank]
            if rank in self.running:
                self.leaving[rank] = time.monotonic() + END_S
                self.running[rank].send_signal(signal.SIGTERM)


def launch_elastic(
    command: Sequence[str], size: int, elastic: Elastic, *, prefix: Prefix = plain_prefix, bind: bool = False,
    grace: GracePeriods = GRACE_PERIODS, oversubscribe: bool = False,
) -> Outcome:  # fmt: skip
    """Run a command on ``size`` ranks, within the limits; otherwise as ``launch`` does."""
    check_size(elastic.most, oversubscribe=oversubscribe, override="--oversubscribe")
    with (
        SignalReader((SIGINT, SIGTERM, SIGHUP, SIGTSTP)) as signals,
        new_job_directory() as directory,
        UnixProcessGroup(directory) as group,
        closing(ElasticJob(range(size), group, signals, grace, elastic=elastic, directory=directory)) as job,
    ):
        write_limits(directory, elastic)
        print(messages.ELASTIC_JOB(job=os.path.basename(directory)), file=sys.stderr)
        join_address = new_join_address()

        def environment(rank: int, *, joins: bool = False) -> dict[str, str]:
            return environment_of_rank(rank, max(size, rank + 1), directory, join_address=join_address, joins=joins)

        job.start_joining = lambda rank: job.start_rank(rank, command, environment(rank, joins=True), prefix)
        job.start(command, environment, prefix, bind)
        job.wait()
        return outcome_of(job.endings, [], job.ended_by)


def write_limits(directory: str, elastic: Elastic) -> None:
    """Write the limits of the job for ``unisono resize``."""
    limits = {"least": elastic.least, "most": elastic.most, "process": os.getpid()}
    Path(directory, LIMITS).write_text(json.dumps(limits))


def take_size(directory: str) -> int | None:
    """Return the size that the job should have, once; None if no new one was requested."""
    path = Path(directory, SIZE)
    try:
        text = path.read_text()
        path.unlink()
    except FileNotFoundError:
        return None
    return int(text) if text.isdecimal() else None


def request_size(job: str, size: int, folder: str) -> None:
    """Request another size of a job; ``folder`` is the one in which jobs have their directories."""
    path = str(Path(folder, job))
    try:
        with _directory(path) as directory:
            with open(os.open(LIMITS, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=directory)) as file:
                limits = json.load(file)
            if not limits["least"] <= size <= limits["most"]:
                raise UsageError(
                    messages.SIZE_OUT_OF_LIMITS(size=size, job=job, least=limits["least"], most=limits["most"])
                )
            remove_quietly(directory, "new size")
            new = os.open("new size", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=directory)
            with open(new, "w") as out:
                out.write(str(size))
            os.rename("new size", SIZE, src_dir_fd=directory, dst_dir_fd=directory)
    except FileNotFoundError:
        raise UsageError(messages.NO_ELASTIC_JOB(job=job, folder=folder)) from None


@contextmanager
def _directory(path: str) -> Iterator[int]:
    with job_directory(RankIdentity(0, 1, 0, 1, "unisono", path)) as directory:
        yield directory
