"""Assembles the events of a trace into calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, get_args

from unisono.tracing import messages, validation
from unisono.tracing.run import Call, Op, RankCall, Reason, Transfer, Wait

REASONS = get_args(Reason)


class Assembly:
    """The events of one rank on one communicator."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self.args: dict[int, dict[str, Any]] = {}  # of each call
        self.spans: dict[int, tuple[int, int]] = {}
        self.ops: dict[int, list[dict[str, Any]]] = defaultdict(list)
        self.waits: dict[int, list[tuple[tuple[int, int], Wait]]] = defaultdict(list)
        self.transfers: list[Transfer] = []

    def add(self, event: Mapping[str, Any]) -> None:
        """Add a slice; raise KeyError, TypeError or ValueError if it is invalid."""
        begin, end = validation.moments(event)
        args, category = event["args"], event["cat"]
        if type(args) is not dict:
            raise ValueError(messages.NOT_ARGUMENTS(value=validation.shortened(args)))
        if category == "transfer":
            self._add_transfer(args, begin, end)
            return
        call = validation.number(args["call"])
        if category == "call":
            self.args[call] = self._call_args(args)
            self.spans[call] = (begin, end)
        elif category == "wait":
            if args["for"] not in REASONS:
                raise ValueError(messages.NOT_A_REASON(value=validation.shortened(args["for"])))
            place = (validation.number(args["pass"]), validation.number(args["instruction"]))
            self.waits[call].append((place, Wait(self.rank, self._peer(args["peer"]), args["for"], begin, end)))
        elif category == "op":
            self.ops[call].append(self._op(args, begin, end))

    def _call_args(self, args: Mapping[str, Any]) -> dict[str, Any]:
        known: dict[str, Any] = {
            key: validation.name(args[key]) for key in ("collective", "algorithm", "schedule", "dtype")
        }
        known |= {key: validation.number(args[key]) for key in ("count", "bytes", "passes", "ops")}
        known |= {key: validation.name(args[key]) for key in ("op", "codec") if args.get(key) is not None}
        known |= {key: bool(args.get(key)) for key in ("background", "failed", "unfinished")}
        known["truncated"] = validation.number(args.get("truncated", 0))
        if args.get("root") is not None:
            known["root"] = self._peer(args["root"])
        return known

    def _op(self, args: Mapping[str, Any], begin: int, end: int) -> dict[str, Any]:
        made = {
            "rank": self.rank,
            "kind": validation.name(args["kind"]),
            "number_of_pass": validation.number(args["pass"]),
        }
        if args["kind"] == "results":
            moved: dict[str, Any] = {
                "instruction": -1,
                "step": -1,
                "sources": (),
                "to": (),
                "chunks": "",
                "nbytes": 0,
            }
        else:
            moved = {
                "instruction": validation.number(args["instruction"]), "step": validation.number(args["step"]),
                "sources": tuple(map(self._peer, args.get("from", ()))),
                "to": tuple(map(self._peer, args.get("to", ()))),
                "chunks": _text(args["chunks"]), "nbytes": validation.number(args["bytes"]),
            }  # fmt: skip
        return {**made, **moved, "begin_ns": begin, "end_ns": end}

    def _add_transfer(self, args: Mapping[str, Any], begin: int, end: int) -> None:
        sending = args["kind"] == "send"
        tag, nbytes, number = (validation.number(args[name]) for name in ("tag", "bytes", "number"))
        self.transfers.append(Transfer(self.rank, self._peer(args["peer"]), sending, tag, nbytes, number, begin, end))

    def _peer(self, peer: Any) -> int:
        if type(peer) is not int or not 0 <= peer < self.size:
            raise ValueError(messages.NOT_A_RANK(value=validation.shortened(peer), size=self.size))
        return peer

    def rank_call(self, call: int) -> RankCall:
        """Return the events of this rank in a call."""
        args, (begin, end) = self.args[call], self.spans[call]
        waits: dict[tuple[int, int], list[Wait]] = defaultdict(list)
        for place, wait in sorted(self.waits[call], key=lambda one: one[1].begin_ns):
            waits[place].append(wait)
        ops = [
            Op(**op, waits=tuple(waits.get((op["number_of_pass"], op["instruction"]), ())))
            for op in sorted(self.ops[call], key=_place)
        ]
        return RankCall(
            rank=self.rank, begin_ns=begin, end_ns=end, ops=ops, waits=[wait for _, wait in self.waits[call]],
            background=args["background"], failed=args["failed"], unfinished=args["unfinished"],
            truncated=args["truncated"],
        )  # fmt: skip

    @staticmethod
    def calls(parts: Mapping[int, Assembly]) -> list[Call]:
        """Return the calls of several ranks, in the order in which they were made."""
        calls = []
        for number in sorted({number for part in parts.values() for number in part.args}):
            here = {rank: part for rank, part in sorted(parts.items()) if number in part.args}
            args = next(iter(here.values())).args[number]
            calls.append(
                Call(
                    number=number, collective=args["collective"], algorithm=args["algorithm"], count=args["count"],
                    dtype=args["dtype"], nbytes=args["bytes"], passes=args["passes"], schedule=args["schedule"],
                    ops_in_pass={rank: part.args[number]["ops"] for rank, part in here.items()}, op=args.get("op"),
                    root=args.get("root"), codec=args.get("codec"),
                    ranks={rank: part.rank_call(number) for rank, part in here.items()},
                )
            )  # fmt: skip
        return calls


def _place(op: Mapping[str, Any]) -> tuple[int, bool, int]:
    """Return the sort key of an op in its call; the op on the results is the last of its pass."""
    return op["number_of_pass"], op["instruction"] < 0, op["instruction"]


def _text(value: Any) -> str:
    """Return the chunks of an op, as text."""
    if type(value) is not str:
        raise ValueError(messages.NOT_CHUNKS(value=validation.shortened(value)))
    return value
