"""The verifier's memory: slots that hold symbols, and the rules that every read and write must keep.

1. Nothing is read that was never written.
2. In a step a slot is written at most once, unless by several recv_reduce; and a local op reads nothing that
   another op of its step writes (sends do read what was there before the step).
3. Where input and output share a row, slot c only ever holds chunk c: chunks may differ in length by an element.
4. Only chunks of the same number are added, and no rank is counted twice: such a sum could never be mended.
5. Where input and output are separate, the input is left as it was.
"""

from __future__ import annotations

from typing import Any, NoReturn

from unisono.collectives import Collective
from unisono.errors import GoalError, HazardError, ScheduleError, UnmatchedError
from unisono.schedule import Chunks, Op, Schedule, Step
from unisono.schedule.ops import COMBINE, COPY, RECV, RECV_REDUCE, SEND, listed
from unisono.verifier.symbols import NOTHING, Symbols, describe, ranks_in


class SymbolicMemory:
    """The slots of all ranks, holding symbols."""

    def __init__(self, schedule: Schedule, collective: Collective) -> None:
        self.schedule = schedule
        self.collective = collective
        size, chunks = schedule.size, schedule.chunks
        self.symbols = Symbols(size, chunks)
        self.rows: list[list[int]] = []
        # Slots below this number are input that nobody may write.
        self.protected = 0 if collective.in_place else chunks
        for rank in range(size):
            row = [NOTHING] * schedule.slots
            held = collective.held_before(rank, size, chunks, schedule.root or 0)
            row[held.start : held.stop] = self.symbols.inputs(rank)[held.start : held.stop]
            self.rows.append(row)
        self.steps = [0] * size  # where each rank is, for messages

    def begin_step(self, rank: int, index: int, step: Step) -> None:
        """Check the step for hazards (rule 2)."""
        self.steps[rank] = index
        # A lone op, or one send and one receive, cannot be a hazard.
        if len(step) > 2 or (len(step) == 2 and step[0].kind != SEND and step[1].kind != SEND):
            self._check_hazards(rank, index, step)

    def read(self, rank: int, chunks: Chunks) -> Any:
        """Return a symbol, or a list of them for several chunks (rule 1)."""
        row = self.rows[rank]
        if type(chunks) is int:
            symbol = row[chunks]
            if symbol:
                return symbol
        else:
            payload = row[chunks.start : chunks.stop] if type(chunks) is range else [row[c] for c in chunks]  # type: ignore[union-attr]
            if NOTHING not in payload:
                return payload
        chunk = next(c for c in listed(chunks) if row[c] == NOTHING)
        self._refuse(
            HazardError, rank, None, f"chunk {chunk} is read, but nothing was ever put there", chunk=chunk,
            expected="an input, or something received or copied into it in an earlier step", found="nothing",
        )  # fmt: skip

    def write(self, rank: int, op: Op, sent: Chunks, payload: Any) -> None:
        """Carry out a receive or a local op."""
        kind, chunks, other = op
        target = other if kind == COPY or kind == COMBINE else chunks
        row = self.rows[rank]
        # The common cases: both ends name the same chunk of the one row, so rules 3 and 5 hold by themselves.
        if sent == target and not self.protected:
            if kind == RECV:
                if type(target) is int:
                    row[target] = payload
                elif type(target) is range:
                    row[target.start : target.stop] = payload
                else:
                    for chunk, symbol in zip(target, payload, strict=True):  # type: ignore[arg-type]
                        row[chunk] = symbol
                return
            if kind == RECV_REDUCE and type(target) is int:
                left = row[target]
                known = self.symbols.sums.get((left, payload) if left < payload else (payload, left))
                row[target] = known or self._sum(rank, op, target, left, payload)
                return
        payloads = [payload] if type(sent) is int else payload
        adds = kind == RECV_REDUCE or kind == COMBINE
        sums, add = self.symbols.sums, self._sum
        for position, (chunk, symbol) in enumerate(zip(listed(target), payloads, strict=True)):
            if sent != target or self.protected:
                self._check_place(rank, op, chunk, symbol, listed(sent)[position])
            if adds:
                left = row[chunk]
                symbol = sums.get((left, symbol) if left < symbol else (symbol, left)) or add(
                    rank, op, chunk, left, symbol
                )
            row[chunk] = symbol

    def end_step(self, rank: int, level: int) -> None:
        """Nothing is left to do."""

    def extra_slots(self) -> int:
        """Return how many slots beside input and output were ever used, on the rank that used the most."""
        schedule = self.schedule
        most = 0
        for rank, row in enumerate(self.rows):
            where = (rank, schedule.size, schedule.chunks, schedule.root or 0)
            theirs = {*self.collective.held_before(*where), *self.collective.held_after(*where)}
            used = len(row) - row.count(NOTHING)
            most = max(most, used - sum(1 for slot in theirs if row[slot]))
        return most

    def _check_place(self, rank: int, op: Op, chunk: int, symbol: int, sent: int) -> None:
        """Rules 3 and 5."""
        if chunk < self.protected:
            self._refuse(
                HazardError, rank, op, f"slot {chunk} is input, which is left as it was", chunk=chunk,
                expected=f"a slot of the output ({self.protected} to {2 * self.protected - 1}) or scratch",
            )  # fmt: skip
        if not self.protected and chunk < self.schedule.chunks and self.symbols.origin[symbol] != chunk:
            self._refuse(
                UnmatchedError, rank, op, f"chunk {chunk} is given the data of another chunk", chunk=chunk,
                expected=f"chunk {chunk} of some ranks",
                found=f"{describe(self.symbols.value(symbol))} (the sender's chunk {sent})",
                hint="make the send and its receive name the same chunks",
            )  # fmt: skip

    def _sum(self, rank: int, op: Op, chunk: int, left: int, right: int) -> int:
        """Add two symbols (rules 1 and 4)."""
        symbols = self.symbols
        if not left:
            self._refuse(
                HazardError, rank, op, f"something is added to chunk {chunk}, but nothing was ever put there",
                chunk=chunk, expected="an input, or something received or copied into it before",
                found="nothing", hint=f"use {RECV} or {COPY} for the first thing that goes there",
            )  # fmt: skip
        if not self.collective.carries_data:
            # Hearing of a rank twice does no harm: the symbol is the set of ranks heard of.
            if not symbols.ranks[right] & ~symbols.ranks[left]:
                return left
            return right if not symbols.ranks[left] & ~symbols.ranks[right] else symbols.add(left, right)
        if symbols.origin[left] != symbols.origin[right]:
            self._refuse(
                GoalError, rank, op, "two different chunks are added to each other", chunk=chunk,
                expected=describe(symbols.value(left)).split(" of ")[0] + " of other ranks",
                found=describe(symbols.value(right)),
                hint="add only chunks of the same number; use another scratch slot for each chunk",
            )  # fmt: skip
        twice = symbols.ranks[left] & symbols.ranks[right]
        if twice:
            self._refuse(
                GoalError, rank, op, f"the input of rank {ranks_in(twice)[0]} is counted twice", chunk=chunk,
                expected="two sums that have no rank in common",
                found=f"{describe(symbols.value(left))}; plus {describe(symbols.value(right))}",
                hint=f"{RECV} instead of {RECV_REDUCE} where a finished sum arrives",
            )  # fmt: skip
        return symbols.add(left, right)

    def _check_hazards(self, rank: int, index: int, step: Step) -> None:
        written: dict[int, Op] = {}
        for op in step:
            if op.kind == SEND:
                continue
            for chunk in listed(op.other if op.is_local else op.chunks):
                before = written.setdefault(chunk, op)
                if before is not op and not (before.kind == op.kind == RECV_REDUCE):
                    self._refuse(
                        HazardError, rank, op, f"chunk {chunk} is written twice in one step", chunk=chunk,
                        found=f"`{before}` and `{op}`", hint="put them into two steps, in the order you mean",
                    )  # fmt: skip
        for op in step:
            if op.is_local:
                for chunk in listed(op.chunks):
                    if written.get(chunk, op) is not op:
                        self._refuse(
                            HazardError, rank, op, f"chunk {chunk} is read by one op and written by another of the "
                            "same step", chunk=chunk, found=f"`{op}` and `{written[chunk]}`",
                            hint="put them into two steps, in the order you mean",
                        )  # fmt: skip

    def _refuse(self, kind: type[ScheduleError], rank: int, op: Op | None, what: str, **parts: Any) -> NoReturn:
        raise kind(
            what, algorithm=self.schedule.label, size=self.schedule.size, rank=rank, step=self.steps[rank],
            op=op, **parts,
        )  # fmt: skip
