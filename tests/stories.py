"""Artificial runs with times that can be checked by hand, and a check of the structure of traces."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unisono.tracing.run import Call, Op, RankCall, Run, TracedCommunicator, Wait

CLOCK = {"name": "CLOCK_MONOTONIC", "machine": "here", "namespace": "none"}


def wait(rank: int, peer: int, begin: int, end: int, reason: Any = "message") -> Wait:
    return Wait(rank, peer, reason, begin, end)


def op(
    rank: int, kind: str, begin: int, end: int, *waits: Wait, sources: Sequence[int] = (), to: Sequence[int] = (),
    instruction: int = 0, number_of_pass: int = 0, step: int = 0, nbytes: int = 1000,
) -> Op:  # fmt: skip
    return Op(
        rank, kind, number_of_pass, instruction, step, tuple(sources), tuple(to), "0", nbytes, begin, end, waits
    )


def rank_call(rank: int, begin: int, end: int, *ops: Op, waits: Sequence[Wait] = ()) -> RankCall:
    """Return a call of one rank; ``waits`` are those that belong to no op."""
    return RankCall(rank, begin, end, list(ops), [*(one for each in ops for one in each.waits), *waits])


def call(*ranks: RankCall, number: int = 1, collective: str = "all_reduce", algorithm: str = "ring") -> Call:
    return Call(
        number, collective, algorithm, 250, "float32", 1000, 1, {rank.rank: len(rank.ops) for rank in ranks}, "",
        "sum", None, None, {rank.rank: rank for rank in ranks},
    )  # fmt: skip


def group(
    size: int, *calls: Call, missing: Sequence[int] = (), dropped: Mapping[int, int] | None = None
) -> TracedCommunicator:
    there = [rank for rank in range(size) if rank not in missing]
    return TracedCommunicator("c", size, {rank: rank for rank in there}, list(calls), [], dict(dropped or {}))


def run(*groups: TracedCommunicator) -> Run:
    return Run("a story", list(groups), CLOCK, {})


def ring_of_three(late: int = 0, at: int = 0, number: int = 1, late_ns: int = 100) -> Call:
    """Return a call in which rank 1 sends to 2, 2 adds and passes on to 0, and 0 adds; all begin at 0 but one.

    Every op takes 10 ns. Rank ``late`` begins ``late_ns`` later.
    """
    begins = [at + (late_ns if rank == late else 0) for rank in range(3)]
    first = begins[1] + 10  # when the message of rank 1 has arrived
    second = max(begins[2], first) + 10
    waits2 = [wait(2, 1, begins[2], first)] if begins[2] < first else []
    waits0 = [wait(0, 2, begins[0], second)] if begins[0] < second else []
    third = max(begins[0], second)
    return call(
        rank_call(0, begins[0], third + 10, op(0, "reduce", third, third + 10, *waits0, sources=[2])),
        rank_call(1, begins[1], first, op(1, "send", begins[1], first, to=[2])),
        rank_call(2, begins[2], second, op(2, "reduce", second - 10, second, *waits2, sources=[1], to=[0])),
        number=number,
    )


def events_of(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return found


def _clocks_of(path: Path) -> tuple[dict[int, str], dict[int, float]]:
    """Return the clock of each rank of the job before the alignment, and the uncertainty of its times in µs."""
    about = json.loads(path.read_text(encoding="utf-8"))["otherData"]["unisono"]["parts"]
    said = {part["job_rank"]: part.get("alignment", {"clock": {}, "uncertainty_ns": 0}) for part in about}
    clocks = {rank: json.dumps(one["clock"], sort_keys=True) for rank, one in said.items()}
    return clocks, {rank: one["uncertainty_ns"] / 1000 for rank, one in said.items()}


def check_structure(path: Path, whole: bool = True) -> Counter[str]:
    """Check that a file is a trace as Perfetto wants it; return how many events of each phase it has.

    Where a call has failed (not ``whole``), messages may be missing one end. Between hosts with aligned clocks,
    times are uncertain.
    """
    events = events_of(path)
    hosts, uncertain = _clocks_of(path)
    flows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    open_slices: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    last: dict[tuple[int, int], float] = defaultdict(float)
    for event in events:
        assert isinstance(event["name"], str)
        assert type(event["pid"]) is int
        if event["ph"] == "M":
            assert event["args"]["name" if "name" in event["name"] else "sort_index"] is not None
            continue
        thread = (event["pid"], event["tid"])
        assert event["ts"] >= 0
        if event["ph"] == "X":
            assert {"cat", "name", "pid", "tid", "ts", "dur", "args"} <= event.keys()
            assert event["ts"] >= last[thread], "slices of a thread come in the order of time"
            last[thread] = event["ts"]
            begin = int(event["ts"] * 1000)  # like a reader that truncates fractions
            end = begin + int(event["dur"] * 1000)
            stack = open_slices[thread]
            while stack and stack[-1][1] <= begin:
                stack.pop()
            assert not stack or end <= stack[-1][1], "a slice lies in another one, or beside it"
            stack.append((begin, end))
        else:
            assert event["ph"] in "sf"
            int(event["id"], 16)
            assert open_slices[thread], "a flow begins and ends in a slice"
            flows[event["id"]].append(event)
    for ends in flows.values():
        if not whole and len(ends) == 1:
            continue
        assert sorted(end["ph"] for end in ends) == ["f", "s"], "every message has two ends"
        sent, received = sorted(ends, key=lambda end: end["ph"], reverse=True)
        assert received["bp"] == "e"
        uncertain_us = (
            sum(uncertain[end["pid"]] for end in ends) if hosts[sent["pid"]] != hosts[received["pid"]] else 0
        )
        assert received["ts"] >= sent["ts"] - 1 - uncertain_us, "nothing comes before it was sent"
    return Counter(event["ph"] for event in events)
