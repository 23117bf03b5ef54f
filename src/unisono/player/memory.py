"""The player's memory: slots that hold numbers, and the ranks whose inputs are summed in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from unisono.errors import HazardError
from unisono.player import messages
from unisono.player.reduction import Array, rounded
from unisono.schedule import Chunks, Op
from unisono.schedule.accumulation import Accumulation
from unisono.schedule.ops import COMBINE, RECV_REDUCE, listed


class Cell(NamedTuple):
    """The content of a slot: numbers, the ranks whose input is in them, and those counted twice (bit sets)."""

    values: Array
    ranks: int
    repeated: int = 0


class NumberMemory:
    """The slots of all ranks. Arrays are never changed, only replaced, so that a state can be kept."""

    def __init__(
        self,
        rows: list[list[Cell | None]],
        add: Callable[[Array, Array], Array],
        hearing: bool = False,
        add_wide: Callable[[Array, Array], Array] | None = None,
        round_sent: Callable[[Array], Array] | None = None,
    ) -> None:
        self.rows = rows
        self.add = add
        self.add_wide = add_wide or add
        self.accumulations = [Accumulation() for _ in rows]
        self.wide: list[dict[int, Array]] = [{} for _ in rows]  # sums of the current accumulation, before rounding
        # In a barrier a message carries the ranks that its sender knows of, whatever its chunk is.
        self.hearing = hearing
        self.round_sent = round_sent  # the rounding of a codec, applied to a chunk that is sent

    def read(self, rank: int, chunks: Chunks) -> list[Cell]:
        """Return the cells that are sent."""
        self.accumulations[rank].end()
        cells = []
        for chunk in [0] if self.hearing else listed(chunks):
            cell = self.rows[rank][chunk]
            if cell is None:
                raise HazardError(messages.READ_BEFORE_WRITTEN(chunk=chunk), chunk=chunk)
            cells.append(cell)
        return cells

    def send(self, rank: int, chunks: Chunks) -> list[Cell]:
        """Return the cells that are sent; the sender keeps the rounded ones."""
        cells = self.read(rank, chunks)
        if self.round_sent is not None:
            cells = [cell._replace(values=self.round_sent(cell.values)) for cell in cells]
            for chunk, cell in zip(listed(chunks), cells, strict=True):
                self.rows[rank][chunk] = cell
        return cells

    def write(self, rank: int, op: Op, sent: Chunks, payload: Any) -> None:
        """Overwrite slots, or add to them."""
        row = self.rows[rank]
        target = [0] if self.hearing else listed(op.other if op.is_local else op.chunks)
        continues = self.accumulations[rank].continues(op)
        for chunk, cell in zip(target, payload, strict=True):
            if self.hearing or op.kind in (RECV_REDUCE, COMBINE):
                here = row[chunk]
                if here is None:
                    raise HazardError(messages.ADDED_TO_NOTHING(chunk=chunk), chunk=chunk)
                if len(here.values) != len(cell.values):
                    different = messages.DIFFERENT_LENGTHS(
                        chunk=chunk, length=len(here.values), added=len(cell.values)
                    )
                    raise HazardError(different, chunk=chunk)
                twice = 0 if self.hearing else here.ranks & cell.ranks
                cell = Cell(
                    self._sum(rank, chunk, here.values, cell.values, continues),
                    here.ranks | cell.ranks,
                    here.repeated | cell.repeated | twice,
                )
            row[chunk] = cell

    def _sum(self, rank: int, chunk: int, here: Array, more: Array, continues: bool) -> Array:
        """Add; in an accumulation, to the sum before rounding."""
        if self.add_wide is self.add:
            return self.add(here, more)
        wide = self.add_wide(self.wide[rank][chunk] if continues else here, more)
        self.wide[rank][chunk] = wide
        return rounded(wide, here.dtype)
