"""Converts the proof of a schedule, or the error that prevents it, into plain data for the page."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from unisono.errors import ScheduleError
from unisono.message import LANGUAGES, translated
from unisono.verifier import Proof

LONGEST_TREE = 64  # characters
SENTENCES = ("what", "expected", "found", "hint")  # of an error


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
    """Return the error of a schedule with its sentences in each language, and the level on which it appears."""
    sentences = {name: text for name in SENTENCES if (text := getattr(error, name)) is not None}
    said = {
        language: {name: translated(text, language) for name, text in sentences.items()} for language in LANGUAGES
    }
    texts = {language: error.text(language) for language in LANGUAGES}
    return {**error.context(), "said": said, "texts": texts, "level": level}


def _part(value: Fraction) -> dict[str, Any]:
    return {"text": str(value), "value": float(value)}
