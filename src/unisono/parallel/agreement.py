"""Checks that split modules are cut from the same whole on every rank, when they are created."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from unisono.errors import UsageError
from unisono.parallel.checks import digest_of
from unisono.parallel.group import Group
from unisono.parallel.messages import DIFFERENT_LAYERS, INITIAL_WEIGHTS_DIFFER, SETTINGS_DIFFER


def require_same(group: Group, location: str, settings: dict[str, Any], weights: list[Tensor | None]) -> None:
    """Raise on every rank if the settings of a module, or its weights, differ between ranks. All ranks call this."""
    description = settings | {
        "weights": [digest_of(weight) for weight in weights if weight is not None and not weight.is_meta]
    }
    descriptions = group.all_gather_object((location, description))
    expected_location, expected = descriptions[0]
    for rank, (their_location, theirs) in enumerate(descriptions):
        if their_location != expected_location:
            raise UsageError(DIFFERENT_LAYERS(expected=expected_location, rank=rank, found=their_location))
        for setting, value in expected.items():
            if theirs[setting] == value:
                continue
            if setting == "weights":
                raise UsageError(INITIAL_WEIGHTS_DIFFER(location=location, rank=rank))
            raise UsageError(
                SETTINGS_DIFFER(location=location, setting=setting, expected=value, found=theirs[setting], rank=rank)
            )
