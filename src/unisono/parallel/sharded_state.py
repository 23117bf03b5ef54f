"""Converts the state of a sharded model to and from that of one process, so that any number of ranks can load it.

::

    shards of all ranks ── all-gather, one flat at a time ──> vector ── views ──> {"blocks.0.weight": ..., ...}
    state of the optimiser: the same for its values per element (momentum, ...); the rest (step) is copied
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unisono.errors import UsageError
from unisono.parallel.sharding import Flat
from unisono.parallel.state_messages import NONE, WRONG_GROUP_COUNT, WRONG_KEYS, WRONG_SHAPE

if TYPE_CHECKING:
    from unisono.parallel.zero import Zero


def state_of(zero: Zero, state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of the module with whole parameters."""
    full = {name: value.clone() if torch.is_tensor(value) else value for name, value in state.items()}
    for flat in zero.flats:
        for member, view in zip(flat.members, flat.views(_whole(zero, flat)), strict=True):
            full.update({name: view.clone() for name in member.names if name in full})
    return full


def load(zero: Zero, state: dict[str, Any], strict: bool) -> None:
    """Load this rank's part of a full state."""
    expected = zero.module.state_dict()
    missing, unknown = sorted(expected.keys() - state.keys()), sorted(state.keys() - expected.keys())
    if strict and (missing or unknown):
        module = type(zero.module).__name__
        raise UsageError(WRONG_KEYS(missing=missing or NONE(), unknown=unknown or NONE(), module=module))
    for flat in zero.flats:
        values = [_value(state, member.names, shape) for member, shape in zip(flat.members, flat.shapes, strict=True)]
        if all(value is None for value in values):
            continue
        if any(value is None for value in values):
            now = flat.views(_whole(zero, flat))
            values = [old if new is None else new for new, old in zip(values, now, strict=True)]
        set_values(flat, flat.vector_of(values))
    names = {name for flat in zero.flats for member in flat.members for name in member.names}
    rest = {name: value for name, value in state.items() if name in expected and name not in names}
    zero.module.load_state_dict(rest, strict=False)
    zero._publish_parameters("state")


def set_values(flat: Flat, vector: Tensor) -> None:
    """Set the parameters of a flat; this rank keeps its part of the vector."""
    own = vector[flat.range_of(flat.rank)]
    if flat.trained:
        flat.master.data.copy_(own)
    elif flat.shard is not None:
        flat.shard.copy_(own)
    else:  # frozen, and whole on every rank
        for member, view in zip(flat.members, flat.views(vector), strict=True):
            member.parameter.data.copy_(view)


def optimizer_state_of(zero: Zero) -> dict[str, Any]:
    """Return the state of the optimiser as that of an optimiser of the whole parameters."""
    numbers = {id(parameter): number for number, parameter in enumerate(zero.module.parameters())}
    states: dict[int, dict[str, Any]] = {}
    for flat in zero.trained:
        for key, value in zero.optimizer.state.get(flat.master, {}).items():
            if is_elementwise(flat, value):
                parts: list[Any] = [view.clone() for view in flat.views(_gathered(zero, flat, value))]
            else:
                parts = [value.clone() if torch.is_tensor(value) else value for _ in flat.members]
            for member, part in zip(flat.members, parts, strict=True):
                states.setdefault(numbers[id(member.parameter)], {})[key] = part
    groups = []
    for group in zero.optimizer.param_groups:
        masters = {id(master) for master in group["params"]}
        members = [member for flat in zero.trained if id(flat.master) in masters for member in flat.members]
        alone = len(zero.optimizer.param_groups) == 1
        indices = list(numbers.values()) if alone else sorted(numbers[id(member.parameter)] for member in members)
        groups.append({**group, "params": indices})
    return {"state": dict(sorted(states.items())), "param_groups": groups}


def load_optimizer(zero: Zero, state: dict[str, Any]) -> None:
    """Load this rank's part of the state of an optimiser of the whole parameters."""
    numbers = {id(parameter): number for number, parameter in enumerate(zero.module.parameters())}
    for flat in zero.trained:
        states = [state["state"].get(numbers[id(member.parameter)]) for member in flat.members]
        if any(each is None for each in states):
            zero.optimizer.state.pop(flat.master, None)
            continue
        own: dict[str, Any] = {}
        for key, value in states[0].items():
            parts = [each[key] for each in states]
            if key != "step" and all(
                torch.is_tensor(part) and part.shape == shape for part, shape in zip(parts, flat.shapes, strict=True)
            ):
                own[key] = flat.vector_of(parts)[flat.range_of(flat.rank)].clone()
            else:
                own[key] = value.clone() if torch.is_tensor(value) else value
        zero.optimizer.state[flat.master] = own
    load_settings(zero, state["param_groups"])


def load_settings(zero: Zero, groups: list[dict[str, Any]]) -> None:
    """Load the settings (learning rate, ...) of the parameter groups of another optimiser."""
    if len(groups) != len(zero.optimizer.param_groups):
        raise UsageError(WRONG_GROUP_COUNT(found=len(groups), expected=len(zero.optimizer.param_groups)))
    for mine, theirs in zip(zero.optimizer.param_groups, groups, strict=True):
        mine.update({key: value for key, value in theirs.items() if key != "params"})


def is_elementwise(flat: Flat, value: Any) -> bool:
    """Return whether a value of the optimiser's state has one entry for every element of the shard."""
    return bool(torch.is_tensor(value) and value.shape == flat.master.shape)


@contextmanager
def whole_parameters(zero: Zero) -> Iterator[None]:
    """Make all parameters whole within the block, in separate memory."""
    if zero._gatherer is None:
        yield
        return
    zero._gatherer.free_all()
    zero._hooks.is_paused = True
    try:
        for flat in zero.flats:
            vector = torch.empty(flat.padded_numel, dtype=flat.compute_dtype, device=flat.device)
            zero.group.all_gather(vector, flat.shard, name=flat.name, phase="state")
            flat.point(flat.views(vector))
        yield
    finally:
        zero._hooks.is_paused = False
        for resident in zero._gatherer.residents.values():
            resident.release()


def _whole(zero: Zero, flat: Flat) -> Tensor:
    """Return the vector of a flat, in the dtype of the optimiser."""
    if flat.shard is None:
        return flat.vector_of([member.parameter.data for member in flat.members])
    if flat.whole is not None and not flat.is_mixed:
        return flat.whole
    return _gathered(zero, flat, flat.master.data if flat.trained else flat.shard.to(flat.dtype))


def _gathered(zero: Zero, flat: Flat, part: Tensor) -> Tensor:
    vector = torch.empty(flat.padded_numel, dtype=part.dtype, device=part.device)
    zero.group.all_gather(vector, part, name=flat.name, phase="state")
    return vector


def _value(state: dict[str, Any], names: list[str], shape: Any) -> Any:
    """Return the value of a parameter under any of its names, or None."""
    for name in names:
        if name in state:
            if state[name].shape != shape:
                raise UsageError(WRONG_SHAPE(name=name, found=tuple(state[name].shape), expected=tuple(shape)))
            return state[name]
    return None
