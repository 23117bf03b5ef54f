"""A proved schedule: the steps, and the proof of exactly these steps.

Only the verifier creates one, and the compiler accepts nothing else, so the engine runs only steps that were proved.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, replace
from typing import Any

from unisono.errors import UsageError
from unisono.schedule import FrozenSchedule
from unisono.verifier import messages
from unisono.verifier.proof import Proof

SEAL = object()  # known to the verifier only


@dataclass(frozen=True)
class Rounding:
    """The proof that ranks agree although a codec rounds the data that they send (rounding.py)."""

    algorithm: str
    size: int
    at_random: bool
    last: bool  # whether every rank must round its result once more: without it they would not agree


@dataclass(frozen=True, eq=False)
class ProvedSchedule:
    """Steps and their proof; with ``rounding``, also that all ranks agree where a codec rounds what is sent."""

    schedule: FrozenSchedule
    proof: Proof
    digest: str  # of the steps, and of all else that the proof depends on: the ranks of a job compare it
    cached: bool  # whether the proof was made earlier
    rounding: Rounding | None = None  # None: nothing is rounded
    seal: InitVar[object] = None  # not stored, so that it cannot be read from here

    def __post_init__(self, seal: object) -> None:
        if seal is not SEAL:
            raise UsageError(messages.ONLY_THE_VERIFIER())

    def with_rounding(self, rounding: Rounding, seal: object) -> ProvedSchedule:
        """Return the same with a proof about codecs; for the verifier."""
        return replace(self, rounding=rounding, seal=seal)

    def __reduce__(self) -> Any:
        raise UsageError(messages.NOT_COPIED())
