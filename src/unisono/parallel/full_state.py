"""The state of a model that is split over ranks, as one process would have it.

::

    full_state_dict        parts on the ranks ── one all-gather per split parameter ──> the whole, on every rank
    load_full_state_dict   the whole, on every rank ── each keeps its part ──> parts; nothing is communicated

A module says by ``splits`` which of its parameters are split, and how. ``module.state_dict()`` is, as ever,
what this rank has: it can be saved and loaded again on as many ranks without any communication.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from unisono.errors import UsageError
from unisono.parallel.split import Split


def full_state_dict(module: nn.Module) -> dict[str, Tensor]:
    """Return the state of the whole model, the same on every rank. All ranks of its groups call this."""
    splits = _splits(module)
    return {
        name: splits[name].gather(value, name=name, phase="update") if name in splits else value.detach().clone()
        for name, value in module.state_dict().items()
    }


def load_full_state_dict(module: nn.Module, state: dict[str, Any]) -> None:
    """Load the state of a whole model, as one process or ``full_state_dict`` has it; each rank keeps its part."""
    own = {}
    splits = _splits(module)
    for name, value in state.items():
        split = splits.get(name)
        if split is not None and value.shape[split.dim] != split.whole:
            raise UsageError(
                f"{name}: {value.shape[split.dim]} along dimension {split.dim}; expected {split.whole}, the whole "
                f"that is split over {split.group.size} ranks"
            )
        own[name] = value if split is None else split.cut(value)
    module.load_state_dict(own)


def _splits(module: nn.Module) -> dict[str, Split]:
    return {
        f"{prefix}.{name}".lstrip("."): split
        for prefix, part in module.named_modules()
        for name, split in getattr(part, "splits", {}).items()
    }
