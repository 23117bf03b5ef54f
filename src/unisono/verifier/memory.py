"""The verifier's memory: slots that hold symbols, and the rules that every read and write must keep.

1. Nothing is read that was never written.
2. Where input and output share a row, slot c only ever holds chunk c: chunks may differ in length by an element.
3. Only chunks of the same number are added, and no rank is counted twice: such a sum could never be mended.
4. Where input and output are separate, the input is left as it was.
"""

from __future__ import annotations

from typing import Any

from unisono.collectives import Collective
from unisono.errors import GoalError, HazardError, UnmatchedError
from unisono.schedule import Chunks, Op, Schedule
from unisono.schedule.ops import COMBINE, COPY, RECV, RECV_REDUCE, listed
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
        self.displaced = False  # whether a slot of a separate output ever held what is not its own

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
        raise HazardError(
            f"chunk {chunk} is read, but nothing was ever put there", chunk=chunk,
            expected="an input, or something received or copied into it in an earlier step", found="nothing",
        )  # fmt: skip

    def write(self, rank: int, op: Op, sent: Chunks, payload: Any) -> None:
        """Carry out a receive or a local op."""
        kind, chunks, other = op
        target = other if kind == COPY or kind == COMBINE else chunks
        row = self.rows[rank]
        # The common cases: both ends name the same chunk of the one row, so rules 2 and 4 hold by themselves.
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
                row[target] = known or self._sum(target, left, payload)
                return
        payloads = [payload] if type(sent) is int else payload
        adds = kind == RECV_REDUCE or kind == COMBINE
        sums, add = self.symbols.sums, self._sum
        for position, (chunk, symbol) in enumerate(zip(listed(target), payloads, strict=True)):
            if sent != target or self.protected:
                self._check_place(rank, chunk, symbol, listed(sent)[position])
            if adds:
                left = row[chunk]
                symbol = sums.get((left, symbol) if left < symbol else (symbol, left)) or add(chunk, left, symbol)
            row[chunk] = symbol

    def extra_slots(self) -> int:
        """Return how many slots were used beside output (and input, where it may be overwritten), at the most."""
        schedule = self.schedule
        most = 0
        for rank, row in enumerate(self.rows):
            where = (rank, schedule.size, schedule.chunks, schedule.root or 0)
            before, after = self.collective.held_before(*where), self.collective.held_after(*where)
            inputs = self.symbols.inputs(rank)
            used = sum(
                symbol != NOTHING
                and slot not in after
                and (slot not in before or (self.collective.keeps_input and symbol != inputs[slot]))
                for slot, symbol in enumerate(row)
            )
            most = max(most, used)
        return most

    def _check_place(self, rank: int, chunk: int, symbol: int, sent: int) -> None:
        """Rules 2 and 4."""
        if chunk < self.protected:
            raise HazardError(
                f"slot {chunk} is input, which is left as it was", chunk=chunk,
                expected=f"a slot of the output ({self.protected} to {2 * self.protected - 1}) or scratch",
            )  # fmt: skip
        if self.protected and chunk < 2 * self.protected:
            per_rank = self.schedule.chunks // self.schedule.size
            source, piece = divmod(chunk - self.protected, per_rank)
            own = (rank * per_rank + piece, 1 << source)
            self.displaced |= (self.symbols.origin[symbol], self.symbols.ranks[symbol]) != own
        if not self.protected and chunk < self.schedule.chunks and self.symbols.origin[symbol] != chunk:
            raise UnmatchedError(
                f"chunk {chunk} is given the data of another chunk", chunk=chunk,
                expected=f"chunk {chunk} of some ranks",
                found=f"{describe(self.symbols.value(symbol))} (the sender's chunk {sent})",
                hint="make the send and its receive name the same chunks",
            )  # fmt: skip

    def _sum(self, chunk: int, left: int, right: int) -> int:
        """Add two symbols (rules 1 and 3)."""
        symbols = self.symbols
        if not left:
            raise HazardError(
                f"something is added to chunk {chunk}, but nothing was ever put there",
                chunk=chunk, expected="an input, or something received or copied into it before",
                found="nothing", hint=f"use {RECV} or {COPY} for the first thing that goes there",
            )  # fmt: skip
        if not self.collective.carries_data:
            # Hearing of a rank twice does no harm: the symbol is the set of ranks heard of.
            if not symbols.ranks[right] & ~symbols.ranks[left]:
                return left
            return right if not symbols.ranks[left] & ~symbols.ranks[right] else symbols.add(left, right)
        if symbols.origin[left] != symbols.origin[right]:
            raise GoalError(
                "two different chunks are added to each other", chunk=chunk,
                expected=describe(symbols.value(left)).split(" of ")[0] + " of other ranks",
                found=describe(symbols.value(right)),
                hint="add only chunks of the same number; use another scratch slot for each chunk",
            )  # fmt: skip
        twice = symbols.ranks[left] & symbols.ranks[right]
        if twice:
            raise GoalError(
                f"the input of rank {ranks_in(twice)[0]} is counted twice", chunk=chunk,
                expected="two sums that have no rank in common",
                found=f"{describe(symbols.value(left))}; plus {describe(symbols.value(right))}",
                hint=f"{RECV} instead of {RECV_REDUCE} where a finished sum arrives",
            )  # fmt: skip
        return symbols.add(left, right)
