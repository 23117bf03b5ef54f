"""Builds a scene: everything that the page needs to draw one schedule, as plain data.

The page replays the messages itself, so a scene holds the inputs, the messages in columns (``packed``), the goal, and
the words, programs and facts about them. The times of a recorded run are not part of it, since many calls share one
schedule: see ``run_data.py``.
"""

from __future__ import annotations

import dataclasses
import inspect
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unisono import collectives
from unisono.algorithms import BUILT_IN, Algorithm
from unisono.collectives import Collective
from unisono.drawing import messages
from unisono.drawing.facts import facts_of, failure_of
from unisono.drawing.layout import pairs_of, pattern
from unisono.drawing.packing import pack
from unisono.drawing.phase_ideas import with_ideas
from unisono.drawing.phases import phases
from unisono.drawing.programs import program_texts
from unisono.drawing.source_lines import LineFinder
from unisono.drawing.step_capture import Column, StepCapture, capture_steps
from unisono.errors import ScheduleError, UsageError
from unisono.schedule import FrozenSchedule, Schedule, freeze
from unisono.verifier import proved
from unisono.verifier.hints import with_name

Scene = dict[str, Any]

MOST_RANKS = 1024
MOST_RANKS_ON_STAGE = 64
MOST_RANKS_IN_NODES = 8  # with more ranks, links are easier to see in a ring
MOST_SLOTS_ON_STAGE = 20_000  # total of all ranks
MOST_RANKS_FOLLOWED = 256  # source lines; with more ranks only those of rank 0
MOST_STATES_ON_STAGE = 4_000_000  # slots times steps
EVERYONE = -1  # in the goal column: the sum of the chunks of all ranks


def scene_of(
    schedule: Schedule,
    algorithm: Algorithm | None = None,
    *,
    inputs: Sequence[Sequence[int] | None] | None = None,
    name: str | None = None,
) -> Scene:
    """Prove a schedule, run it, and return its scene. A schedule that fails its proof is run up to the failure.

    ``algorithm`` is the one that made the schedule, if known; ``inputs`` holds the numbers of each rank, one for each
    chunk of its input; ``name`` is the name or file that the user gave, for the command in a hint.
    """
    if schedule.size > MOST_RANKS:
        raise UsageError(messages.TOO_MANY_RANKS(label=schedule.label, size=schedule.size, most=MOST_RANKS))
    collective = collectives.find(schedule.collective)
    finder = LineFinder()
    played = _run_once(schedule, finder)
    proof, error = None, None
    try:
        found = proved(played)
        proof, played = found.proof, found.schedule  # draw the steps that were proved
    except ScheduleError as failed:
        error = with_name(failed, name or _name_of(algorithm), schedule.root, schedule.options)
    on_stage = schedule.size <= MOST_RANKS_ON_STAGE and schedule.size * schedule.slots <= MOST_SLOTS_ON_STAGE
    capture, stacks = capture_steps(played), finder.stacks
    on_stage = on_stage and sum(map(len, capture.levels)) * schedule.slots <= MOST_STATES_ON_STAGE
    failure = None
    if error is not None:
        level = _failing_level(error, capture)
        capture = _until(capture, level)
        failure = failure_of(error, level)
    options = _options(schedule, algorithm)
    numbers = (inputs or example_inputs(schedule)) if on_stage else None
    code = program_texts(algorithm, played, stacks, with_text=on_stage)
    return {
        **_heading(schedule, algorithm),
        "command": _command(name or _name_of(algorithm), schedule),
        "on_stage": on_stage,
        "parts": _parts(schedule, collective),
        "levels": max(capture.last_level, failure["level"] if failure else 0),
        "phases": with_ideas(phases(collective, algorithm, capture, stacks), schedule, algorithm, capture),
        "layout": pattern(schedule, capture.messages, options),
        "pairs": pairs_of(schedule.size, capture.messages) if on_stage else [],
        "code": {key: code[key] for key in ("sources", "stacks", "text")},
        "facts": facts_of(proof) if proof else None,
        "failure": failure,
        "packed": pack(_columns(schedule, collective, capture, code["of_step"], numbers)),
    }  # fmt: skip


