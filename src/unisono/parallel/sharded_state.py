"""The state of a sharded model as if it had never been sharded: for one process, or for any other number of ranks.

::

    shards of all ranks ── all-gather, one flat at a time ──> vector ── views ──> {"blocks.0.weight": ..., ...}
    state of the optimiser: likewise, for what it keeps per element (momentum, ...); the rest (step) is copied
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unisono.errors import UsageError
from unisono.parallel.sharding import Flat

if TYPE_CHECKING:
    from unisono.parallel.zero import Zero


def state_of(zero: Zero, state: dict[str, Any]) -> dict[str, Any]:
    """Fill the parameters into the state of the module, in which they may not be whole."""
    found = {name: value.clone() if torch.is_tensor(value) else value for name, value in state.items()}
    for flat in zero.flats:
        for member, view in zip(flat.members, flat.views(_whole(zero, flat)), strict=True):
            found.update({name: view.clone() for name in member.names if name in found})
    return found


def load(zero: Zero, state: dict[str, Any], strict: bool) -> None:
    """Take this rank's part of a full state."""
    expected = zero.module.state_dict()
    missing, strange = sorted(expected.keys() - state.keys()), sorted(state.keys() - expected.keys())
    if strict and (missing or strange):
        raise UsageError(
            f"load_state_dict: missing are {missing or 'none'}, unknown are {strange or 'none'}; expected the keys "
            f"of the state of a {type(zero.module).__name__}, or strict=False"
        )
    for flat in zero.flats:
        given = [_value(state, member.names, shape) for member, shape in zip(flat.members, flat.shapes, strict=True)]
        if all(value is None for value in given):
            continue
        if any(value is None for value in given):
            now = flat.views(_whole(zero, flat))
            given = [old if new is None else new for new, old in zip(given, now, strict=True)]
        set_values(flat, flat.vector_of(given))
    names = {name for flat in zero.flats for member in flat.members for name in member.names}
    rest = {name: value for name, value in state.items() if name in expected and name not in names}
    zero.module.load_state_dict(rest, strict=False)
    zero._share("state")


def set_values(flat: Flat, vector: Tensor) -> None:
    """Give the parameters of a flat new values, of which this rank takes what is its own."""
    own = vector[flat.range_of(flat.rank)]
    if flat.trained:
        flat.master.data.copy_(own)
    elif flat.shard is not None:
        flat.shard.copy_(own)
    else:  # frozen, and whole on every rank
        for member, view in zip(flat.members, flat.views(vector), strict=True):
            member.parameter.data.copy_(view)


def optimizer_state_of(zero: Zero) -> dict[str, Any]:
    """Return the state of the optimiser as that of one of the whole parameters."""
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
        found = list(numbers.values()) if alone else sorted(numbers[id(member.parameter)] for member in members)
        groups.append({**group, "params": found})
    return {"state": dict(sorted(states.items())), "param_groups": groups}


def load_optimizer(zero: Zero, state: dict[str, Any]) -> None:
    """Take this rank's part of the state of an optimiser of the whole parameters."""
    numbers = {id(parameter): number for number, parameter in enumerate(zero.module.parameters())}
    for flat in zero.trained:
        states = [state["state"].get(numbers[id(member.parameter)]) for member in flat.members]
        if any(found is None for found in states):
            zero.optimizer.state.pop(flat.master, None)
            continue
        own: dict[str, Any] = {}
        for key, value in states[0].items():
            parts = [found[key] for found in states]
            if key != "step" and all(
                torch.is_tensor(part) and part.shape == shape for part, shape in zip(parts, flat.shapes, strict=True)
            ):
                own[key] = flat.vector_of(parts)[flat.range_of(flat.rank)].clone()
            else:
                own[key] = value.clone() if torch.is_tensor(value) else value
        zero.optimizer.state[flat.master] = own
    load_settings(zero, state["param_groups"])


def load_settings(zero: Zero, groups: list[dict[str, Any]]) -> None:
    """Take the settings (learning rate, ...) of the groups of parameters of another optimiser."""
    if len(groups) != len(zero.optimizer.param_groups):
        raise UsageError(
            f"the state has {len(groups)} groups of parameters; expected {len(zero.optimizer.param_groups)}, as the "
            "optimiser has"
        )
    for mine, theirs in zip(zero.optimizer.param_groups, groups, strict=True):
        mine.update({key: value for key, value in theirs.items() if key != "params"})


def is_elementwise(flat: Flat, value: Any) -> bool:
    """Whether an optimiser keeps this for every element of the shard."""
    return bool(torch.is_tensor(value) and value.shape == flat.master.shape)


@contextmanager
def whole_parameters(zero: Zero) -> Iterator[None]:
    """Make all parameters whole, in memory of their own."""
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
    """Return the value of a parameter, under any of its names."""
    for name in names:
        if name in state:
            if state[name].shape != shape:
                raise UsageError(
                    f"load_state_dict: {name} has the shape {tuple(state[name].shape)}; expected {tuple(shape)}"
                )
            return state[name]
    return None
