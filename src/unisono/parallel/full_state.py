"""The state of a model that is split over ranks, as one process would have it.

::

    full_state_dict        parts on the ranks ── an all-gather per split parameter ──> the whole, on every rank
                           experts, each on one rank ── a broadcast per tensor ──> all experts, on every rank
    load_full_state_dict   the whole, on every rank ── each keeps its part ──> parts; nothing is communicated

A module says by ``splits`` which of its parameters are split, and how, and by ``different`` which of its
children are others on every rank. ``module.state_dict()`` is, as ever, what this rank has: it can be saved,
and loaded again on as many ranks, without any communication.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unisono.errors import UsageError
from unisono.parallel.ddp import DataParallel
from unisono.parallel.group import Group
from unisono.parallel.split import Split
from unisono.parallel.zero import Zero


def full_state_dict(module: nn.Module) -> dict[str, Tensor]:
    """Return the state of the whole model, the same on every rank. All ranks of its groups call this."""
    own = module.state_dict()  # of a wrapper: the whole of what it wraps
    module = _inner(module)
    splits = _told(module, "splits", own)
    state = {
        name: splits[name].gather(value, name=name, phase="update") if name in splits else value.detach().clone()
        for name, value in own.items()
    }
    for child, group in _told(module, "different").items():
        state |= _of_all_ranks({name: state.pop(name) for name in list(state) if _is_in(name, child)}, group)
    return state


def load_full_state_dict(module: nn.Module, state: dict[str, Any]) -> None:
    """Load the state of a whole model, as one process or ``full_state_dict`` has it; each rank keeps its part."""
    own, inner = module.state_dict(), _inner(module)
    splits, different = _told(inner, "splits", own), _told(inner, "different")
    parts = {}
    for name, value in state.items():
        if name not in own and any(_is_in(name, child) for child in different):
            continue  # another rank's
        split: Split | None = splits.get(name)
        if split is not None and value.shape[split.dim] != split.whole:
            raise UsageError(
                f"{name}: {value.shape[split.dim]} along dimension {split.dim}; expected {split.whole}, the whole "
                f"that is split over {split.group.size} ranks"
            )
        parts[name] = value if split is None else split.cut(value)
    module.load_state_dict(parts)


def _inner(module: nn.Module) -> nn.Module:
    return module.module if isinstance(module, DataParallel | Zero) else module


def _told(module: nn.Module, word: str, state: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return what the parts of a module tell under this word, by the full name of what it is about."""
    found = {
        f"{prefix}.{name}".removeprefix("."): what
        for prefix, part in module.named_modules()
        for name, what in getattr(part, word, {}).items()
        if getattr(part, name) is not None
    }
    for name in found:
        if state is not None and name not in state:
            raise UsageError(
                f"{name} is split, but the state of the module has no such name; take the full state of the module "
                "that is inside the wrapper"
            )
    return found


def _is_in(name: str, child: str) -> bool:
    return name.startswith(f"{child}.")


def _of_all_ranks(own: dict[str, Tensor], group: Group) -> dict[str, Tensor]:
    told = group.all_gather_object({name: (value.shape, value.dtype) for name, value in own.items()})
    found = {}
    for owner, theirs in enumerate(told):
        for name, (shape, dtype) in theirs.items():
            mine = own.get(name)
            device = next(iter(own.values())).device if own else None
            value = torch.empty(shape, dtype=dtype, device=device) if mine is None else mine.contiguous()
            group.broadcast(value, root=owner, name=name, phase="update")
            found[name] = value
    return found