def _command(name: str | None, schedule: Schedule) -> str | None:
    """Return the command that draws a schedule; None if no command finds the name of its algorithm."""
    if name is None:
        return None
    words = ["unisono", "draw", name, "-n", f"{schedule.size}"]
    if schedule.root:
        words += ["--root", f"{schedule.root}"]
    for option, value in schedule.options.items():
        words += ["--option", f"{option}={value}"]
    return shlex.join(words)


def _name_of(algorithm: Algorithm | None) -> str | None:
    """Return the name by which a command finds an algorithm; None if it is in no file, or inside another function."""
    if algorithm is None:
        return None
    if algorithm in BUILT_IN:
        return str(algorithm)
    function = inspect.unwrap(algorithm.function)
    path = Path(function.__code__.co_filename)
    if not path.is_file() or "<locals>" in function.__qualname__:
        return None
    here = Path.cwd()
    return f"{path.relative_to(here) if path.is_relative_to(here) else path}:{function.__name__}"


def outline_of(schedule: Schedule, algorithm: Algorithm | None = None) -> Scene:
    """Return what a page says about a schedule that is too large to draw; it is not run."""
    nothing = {"levels": 0, "facts": None, "failure": None, "packed": None}
    return {**_heading(schedule, algorithm), "on_stage": False, **nothing}


def on_hosts(scene: Scene, hosts: Sequence[Sequence[int]]) -> Scene:
    """Return the scene with the hosts of a network as its nodes, where a host has several ranks."""
    if len(hosts) == 1 or len(hosts) == scene["size"]:
        return scene
    nodes = [list(ranks) for ranks in hosts]
    best = "nodes" if scene["size"] <= MOST_RANKS_IN_NODES else "ring"
    return {**scene, "hosts": nodes, "layout": {**scene["layout"], "nodes": nodes, "best": best}}


def _options(schedule: Schedule, algorithm: Algorithm | None) -> dict[str, Any]:
    return {**algorithm.options, **schedule.options} if algorithm else dict(schedule.options)


def _heading(schedule: Schedule, algorithm: Algorithm | None) -> dict[str, Any]:
    options = _options(schedule, algorithm)
    return {
        "label": schedule.label,
        "collective": _about(collectives.find(schedule.collective)),
        "algorithm": {
            "name": schedule.algorithm,
            "idea": {language: algorithm.idea_in(language) if algorithm else "" for language in ("en", "zh")},
            "options": {name: str(value) for name, value in options.items() if value is not None},
        },
        "size": schedule.size, "chunks": schedule.chunks, "slots": schedule.slots, "root": schedule.root,
    }  # fmt: skip


def example_inputs(schedule: Schedule) -> list[list[int] | None]:
    """Return numbers that are easy to follow, one for each chunk of a rank's input; None for ranks that have
    none.

    Where numbers are added, chunk c of rank r is r + c. Elsewhere it is r and c side by side: 23 is chunk 3
    of rank 2.
    """
    collective = collectives.find(schedule.collective)
    shift = 10 ** len(str(max(schedule.size, schedule.chunks) - 1))
    factor = 1 if collective.reduces else shift
    inputs: list[list[int] | None] = []
    for rank in range(schedule.size):
        held = collective.held_before(rank, schedule.size, schedule.chunks, schedule.root or 0)
        inputs.append([factor * rank + chunk for chunk in held] if len(held) else None)
    return inputs


def _run_once(schedule: Schedule, finder: LineFinder) -> Schedule:
    """Run the programs, and find the line that yields each step.

    One that makes no sense is run again when it is played, up to where it fails.
    """

    def made(rank: int) -> Any:
        steps: Any = schedule.make(rank)
        followed = rank == 0 or schedule.size <= MOST_RANKS_FOLLOWED
        # The network refuses what is not a program, with an error.
        return finder.run(rank, steps) if followed and hasattr(steps, "__iter__") else steps

    followed = schedule if isinstance(schedule, FrozenSchedule) else dataclasses.replace(schedule, make=made)
    try:
        return freeze(followed)
    except ScheduleError:
        return followed


