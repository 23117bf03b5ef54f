"""The verifier's memory: slots that hold symbols, and the rules that every read and write must follow.

1. A slot is never read before it was written.
2. Where input and output share a row, slot c only ever holds chunk c: chunks may differ in length by an element.
3. Only chunks of the same number are added, and no rank is counted twice: such a sum could never be corrected.
4. Where input and output are separate, the input is never changed.
"""

from __future__ import annotations

from typing import Any

from unisono.collectives import Collective
from unisono.errors import GoalError, HazardError, UnmatchedError
from unisono.message import join
from unisono.schedule import Chunks, Op, Schedule
from unisono.schedule.accumulation import Accumulation
from unisono.schedule.network_messages import NAME_SAME_CHUNKS
from unisono.schedule.ops import COMBINE, COPY, RECV, RECV_REDUCE, listed
from unisono.verifier import messages
from unisono.verifier.symbols import NOTHING, Symbols, describe, listing, ranks_in


class SymbolicMemory:
    """The slots of all ranks, holding symbols."""

    def __init__(self, schedule: Schedule, collective: Collective) -> None:
        self.schedule = schedule
        self.collective = collective
        size, chunks = schedule.size, schedule.chunks
        self.symbols = Symbols(size, chunks)
        self.rows: list[list[int]] = []
        # Slots below this number are input, which is never written.
        self.protected = 0 if collective.in_place else chunks
        for rank in range(size):
            row = [NOTHING] * schedule.slots
            held = collective.held_before(rank, size, chunks, schedule.root or 0)
            row[held.start : held.stop] = self.symbols.inputs(rank)[held.start : held.stop]
            self.rows.append(row)
        self.accumulations = [Accumulation() for _ in range(size)]
        self.displaced = False  # whether a slot of a separate output ever held a block that does not belong there

    def read(self, rank: int, chunks: Chunks) -> Any:
        """Return a symbol, or a list of them for several chunks (rule 1)."""
        row = self.rows[rank]
        self.accumulations[rank].chunks = None  # data that is read has been rounded: an accumulation has ended
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
            messages.READ_BEFORE_WRITTEN(chunk=chunk),
            chunk=chunk,
            expected=messages.EARLIER_CONTENT(),
            found=messages.NOTHING(),
            hint=messages.ROOT_HOLDS() if self.collective.rooted else messages.RECEIVE_IT_FIRST(),
        )

    def write(self, rank: int, op: Op, sent: Chunks, payload: Any) -> None:
        """Carry out a receive or a local op."""
        kind, chunks, other = op
        target = other if kind == COPY or kind == COMBINE else chunks
        row = self.rows[rank]
        continues = self.accumulations[rank].continues(op)
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
                known = (
                    None
                    if continues
                    else self.symbols.sums.get((left, payload) if left < payload else (payload, left))
                )
                row[target] = known or self._sum(target, left, payload, continues)
                return
        payloads = [payload] if type(sent) is int else payload
        adds = kind == RECV_REDUCE or kind == COMBINE
        sums, add = self.symbols.sums, self._sum
        for position, (chunk, symbol) in enumerate(zip(listed(target), payloads, strict=True)):
            if sent != target or self.protected:
                self._check_target(rank, chunk, symbol, listed(sent)[position])
            if adds:
                left = row[chunk]
                known = None if continues else sums.get((left, symbol) if left < symbol else (symbol, left))
                symbol = known or add(chunk, left, symbol, continues)
            row[chunk] = symbol

    def extra_slots(self) -> int:
        """Return the most slots that a rank used beside output (and input, where it may be overwritten)."""
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

    def check_goal(self) -> None:
        """Compare the slots of every rank with the post-condition, and ranks with each other (agreement)."""
        schedule, collective, symbols = self.schedule, self.collective, self.symbols
        size, chunks, root = schedule.size, schedule.chunks, schedule.root or 0
        first_with: dict[
            int, tuple[int, int]
        ] = {}  # of each chunk of a shared result: the first rank, and its symbol
        for rank, row in enumerate(self.rows):
            if rank > 0 and collective.shares_result and row[:chunks] == self.rows[0][:chunks]:
                continue  # the same symbols as on rank 0, which were checked
            for slot, wanted in collective.goal(rank, size, chunks, root):
                symbol = row[slot]
                found = symbols.value(symbol)
                if found != wanted:
                    missing = wanted.ranks & ~found.ranks if found.ranks else 0
                    lacking = [messages.MISSING(ranks=listing(ranks_in(missing)))] if missing else []
                    raise GoalError(
                        messages.NOT_THE_RESULT(chunk=slot),
                        algorithm=schedule.label, size=size, rank=rank, chunk=slot, expected=describe(wanted),
                        found=join([describe(found), *lacking]),
                        hint=messages.SHOW_RANK(name="NAME", size=size, rank=rank),
                    )  # fmt: skip
                other, other_symbol = first_with.setdefault(slot, (rank, symbol))
                if collective.reduces and symbol != other_symbol:
                    raise GoalError(
                        messages.OTHER_ORDER(chunk=slot, rank=other),
                        algorithm=schedule.label, size=size, rank=rank, chunk=slot,
                        expected=messages.AS_ON_RANK(rank=other, expression=symbols.expression(other_symbol, 400)),
                        found=messages.ON_RANK(rank=rank, expression=symbols.expression(symbol, 400)),
                        hint=messages.SAME_ORDER(),
                    )  # fmt: skip

    def results(self) -> list[int]:
        """Return the symbols of all chunks of the result, of every rank."""
        return [
            row[slot]
            for rank, row in enumerate(self.rows)
            for slot in self.collective.held_after(
                rank, self.schedule.size, self.schedule.chunks, self.schedule.root or 0
            )
        ]

    def result_tree(self) -> str:
        """Return the expression of the first chunk of the result."""
        return self.symbols.expression(next(iter(self._results().values())))

    def result_trees(self) -> list[str]:
        """Return the expression of each chunk of the result."""
        return [self.symbols.expression(symbol) for _, symbol in sorted(self._results().items())]

    def _results(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for rank, row in enumerate(self.rows):
            schedule = self.schedule
            for slot in self.collective.held_after(rank, schedule.size, schedule.chunks, schedule.root or 0):
                found.setdefault(slot, row[slot])
        return found

    def _check_target(self, rank: int, chunk: int, symbol: int, sent: int) -> None:
        """Check rules 2 and 4."""
        if chunk < self.protected:
            raise HazardError(
                messages.INPUT_IS_KEPT(slot=chunk), chunk=chunk,
                expected=messages.OUTPUT_OR_SCRATCH(first=self.protected, last=2 * self.protected - 1),
            )  # fmt: skip
        if self.protected and chunk < 2 * self.protected:
            per_rank = self.schedule.chunks // self.schedule.size
            source, piece = divmod(chunk - self.protected, per_rank)
            origin = self.symbols.origin[symbol]
            if origin % per_rank != piece:
                raise UnmatchedError(
                    messages.OTHER_PIECE(slot=chunk, piece=piece), chunk=chunk,
                    expected=messages.PIECE(piece=piece), found=messages.PIECE_LENGTHS(piece=origin % per_rank),
                )  # fmt: skip
            self.displaced |= (origin, self.symbols.ranks[symbol]) != (rank * per_rank + piece, 1 << source)
        if not self.protected and chunk < self.schedule.chunks and self.symbols.origin[symbol] != chunk:
            raise UnmatchedError(
                messages.OTHER_CHUNK(chunk=chunk), chunk=chunk, expected=messages.CHUNK_OF_ANY_RANKS(chunk=chunk),
                found=messages.SENT_AS_CHUNK(content=describe(self.symbols.value(symbol)), chunk=sent),
                hint=NAME_SAME_CHUNKS(),
            )  # fmt: skip

    def _sum(self, chunk: int, left: int, right: int, continues: bool) -> int:
        """Add two symbols (rules 1 and 3)."""
        symbols = self.symbols
        if not left:
            raise HazardError(
                messages.ADDED_TO_NOTHING(chunk=chunk), chunk=chunk, expected=messages.CONTENT_BEFORE(),
                found=messages.NOTHING(), hint=messages.WRITE_FIRST(recv=RECV, copy=COPY),
            )  # fmt: skip
        if symbols.origin[left] != symbols.origin[right]:
            raise GoalError(
                messages.DIFFERENT_CHUNKS_ADDED(), chunk=chunk,
                expected=messages.CHUNK_OF_OTHER_RANKS(chunk=symbols.origin[left]),
                found=describe(symbols.value(right)), hint=messages.ADD_SAME_CHUNKS(),
            )  # fmt: skip
        twice = symbols.ranks[left] & symbols.ranks[right]
        if twice:
            raise GoalError(
                messages.COUNTED_TWICE(rank=ranks_in(twice)[0]), chunk=chunk, expected=messages.DISJOINT_SUMS(),
                found=join([describe(symbols.value(left)), messages.PLUS(content=describe(symbols.value(right)))]),
                hint=messages.RECEIVE_FINISHED_SUM(recv=RECV, recv_reduce=RECV_REDUCE),
            )  # fmt: skip
        return symbols.add(left, right, continues)
