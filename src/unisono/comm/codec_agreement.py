"""Which algorithms may be used where a codec rounds what is sent: those with which all ranks still agree."""

from __future__ import annotations

from enum import Enum

from unisono import collectives
from unisono.algorithms.catalogue import serving
from unisono.errors import GoalError
from unisono.schedule import Schedule
from unisono.verifier import ProvedSchedule
from unisono.verifier.rounding import proved_with_codec, rounding_of


class RoundingMode(Enum):
    """How what is sent is rounded, if it is."""

    NONE = "none"
    TO_NEAREST = "to nearest"
    STOCHASTIC = "at random"


def with_codec(proved: ProvedSchedule, rounds: RoundingMode) -> ProvedSchedule:
    """Return what is proved where numbers are rounded in this way; raise GoalError if ranks would not agree."""
    if rounds is RoundingMode.NONE:
        return proved
    try:
        return proved_with_codec(proved, rounds is RoundingMode.STOCHASTIC, warns=False)
    except GoalError as error:
        schedule = proved.schedule
        collective, size = collectives.find(schedule.collective), schedule.size
        others = [one.name for one in serving(collective, size) if agrees(one.schedule(size, schedule.root), rounds)]
        hint = f"call it without a codec, or with another algorithm: {', '.join(others)}"
        raise GoalError(error.what, **{**error.parts(), "hint": hint}) from None


def agrees(schedule: Schedule, rounds: RoundingMode) -> bool:
    """Say whether all ranks get the same numbers."""
    try:
        return rounds is RoundingMode.NONE or bool(
            rounding_of(schedule, rounds is RoundingMode.STOCHASTIC, warns=False)
        )
    except GoalError:
        return False
