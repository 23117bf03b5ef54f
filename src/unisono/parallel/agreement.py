"""Modules that are split must be cut from the same whole on every rank: found out when they are made."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from unisono.errors import UsageError
from unisono.parallel.checks import digest_of
from unisono.parallel.group import Group


def require_same(group: Group, who: str, facts: dict[str, Any], weights: list[Tensor | None]) -> None:
    """Raise on every rank if what is known of a module, or its weights, differ between ranks. All ranks call this."""
    known = facts | {
        "weights": [digest_of(weight) for weight in weights if weight is not None and not weight.is_meta]
    }
    told = group.all_gather_object((who, known))
    for rank, (their_name, theirs) in enumerate(told):
        if their_name != told[0][0]:
            raise UsageError(f"rank 0 makes {told[0][0]}, rank {rank} makes {their_name}; all ranks make the same")
        for fact, value in told[0][1].items():
            if theirs[fact] == value:
                continue
            if fact == "weights":
                raise UsageError(
                    f"{who}: the first weights of rank {rank} are not those of rank 0; expected the same whole on "
                    "all ranks, of which each keeps its part: call torch.manual_seed() with the same number on all "
                    "ranks before the model is made"
                )
            raise UsageError(f"{who}: {fact}={value} on rank 0, {theirs[fact]} on rank {rank}; expected the same")