def _failing_level(error: ScheduleError, capture: StepCapture) -> int:
    if error.rank is None or error.step is None:
        return capture.last_level
    levels = capture.levels[error.rank]
    if error.step < len(levels):
        return levels[error.step]
    return levels[-1] + 1 if levels else 1


def _until(capture: StepCapture, level: int) -> StepCapture:
    """Return the events up to a level."""
    messages, local = capture.messages, capture.locals
    late = (messages["got"] > level) & (messages["sent"] <= level)
    messages = {**messages, "got": np.where(late, -1, messages["got"]).astype(np.int32)}
    return dataclasses.replace(
        capture,
        messages=_chosen(messages, messages["sent"] <= level),
        locals=_chosen(local, (local["level"] <= level) & (local["level"] >= 0)),
        levels=[[reached for reached in levels if reached <= level] for levels in capture.levels],
    )


def _chosen(columns: Mapping[str, Column], keep: np.ndarray) -> dict[str, Column]:
    by_chunk = np.repeat(keep, columns["amount"])
    return {name: column[by_chunk if name.endswith("_chunks") else keep] for name, column in columns.items()}


def _about(collective: Collective) -> dict[str, Any]:
    return {
        "name": collective.name, "title": collective.name.replace("_", "-"),
        "summary": collective.summary._asdict(), "story": collective.story._asdict(),
        "reduces": collective.reduces, "carries_data": collective.carries_data, "rooted": collective.rooted,
        "shares_result": collective.shares_result, "result_on_root": collective.after.others is collectives.NOTHING,
    }  # fmt: skip


def _parts(schedule: Schedule, collective: Collective) -> list[dict[str, Any]]:
    """Return the parts of the slots of a rank: data, or input and output; and scratch."""
    rows = collective.slots(schedule.chunks)
    names = ("data",) if len(rows) == 1 else ("input", "output")
    parts = [{"name": name, "first": row.start, "count": len(row)} for name, row in zip(names, rows, strict=True)]
    scratch = schedule.slots - rows[-1].stop
    if scratch:
        parts.append({"name": "scratch", "first": rows[-1].stop, "count": scratch})
    return parts


def _columns(
    schedule: Schedule,
    collective: Collective,
    capture: StepCapture,
    of_step: Mapping[int, list[int]],
    numbers: Sequence[Sequence[int] | None] | None,
) -> dict[str, Any]:
    """Return the long lists of numbers; without ``numbers``, those that need no stage."""
    size, chunks, root = schedule.size, schedule.chunks, schedule.root or 0
    columns: dict[str, Any] = {f"message_{name}": column for name, column in capture.messages.items()}
    columns |= {f"local_{name}": column for name, column in capture.locals.items()}
    before = [collective.held_before(rank, size, chunks, root) for rank in range(size)]
    columns["input_count"] = [len(held) for held in before]
    columns["step_count"] = [len(levels) for levels in capture.levels]
    columns["step_level"] = [level for levels in capture.levels for level in levels]
    columns["step_stack"] = [
        (of_step.get(rank, [])[index : index + 1] or [-1])[0]
        for rank, levels in enumerate(capture.levels)
        for index in range(len(levels))
    ]
    columns["input_slot"] = [slot for held in before for slot in held]
    if numbers is None:
        return columns
    columns["input_value"] = [value for values in numbers for value in values or []]
    goals = [list(collective.goal(rank, size, chunks, root)) for rank in range(size)]
    columns["goal_count"] = [len(goal) for goal in goals]
    columns["goal_slot"] = [slot for goal in goals for slot, _ in goal]
    columns["goal_origin"] = [value.origin for goal in goals for _, value in goal]
    columns["goal_rank"] = [
        EVERYONE if collective.reduces else value.ranks.bit_length() - 1 for goal in goals for _, value in goal
    ]
    return columns
