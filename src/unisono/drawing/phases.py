"""Finds the phases of an algorithm, such as reduce-scatter followed by all-gather, from its composition.

A step belongs to the first declared algorithm that the program runs with ``yield from`` (forwards: run backwards it
is another collective). If there is none, the messages of the step define the phase: they are added, they are copied,
or nothing is sent.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import Any

from unisono.algorithms import BUILT_IN, Algorithm
from unisono.collectives import Collective, Words
from unisono.drawing.source_lines import Stack
from unisono.drawing.step_capture import StepCapture

ADDING = Words("summing", "求和")
COPYING = Words("forwarding", "转发")
TELLING = Words("announcing arrivals", "通知到达")
INSIDE = Words("local work", "本地计算")


def phases(
    collective: Collective,
    algorithm: Algorithm | None,
    capture: StepCapture,
    stacks: Mapping[int, Sequence[Stack]],
) -> list[dict[str, Any]]:
    """Return the phases in order: words for each one, and its first and last level."""
    named = _names_by_level(algorithm, capture, stacks) if algorithm else {}
    meant = _meanings_by_level(collective, capture)
    found: list[dict[str, Any]] = []
    for level in range(1, capture.last_level + 1):
        words = named.get(level) or meant.get(level, INSIDE)
        if found and found[-1]["words"] == words._asdict():
            found[-1]["last"] = level
        else:
            found.append({"words": words._asdict(), "first": level, "last": level})
    return found


def _names_by_level(
    algorithm: Algorithm, capture: StepCapture, stacks: Mapping[int, Sequence[Stack]]
) -> dict[int, Words]:
    """Return for each level the collective that most ranks are running, if they are running one."""
    known = _declared(algorithm)
    inner = {
        rank: [[known[code] for code, _, reverse in stack[1:] if code in known and not reverse] for stack in of_rank]
        for rank, of_rank in stacks.items()
    }
    every = [algorithms for of_rank in inner.values() for algorithms in of_rank]
    # A program that only runs another one, as the torus does, has the phases of that one.
    while every and all(every) and len({id(algorithms[0]) for algorithms in every}) == 1:
        for algorithms in every:
            del algorithms[0]
    counts: dict[int, Counter[str]] = {}
    for rank, of_rank in inner.items():
        for algorithms, level in zip(of_rank, capture.levels[rank], strict=False):
            name = algorithms[0].collective.name if algorithms else ""
            counts.setdefault(level, Counter())[name] += 1
    names = {level: count.most_common(1)[0][0] for level, count in counts.items()}
    titles = {level: name.replace("_", "-") for level, name in names.items() if name}
    return {level: Words(title, title) for level, title in titles.items()}


def _declared(algorithm: Algorithm) -> dict[CodeType, Algorithm]:
    """Return the algorithms that this one may run, by their code: the built-in ones and those in its module."""
    around = inspect.unwrap(algorithm.function).__globals__.values()
    others = [value for value in around if isinstance(value, Algorithm)]
    return {inspect.unwrap(other.function).__code__: other for other in (*BUILT_IN, *others)}


def _meanings_by_level(collective: Collective, capture: StepCapture) -> dict[int, Words]:
    """Return for each level what most of the messages do that are received on it, or else sent."""
    meaning = (COPYING, ADDING) if collective.carries_data else (TELLING, TELLING)
    found: dict[int, Words] = {}
    for when in ("sent", "got"):
        counts: dict[int, Counter[Words]] = {}
        levels, adds = capture.messages[when].tolist(), capture.messages["reduce"].tolist()
        for level, adding in zip(levels, adds, strict=True):
            counts.setdefault(level, Counter())[meaning[adding]] += 1
        found |= {level: count.most_common(1)[0][0] for level, count in counts.items()}
    return found
