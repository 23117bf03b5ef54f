"""Traces of a communicator: ``with comm.trace("run.json"):``, and of a whole job, for ``unisono run --trace``."""

from __future__ import annotations

import os
import time
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
    from unisono.comm.dispatch import Dispatcher
    from unisono.comm.plan_record import PlanRecord

EVENTS = 1 << 15
MOST_EVENTS = 1 << 26
LARGEST_SCHEDULE = MOST_RANKS_KEPT  # ranks: those of more are not written down


class _Recording:
    """One rank's recording of one communicator."""

    def __init__(
        self, dispatcher: Dispatcher, events: int, run: str, base_ns: int, job_rank: int, number: int
    ) -> None:
        link = dispatcher.link
        self.dispatcher = dispatcher
        self.base_ns = base_ns
        self.began_ns = time.monotonic_ns()
        self.engine = link.endpoint.start_event_log(events)
        dispatcher.cache.begin_recording()
        self.origin = Origin(
            run=run, communicator=f"{link.config.token}-{link.offset:x}", rank=link.rank, size=link.size,
            process=os.getpid(), processes=tuple(link.processes), job_rank=job_rank, number=number,
        )  # fmt: skip

    def stop(self) -> None:
        """Record no more calls."""
        self.dispatcher.cache.end_recording()
        self.dispatcher.link.endpoint.stop_event_log(self.engine)

    def write(self, folder: Path) -> None:
        """Write this rank's part of the trace."""
        # Imported here, so that a rank that records nothing connects sooner.
        from unisono.tracing.chrome import lines_of
        from unisono.tracing.clock import this_clock
        from unisono.tracing.events import Tape
        from unisono.tracing.facts import Part
        from unisono.tracing.files import part_path, write_trace

        collectives, transfers = Tape.of(self.engine.collectives()), Tape.of(self.engine.transfers())
        used = set(collectives.events["about"].tolist())
        records = {number: each for number, each in self.dispatcher.cache.records().items() if number in used}
        plans = {number: record.facts(self.origin.rank) for number, record in records.items()}
        part = Part(
            self.origin,
            plans,
            self._schedules(records),
            this_clock(),
            self.base_ns,
            self.began_ns,
            time.monotonic_ns(),
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
        run = f"{link.config.token}-{link.offset:x}-{self.dispatcher.traces}"
        self._recording = _Recording(self.dispatcher, self.events, run, link.config.met_ns, link.rank, 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from unisono.tracing.files import join_when_all_are_there

        recording = self._recording
        assert recording is not None
        if os.getpid() != recording.origin.process:
            return  # a forked child is not a rank
        recording.stop()
        folder = self.path.with_name(f"{self.path.name}.parts")
        recording.write(folder)
        join_when_all_are_there(folder, recording.origin.run, recording.origin.size, self.path)

    def __reduce__(self) -> Any:
        raise UsageError(messages.TRACE_NOT_PICKLED())


def trace_job(dispatcher: Dispatcher, job: JobTrace) -> None:
    """Record everything on a communicator until it is closed."""
    recording = _Recording(dispatcher, EVENTS, job.run, job.base_ns, job.rank, dispatcher.link.index)

    def write() -> None:
        recording.stop()
        try:
            recording.write(Path(job.folder))
        except UnisonoError as error:  # the program has finished its work and must not fail now
            warnings.warn(str(error), stacklevel=2)

    dispatcher.link.after_close.append(write)
