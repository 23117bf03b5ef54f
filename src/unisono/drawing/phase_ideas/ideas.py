"""Selects the sentence that says the idea of a phase, and fills in its numbers.

Each phase of a built-in algorithm has its sentence. The phases of other programs are described by the collective that
they run, or else by what their messages do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from unisono.algorithms import BUILT_IN as BUILT_IN_ALGORITHMS
from unisono.algorithms import Algorithm
from unisono.algorithms.nodes import nodes_of
from unisono.collectives import Words
from unisono.drawing.phase_ideas.all_reduce import ALL_REDUCE, ALL_REDUCE_FOLDED
from unisono.drawing.phase_ideas.common import ONE_NODE, Phases
from unisono.drawing.phase_ideas.exchanging import EXCHANGING
from unisono.drawing.phase_ideas.others import OF_COLLECTIVES, OF_MESSAGES, TO_LEFT, TO_RIGHT
from unisono.drawing.phase_ideas.rooted import ROOTED
from unisono.drawing.phase_ideas.sharing import SHARING, SHARING_FOLDED
from unisono.drawing.step_capture import StepCapture
from unisono.message import LANGUAGES
from unisono.schedule import Schedule

Phase = Mapping[str, Any]

BUILT_IN: Phases = {**ROOTED, **SHARING, **ALL_REDUCE, **EXCHANGING}
FOLDED = {**SHARING_FOLDED, **ALL_REDUCE_FOLDED}


def with_ideas(
    phases: list[dict[str, Any]], schedule: Schedule, algorithm: Algorithm | None, capture: StepCapture
) -> list[dict[str, Any]]:
    """Return the phases with the sentence that says the idea of each, in each language."""
    seen: Counter[str] = Counter()
    found = []
    for phase in phases:
        name = phase["words"]["en"]
        messages = _messages_in(phase, capture)
        idea = _known(algorithm, name, seen[name], schedule) or OF_COLLECTIVES.get(name)
        idea = idea or _derived(name, messages, schedule.size)
        seen[name] += 1
        numbers = _numbers(phase, schedule, algorithm, len(messages))
        found.append({**phase, "idea": {language: _filled(idea, numbers, language) for language in LANGUAGES}})
    return found


def _known(algorithm: Algorithm | None, name: str, occurrence: int, schedule: Schedule) -> Words | None:
    """Return the sentence for a phase of a built-in algorithm; None if it has none."""
    if algorithm is None or algorithm not in BUILT_IN_ALGORITHMS:
        return None
    folded = FOLDED.get((str(algorithm), name))
    if folded and schedule.size & (schedule.size - 1):
        return folded
    ideas = BUILT_IN.get(str(algorithm), {}).get(name)
    idea = ideas[min(occurrence, len(ideas) - 1)] if isinstance(ideas, list) else ideas
    between_nodes = idea is None or "{nodes" in idea.en
    return ONE_NODE if between_nodes and _node_count(schedule, algorithm) == 1 else idea


def _node_count(schedule: Schedule, algorithm: Algorithm | None) -> int | None:
    """Return the number of nodes of a hierarchical algorithm; None for others."""
    options = {**(algorithm.options if algorithm else {}), **schedule.options}
    return None if options.get("node") is None else len(nodes_of(schedule.size, options["node"]))


def _messages_in(phase: Phase, capture: StepCapture) -> list[tuple[int, int]]:
    """Return sender and receiver of every message that is received in a phase, or else sent in it."""
    columns = capture.messages
    level = columns["got"].copy()
    level[level < 0] = columns["sent"][level < 0]
    chosen = (level >= phase["first"]) & (level <= phase["last"])
    return list(zip(columns["src"][chosen].tolist(), columns["dst"][chosen].tolist(), strict=True))


def _derived(name: str, messages: list[tuple[int, int]], size: int) -> Words:
    """Return the sentence for a phase of which only the messages are known."""
    idea = OF_MESSAGES[name]
    if not messages or size < 3:
        return idea
    distances = {(dst - src) % size for src, dst in messages}
    clause = {1: TO_RIGHT, size - 1: TO_LEFT}.get(distances.pop()) if len(distances) == 1 else None
    return Words(clause.en.format(idea=idea.en), clause.zh.format(idea=idea.zh)) if clause else idea


def _numbers(phase: Phase, schedule: Schedule, algorithm: Algorithm | None, messages: int) -> dict[str, int]:
    steps = phase["last"] - phase["first"] + 1
    return {
        "steps": steps, "messages": messages, "size": schedule.size, "chunks": schedule.chunks,
        "root": schedule.root or 0, "nodes": _node_count(schedule, algorithm) or 1,
    }  # fmt: skip


def _filled(idea: Words, numbers: Mapping[str, int], language: str) -> str:
    """Return the sentence with its numbers; English nouns in the singular or plural."""
    text: str = getattr(idea, language)
    if language == "en":
        plural = {"steps": "step", "messages": "message", "nodes": "node", "chunks": "chunk"}
        counted = {
            f"{name}_": f"{numbers[name]} {one}{'' if numbers[name] == 1 else 's'}" for name, one in plural.items()
        }
        return text.format(**numbers, **counted)
    return text.format(**numbers)
