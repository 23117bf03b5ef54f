"""Collects the source text of the programs, and the line of each step."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

from unisono.algorithms import Algorithm
from unisono.drawing.source_lines import Stack
from unisono.schedule import Schedule
from unisono.schedule.text import format_step


def program_texts(
    algorithm: Algorithm | None, schedule: Schedule, stacks: Mapping[int, Sequence[Stack]], with_text: bool = True
) -> dict[str, Any]:
    """Return the sources, and every different stack as a list of [source, line in it, runs backwards].

    ``of_step`` holds, for each rank, the number of the stack of each of its steps. A schedule without a program is
    shown as text, if ``with_text``: the steps of each rank are its lines.
    """
    if algorithm is None:
        return {"sources": [], "stacks": [], "of_step": {}, "text": _as_text(schedule) if with_text else None}
    sources = _Sources()
    sources.number_of(inspect.unwrap(algorithm.function).__code__)  # the program itself comes first
    numbers: dict[Stack, int] = {}
    shown: list[list[list[int]]] = []
    of_step: dict[int, list[int]] = {}
    for rank, of_rank in stacks.items():
        of_step[rank] = []
        for stack in of_rank:
            if stack not in numbers:
                numbers[stack] = len(shown)
                shown.append([
                    [number, line - code.co_firstlineno, int(reverse)]
                    for code, line, reverse in stack
                    if (number := sources.number_of(code)) >= 0
                ])  # fmt: skip
            of_step[rank].append(numbers[stack])
    return {"sources": sources.shown, "stacks": shown, "of_step": of_step, "text": None}


def _as_text(schedule: Schedule) -> list[list[str]]:
    """Return the lines of each rank: a heading, then its steps, which a page counts from 1."""
    return [
        [
            f"rank {rank}",
            *(f"  {number}: {format_step(step)}" for number, step in enumerate(schedule.program(rank), 1)),
        ]
        for rank in range(schedule.size)
    ]


class _Sources:
    def __init__(self) -> None:
        self.numbers: dict[CodeType, int] = {}
        self.shown: list[dict[str, Any]] = []

    def number_of(self, code: CodeType) -> int:
        """Return the number of a source, or -1 if it cannot be read."""
        if code not in self.numbers:
            try:
                text = inspect.getsource(code)
            except (OSError, TypeError):
                text = ""
            self.numbers[code] = len(self.shown) if text else -1
            if text:
                self.shown.append({
                    "name": code.co_name, "file": Path(code.co_filename).name, "first": code.co_firstlineno,
                    "text": textwrap.dedent(text).rstrip(),
                })  # fmt: skip
        return self.numbers[code]
