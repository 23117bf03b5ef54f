"""Converts the state of a model that is split over ranks to and from that of one process.

::

    full_state_dict        parts on the ranks ── an all-gather per split parameter ──> the whole, on every rank
                           experts, each on one rank ── a broadcast per tensor ──> all experts, on every rank
    load_full_state_dict   the whole, on every rank ── each keeps its part ──> parts, without communication

A module declares in ``splits`` how its parameters are split, and in ``different`` which of its children differ
between ranks. ``module.state_dict()`` remains the state of this rank: it can be saved, and loaded on the same number
of ranks, without communication.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unisono.errors import UsageError
from unisono.parallel.ddp import DataParallel
from unisono.parallel.group import Group
from unisono.parallel.split import Split
from unisono.parallel.state_messages import SPLIT_NAME_MISSING, WRONG_WHOLE_LENGTH
from unisono.parallel.zero import Zero


def full_state_dict(module: nn.Module) -> dict[str, Tensor]:
    """Return the state of the whole model, the same on every rank. All ranks of its groups call this.

    ``module``: a model of split layers, or a DataParallel or Zero of one.
    """
    own = module.state_dict()  # of a wrapper: the whole state of the module inside
    module = _inner(module)
    splits = _declared(module, "splits", own)
    state = {
        name: splits[name].gather(value, name=name, phase="update") if name in splits else value.detach().clone()
        for name, value in own.items()
    }
    for child, group in _declared(module, "different").items():
        state |= _of_all_ranks({name: state.pop(name) for name in list(state) if _is_in(name, child)}, group)
    return state


def load_full_state_dict(module: nn.Module, state: dict[str, Any]) -> None:
    """Load the state of a whole model; each rank keeps its part, without communication.

    ``module``: a model of split layers, or a DataParallel or Zero of one.
    ``state``: the state of one process, or the result of ``full_state_dict``.
    """
    own, inner = module.state_dict(), _inner(module)
    splits, different = _declared(inner, "splits", own), _declared(inner, "different")
    parts = {}
    for name, value in state.items():
        if name not in own and any(_is_in(name, child) for child in different):
            continue  # an expert of another rank
        split: Split | None = splits.get(name)
        if split is not None and value.shape[split.dim] != split.whole:
            found, expected = value.shape[split.dim], split.whole
            raise UsageError(
                WRONG_WHOLE_LENGTH(name=name, found=found, dim=split.dim, expected=expected, size=split.group.size)
            )
        parts[name] = value if split is None else split.cut(value)
    module.load_state_dict(parts)


def _inner(module: nn.Module) -> nn.Module:
    return module.module if isinstance(module, DataParallel | Zero) else module


def _declared(module: nn.Module, attribute: str, state: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the entries of an attribute of all submodules, by the full name of the parameter or child."""
    entries = {
        f"{prefix}.{name}".removeprefix("."): value
        for prefix, part in module.named_modules()
        for name, value in getattr(part, attribute, {}).items()
        if getattr(part, name) is not None
    }
    for name in entries:
        if state is not None and name not in state:
            raise UsageError(SPLIT_NAME_MISSING(name=name))
    return entries


def _is_in(name: str, child: str) -> bool:
    return name.startswith(f"{child}.")


def _of_all_ranks(own: dict[str, Tensor], group: Group) -> dict[str, Tensor]:
    of_ranks = group.all_gather_object({name: (value.shape, value.dtype) for name, value in own.items()})
    state = {}
    for owner, theirs in enumerate(of_ranks):
        for name, (shape, dtype) in theirs.items():
            mine = own.get(name)
            device = next(iter(own.values())).device if own else None
            value = torch.empty(shape, dtype=dtype, device=device) if mine is None else mine.contiguous()
            group.broadcast(value, root=owner, name=name, phase="update")
            state[name] = value
    return state
