"""Facts about a schedule that captions state: messages, sums, and the ranks that are idle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from unisono.algorithms import find
from unisono.drawing.scene import Scene, example_inputs, scene_of
from unisono.drawing.step_capture import StepCapture, capture_steps
from unisono.notation import expression
from unisono.player import Frame, play
from unisono.schedule import Schedule
from unisono.verifier import Proof, prove


@dataclass(frozen=True)
class Trace:
    """A schedule that has been run: its proof, its messages, and the slots of every rank on each level."""

    schedule: Schedule

    @classmethod
    def of(cls, name: str, size: int, **options: int) -> Trace:
        """Run a built-in algorithm."""
        return cls(find(name).schedule(size, **options))

    @cached_property
    def proof(self) -> Proof:
        """The proof of the schedule."""
        return prove(self.schedule)

    @cached_property
    def scene(self) -> Scene:
        """The scene of the schedule, if it is that of a built-in algorithm."""
        return scene_of(self.schedule, find(f"{self.schedule.collective}/{self.schedule.algorithm}"))

    @property
    def levels(self) -> int:
        """The number of levels, which are the steps of the page."""
        return self._capture.last_level

    def messages(self, level: int) -> list[tuple[int, int]]:
        """Return the source and the destination of every message that is received on a level."""
        columns = self._capture.messages
        chosen = columns["got"] == level
        return list(zip(columns["src"][chosen].tolist(), columns["dst"][chosen].tolist(), strict=True))

    def sent_chunks(self, src: int, dst: int) -> int:
        """Return the number of chunks that one rank sends to another."""
        columns = self._capture.messages
        return int(columns["amount"][(columns["src"] == src) & (columns["dst"] == dst)].sum())

    def idle(self, level: int) -> list[int]:
        """Return the ranks that neither send nor receive on a level."""
        busy = {rank for pair in self.messages(level) for rank in pair}
        return [rank for rank in range(self.schedule.size) if rank not in busy]

    def summed(self, level: int, rank: int, chunk: int = 0) -> list[int]:
        """Return the ranks whose data are summed in a slot of a rank after a level; none if it is empty."""
        cell = self._frames[level].rows[rank][chunk]
        held = 0 if cell is None else cell.ranks
        return [peer for peer in range(self.schedule.size) if held >> peer & 1]

    def sum_text(self, level: int, rank: int, chunk: int = 0) -> str:
        """Return the contents of a slot in the notation of the page: a0+a3."""
        return expression(chunk, self.summed(level, rank, chunk))

    def value(self, level: int, rank: int, chunk: int = 0) -> int:
        """Return the number in a slot of a rank after a level, as the page shows it."""
        cell = self._frames[level].rows[rank][chunk]
        assert cell is not None
        return int(cell.values.item())

    def complete(self, level: int) -> list[tuple[int, int]]:
        """Return rank and chunk of every slot that holds the whole sum after a level."""
        size = self.schedule.size
        return [
            (rank, chunk)
            for rank in range(size)
            for chunk in range(self.schedule.chunks)
            if len(self.summed(level, rank, chunk)) == size
        ]

    @cached_property
    def first_complete(self) -> tuple[int, list[tuple[int, int]]]:
        """The first level after which some slot holds the whole sum, and rank and chunk of each such slot."""
        level = next(level for level in range(self.levels + 1) if self.complete(level))
        return level, self.complete(level)

    @cached_property
    def _capture(self) -> StepCapture:
        return capture_steps(self.schedule)

    @cached_property
    def _frames(self) -> list[Frame]:
        return list(play(self.schedule, example_inputs(self.schedule), record=True).frames())


def joined(numbers: Iterable[int], word: str) -> str:
    """Return numbers as part of a sentence: "2 and 3", "1, 2 and 3"; in Chinese "1、2 和 3"."""
    texts = [str(number) for number in numbers]
    comma = "、" if word == "和" else ", "
    return texts[0] if len(texts) == 1 else f"{comma.join(texts[:-1])} {word} {texts[-1]}"
