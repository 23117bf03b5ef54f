"""Converts the events of a rank into those of a trace that Perfetto and chrome://tracing open.

A process of the trace is a rank of the job; its threads are the communicators of the rank, and lanes for send and
recv. Every call is a slice (``"ph": "X"``) that contains the ops of the rank (``op``) and its waits (``wait``), one
after the other. An instruction waits before it works, never in between, so the slice of an op begins when its waits
are over. Each message is a flow (``"s"`` and ``"f"``) from the op that sends it to the op that receives it. Both ends
compute its id independently, from values that both know.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from unisono.tracing.events import FAILED, IN_BACKGROUND, Moment, Tape
from unisono.tracing.facts import InstructionFacts, Part, PlanFacts

FORMAT = 1
LANES = 1000  # thread numbers for each communicator of a process
AWAITED = {Moment.AWAITS_MESSAGE: "message", Moment.AWAITS_ROOM: "room", Moment.AWAITS_ENTRY: "entry"}
WAITING = {"message": "wait for rank {}", "room": "wait until rank {} has read", "entry": "wait until rank {} comes"}

Slice = tuple[int, int, int, list[dict[str, Any]]]  # the sort key (thread, begin, negative length), and the events


def header_of(part: Part, events: int, dropped: int) -> dict[str, Any]:
    """Return the header of the events: their rank and communicator, and the number of dropped events."""
    origin = part.origin
    of_hosts: dict[str, Any] = {}
    if part.hosts is not None:
        of_hosts = {
            "hosts": {"names": list(part.hosts.names), "host_of": list(part.hosts.host_of)},
            "offsets": [list(offset) for offset in part.offsets],
        }
    return {
        "run": origin.run, "communicator": origin.communicator, "number": origin.number, "rank": origin.rank,
        "size": origin.size, "job_rank": origin.job_rank, "process": origin.process,
        "processes": list(origin.processes), "clock": dict(part.clock), "base_ns": part.base_ns,
        "began_ns": part.began_ns, "ended_ns": part.ended_ns, "events": events, "dropped": dropped,
        "schedules": dict(part.schedules), **of_hosts,
    }  # fmt: skip


def lines_of(part: Part, collectives: Tape, transfers: Tape) -> tuple[dict[str, Any], list[str]]:
    """Return the header of a part and its events, one line of JSON each."""
    track = _Track(part)
    slices = track.collectives(collectives)
    slices += track.transfers(transfers)
    slices.sort(key=lambda one: one[:3])
    events = [*track.names(slices), *(event for one in slices for event in one[3])]
    header = header_of(part, len(slices), collectives.dropped + transfers.dropped + track.unknown)
    return header, [json.dumps(event, separators=(",", ":"), ensure_ascii=False) for event in events]


def microseconds(ns: int) -> float:
    """Return a time in the format of the trace.

    Who reads it makes whole nanoseconds of it, and some cut off what is behind the point: so that this never takes a
    nanosecond away, and slices that follow each other do not overlap, a little is added.
    """
    return (ns + 0.25) / 1000


class _Track:
    """Creates the events of one part."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.origin = part.origin
        self.thread = LANES * part.origin.number
        self.unknown = 0  # events of unknown calls
        self.programs: dict[int, _Program] = {}  # by the number of the plan

    def names(self, slices: list[Slice]) -> Iterator[dict[str, Any]]:
        """Yield the names of the process and its threads."""
        origin = self.origin
        where = (
            "" if origin.number == 0 else f" of communicator {origin.number} (rank {origin.rank} of {origin.size})"
        )
        base = {"ph": "M", "pid": origin.job_rank}
        host = "" if self.part.hosts is None else f" on {self.part.hosts.name(origin.rank)}"
        yield {**base, "name": "process_name", "args": {"name": f"rank {origin.job_rank}{host}"}}
        yield {**base, "name": "process_sort_index", "args": {"sort_index": origin.job_rank}}
        for thread in sorted({one[0] for one in slices}):
            what = "collectives" if thread == self.thread else "send and recv"
            yield {**base, "tid": thread, "name": "thread_name", "args": {"name": f"{what}{where}"}}

    def slice(
        self, thread: int, category: str, name: str, begin_ns: int, end_ns: int, args: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "ph": "X", "cat": category, "name": name, "pid": self.origin.job_rank, "tid": thread,
            "ts": microseconds(begin_ns - self.part.base_ns), "dur": microseconds(end_ns - begin_ns), "args": args,
        }  # fmt: skip

    def flow(self, phase: str, thread: int, begin_ns: int, end_ns: int, *message: object) -> dict[str, Any]:
        """Return one end of a message, in a slice; the other end computes the same id.

        Viewers want what was received to be later than what was sent. A rank may have come to a receive, lost its
        core, and found the message there when it had it again: so only the end of the slice is surely later.
        """
        about = " ".join(map(str, (self.origin.communicator, *message)))
        ns = begin_ns if phase == "s" else max(begin_ns, end_ns - 1)
        made = {
            "ph": phase, "cat": "message", "name": "message", "pid": self.origin.job_rank, "tid": thread,
            "ts": microseconds(ns - self.part.base_ns), "id": blake2b(about.encode(), digest_size=6).hexdigest(),
        }  # fmt: skip
        return made if phase == "s" else {**made, "bp": "e"}

    # ---- collectives -------------------------------------------------------------------------------------------

    def collectives(self, tape: Tape) -> list[Slice]:
        slices: list[Slice] = []
        calls: dict[int, _CallSlices] = {}
        for begin, end, number, plan, what, number_of_pass, moment, peer in tape.events.tolist():
            if plan not in self.part.plans:
                self.unknown += 1
                continue
            call = calls.get(number)
            if call is None:
                call = calls[number] = _CallSlices(self, number, self.program(plan))
            if moment == Moment.CALL:
                slices.append(call.whole(begin, end, what))
            elif moment in AWAITED:
                slices.append(call.wait(begin, end, what, number_of_pass, AWAITED[moment], peer))
            else:
                index = what if moment == Moment.INSTRUCTION else None
                slices.append(call.op(begin, end, index, number_of_pass))
        return slices + [call.unfinished() for call in calls.values() if not call.finished]

    def program(self, plan: int) -> _Program:
        if plan not in self.programs:
            self.programs[plan] = _Program(self.part.plans[plan])
        return self.programs[plan]

    # ---- send and recv -----------------------------------------------------------------------------------------

    def transfers(self, tape: Tape) -> list[Slice]:
        """Return the slices of sends and receives; each takes the first lane that is free at that time."""
        slices: list[Slice] = []
        free_ns: list[int] = []  # when each lane becomes free
        me = self.origin.rank
        for begin, end, number, nbytes, tag, _, moment, peer in sorted(tape.events.tolist()):
            lane = next((at for at, free in enumerate(free_ns) if free <= begin), len(free_ns))
            free_ns[lane : lane + 1] = [end]
            sending = moment == Moment.SEND
            thread = self.thread + 1 + min(lane, LANES - 2)
            args = {
                "kind": "send" if sending else "recv",
                "peer": peer,
                "tag": tag,
                "bytes": nbytes,
                "number": number,
            }
            name = f"send to {peer}" if sending else f"recv from {peer}"
            pair = (me, peer) if sending else (peer, me)
            flow = self.flow("s" if sending else "f", thread, begin, end, "transfer", *pair, number)
            slices.append(
                (thread, begin, begin - end, [self.slice(thread, "transfer", name, begin, end, args), flow])
            )
        return slices


