"""What the verifier has found out about a schedule, as plain data for the page."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from unisono.drawing.failure_words import PARTS, in_chinese
from unisono.errors import ScheduleError
from unisono.verifier import Proof

LONGEST_TREE = 64  # characters


def facts_of(proof: Proof) -> dict[str, Any]:
    """Return the facts of a proof; parts of the vector as text, such as 8/5, and as numbers."""
    return {
        "steps": proof.steps, "levels": proof.levels,
        "rounds": proof.rounds, "least_rounds": proof.least_rounds, "latency_ratio": proof.latency_ratio,
        "messages": proof.messages, "messages_per_rank": proof.messages_per_rank,
        "bytes": _part(proof.busiest), "least_bytes": _part(proof.least_bytes),
        "bandwidth_ratio": proof.bandwidth_ratio,
        "memory": _part(proof.extra_memory),
        "tree": proof.tree if len(proof.tree) <= LONGEST_TREE else "",
    }  # fmt: skip


def failure_of(error: ScheduleError, level: int) -> dict[str, Any]:
    """Return what is wrong with a schedule, and on which level it shows."""
    said = error.context()
    english = {part: said[part] for part in PARTS if part in said}
    chinese = {part: in_chinese(text) or text for part, text in english.items()}
    return {**said, "said": {"en": english, "zh": chinese}, "message": str(error), "level": level}


def _part(value: Fraction) -> dict[str, Any]:
    return {"text": str(value), "value": float(value)}
