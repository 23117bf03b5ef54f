"""Traces of a communicator: ``with comm.trace("run.json"):``, and of a whole job, for ``unisono run --trace``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from unisono.comm import messages
from unisono.comm.programs import MOST_RANKS_KEPT
from unisono.errors import UnisonoError, UsageError
from unisono.tracing.facts import Origin

if TYPE_CHECKING:
    from unisono.bootstrap.environment import JobTrace
    from unisono.bootstrap.membership import Link
    from unisono.comm.dispatch import Dispatcher
    from unisono.comm.plan_record import PlanRecord
    from unisono.tracing.alignment import Offset

EVENTS = 1 << 15
MOST_EVENTS = 1 << 26
LARGEST_SCHEDULE = MOST_RANKS_KEPT  # ranks: those of more are not written down


class _Recording:
    """One rank's recording of one communicator."""

    def __init__(
        self, dispatcher: Dispatcher, events: int, run: str, base_ns: int | None, job_rank: int, number: int, *,
        measures_clock: bool,
    ) -> None:  # fmt: skip
        link = dispatcher.link
        self.dispatcher = dispatcher
        self.clock = link.resources.clock
        self.measures_clock = measures_clock and _is_on_several_hosts(link)
        self.offsets: list[Offset] = []
        self.measure_clock()
        self.began_ns = self.clock.now_ns()
        self.base_ns = self.began_ns if base_ns is None else base_ns
        self.engine = link.endpoint.start_event_log(events)
        dispatcher.cache.begin_recording()
        self.origin = Origin(
            run=run, communicator=_name_of(link), rank=link.rank, size=link.size, process=os.getpid(),
            processes=tuple(link.processes), job_rank=job_rank, number=number,
        )  # fmt: skip

    def measure_clock(self) -> None:
        """Measure the offset of the clock of this host; at the beginning and at the end, since clocks drift."""
        if self.measures_clock:
            self.offsets += self.clock.measure()

    def stop(self) -> None:
        """Record no more calls."""
        self.dispatcher.cache.end_recording()
        self.dispatcher.link.endpoint.stop_event_log(self.engine)

    def write(self, folder: Path) -> None:
        """Write this rank's part of the trace."""
        # Imported here, so that a rank that records nothing connects sooner.
        from unisono.tracing.chrome import lines_of
        from unisono.tracing.events import Tape
        from unisono.tracing.facts import Hosts, Part
        from unisono.tracing.files import part_path, write_trace

        link = self.dispatcher.link
        readings = self.engine.collectives(), self.engine.transfers()
        collectives, transfers = (Tape.of(reading).timed(self.clock.times) for reading in readings)
        used = set(collectives.events["about"].tolist())
        records = {number: each for number, each in self.dispatcher.cache.records().items() if number in used}
        plans = {number: record.facts(self.origin.rank) for number, record in records.items()}
        part = Part(
            self.origin,
            plans,
            self._schedules(records),
            self.clock.identity(),
            self.base_ns,
            self.began_ns,
            self.clock.now_ns(),
            Hosts(link.hosts.names, link.hosts.host_of) if _is_on_several_hosts(link) else None,
            self.offsets,
        )
        header, lines = lines_of(part, collectives, transfers)
        write_trace(part_path(folder, header), [header], lines)

    def _schedules(self, records: Mapping[int, PlanRecord]) -> dict[str, str]:
        """Return the programs of all ranks, so that the run can be replayed; one rank writes them down for all."""
        from unisono.schedule.text import format_schedule

        if self.origin.rank != 0 or self.origin.size > LARGEST_SCHEDULE:
            return {}
        schedules = {record.made.digest[:16]: record.made.schedule for record in records.values()}
        return {digest: format_schedule(schedule) for digest, schedule in schedules.items()}


def _is_on_several_hosts(link: Link) -> bool:
    """Return whether the job is on several hosts; a communicator may have ranks on one of them only."""
    return link.resources.courier is not None


def _name_of(link: Link) -> str:
    """Return a name of a communicator that is the same on all of its ranks, and that no other communicator has.

    Each host has a memory with its own offsets. Groups of one ``split`` share a number, but no rank.
    """
    if _is_on_several_hosts(link):
        return f"{link.config.token}-{link.number:x}-{link.courier_ranks[0]:x}"
    return f"{link.config.token}-{link.offset:x}"


class Trace:
    """A block in which all that the ranks of a communicator do is recorded; ``Communicator.trace`` returns it.

    ``dispatcher`` makes the calls of the communicator; ``path`` and ``events`` are those of ``Communicator.trace``.
    """

    def __init__(self, dispatcher: Dispatcher, path: str | PathLike[str], events: int) -> None:
        if type(events) is not int or not 1 <= events <= MOST_EVENTS:
            raise UsageError(messages.BAD_EVENT_COUNT(events=repr(events), most=MOST_EVENTS))
        self.path = Path(path).absolute()  # the working directory may change before it is written
        if self.path.is_dir():
            raise UsageError(messages.TRACE_PATH_IS_FOLDER(path=path))
        if not self.path.parent.is_dir():
            raise UsageError(messages.NO_TRACE_FOLDER(path=self.path.parent))
        self.dispatcher = dispatcher
        self.events = events
        self._recording: _Recording | None = None

    def __enter__(self) -> Trace:
        if self._recording is not None:
            raise UsageError(messages.TRACE_ENTERED_TWICE())
        link = self.dispatcher.link
        link.check_open("trace")
        self.dispatcher.traces += 1  # the same on every rank, as they make the same calls
        run = f"{_name_of(link)}-{self.dispatcher.traces}"
        base_ns = None if _is_on_several_hosts(link) else link.config.met_ns  # a time of rank 0
        self._recording = _Recording(
            self.dispatcher, self.events, run, base_ns, link.rank, 0, measures_clock=True
        )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from unisono.tracing.joining import join_when_all_are_there
        from unisono.tracing.messages import CLOCKS_UNKNOWN

        recording = self._recording
        assert recording is not None
        if os.getpid() != recording.origin.process:
            return  # a forked child is not a rank
        recording.stop()
        recording.measure_clock()
        folder = self.path.with_name(f"{self.path.name}.parts")
        recording.write(folder)
        try:
            join_when_all_are_there(folder, recording.origin.run, recording.origin.size, self.path)
        except UsageError as problem:
            if problem.id != CLOCKS_UNKNOWN.id:
                raise
            warnings.warn(str(problem), stacklevel=2)

    def __reduce__(self) -> Any:
        raise UsageError(messages.TRACE_NOT_PICKLED())


def trace_job(dispatcher: Dispatcher, job: JobTrace) -> None:
    """Record everything on a communicator until it is closed."""
    link = dispatcher.link
    # The reference clock is that of rank 0 of the job, which other groups that rendezvous separately may not know.
    is_first = link.endpoint is link.resources.first and link.rank == job.rank
    recording = _Recording(
        dispatcher, EVENTS, job.run, job.base_ns, job.rank, link.index, measures_clock=is_first
    )  # fmt: skip

    def write() -> None:
        recording.stop()
        try:
            recording.write(Path(job.folder))
        except UnisonoError as error:  # the program has finished its work and must not fail now
            warnings.warn(str(error), stacklevel=2)

    link.before_close.append(recording.measure_clock)
    link.after_close.append(write)