class _CallSlices:
    """Creates the slices of one call."""

    def __init__(self, track: _Track, number: int, program: _Program) -> None:
        self.track = track
        self.number = number
        self.program = program
        self.facts = program.facts
        self.waited_until = 0  # the end of the last wait
        self.ops = 0
        self.finished = False
        self.seen_ns: tuple[int, int] | None = None  # the first begin and the last end

    def _made(self, category: str, name: str, begin: int, end: int, args: dict[str, Any]) -> Slice:
        first, last = self.seen_ns or (begin, end)
        self.seen_ns = (min(first, begin), max(last, end))
        thread = self.track.thread
        slice_ = self.track.slice(thread, category, name, begin, end, {"call": self.number, **args})
        return thread, begin, begin - end, [slice_]

    def whole(self, begin: int, end: int, said: int) -> Slice:
        self.finished = True
        args: dict[str, Any] = self.facts.args()
        if said & IN_BACKGROUND:
            args["background"] = True
        missing = self.facts.passes * len(self.facts.instructions) - self.ops
        if said & FAILED:
            args["failed"] = True
        elif missing > 0:
            args["truncated"] = missing
        return self._made("call", f"{self.facts.collective}/{self.facts.algorithm}", begin, end, args)

    def unfinished(self) -> Slice:
        assert self.seen_ns is not None
        args = {**self.facts.args(), "unfinished": True}
        return self._made("call", f"{self.facts.collective}/{self.facts.algorithm}", *self.seen_ns, args)

    def wait(self, begin: int, end: int, instruction: int, number_of_pass: int, reason: str, peer: int) -> Slice:
        self.waited_until = end
        args = {"pass": number_of_pass, "instruction": instruction, "for": reason, "peer": peer}
        return self._made("wait", WAITING[reason].format(peer), begin, end, args)

    def op(self, begin: int, end: int, index: int | None, number_of_pass: int) -> Slice:
        if index is None:
            return self._made("op", "divide or round", begin, end, {"pass": number_of_pass, "kind": "results"})
        self.ops += 1
        # A wait since the previous instruction was for this one or, if several passes are in progress, for another.
        begin = min(max(begin, self.waited_until), end)
        facts, nbytes = self.facts.instructions[index], self.program.bytes_of(index, number_of_pass)
        moves = bool(facts.sources or facts.to) and not (nbytes == 0 and self.facts.skips_empty)
        args: dict[str, Any] = {"pass": number_of_pass, "instruction": index, "kind": facts.kind, "step": facts.step}
        if moves and facts.sources:
            args["from"] = list(facts.sources)
        if moves and facts.to:
            args["to"] = list(facts.to)
        made = self._made("op", _name(facts), begin, end, {**args, "chunks": facts.chunks, "bytes": nbytes})
        if moves:
            sends, receives = self.program.messages[index]
            where, about = (self.track.thread, begin, end), (self.number, number_of_pass)
            flow, me = self.track.flow, self.track.origin.rank
            made[3].extend(flow("s", *where, *about, me, dst, place) for dst, place in sends)
            made[3].extend(flow("f", *where, *about, src, me, place) for src, place in receives)
        return made


def _name(facts: InstructionFacts) -> str:
    sources = f" from {', '.join(map(str, facts.sources))}" if facts.sources else ""
    to = f" to {', '.join(map(str, facts.to))}" if len(facts.to) < 4 else " to all"
    return f"{facts.kind}{sources}{to if facts.to else ''}"


class _Program:
    """Values that are computed once for all calls with the same plan."""

    def __init__(self, facts: PlanFacts) -> None:
        self.facts = facts
        self.bytes_of = facts.message_bytes()
        # For each instruction, the messages that it sends and receives: the peer, and the index among those with it.
        self.messages: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]] = []
        sent: Counter[int] = Counter()
        received: Counter[int] = Counter()
        for instruction in facts.instructions:
            sends = [(peer, sent[peer]) for peer in instruction.to]
            receives = [(peer, received[peer]) for peer in instruction.sources]
            sent.update(instruction.to)
            received.update(instruction.sources)
            self.messages.append((sends, receives))
