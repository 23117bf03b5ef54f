"""The memory of a rank, by formula and by measurement.

::

    bytes for each of Ψ parameters, on N ranks       mixed precision with Adam          float32 with Adam
                                                     p    g    o                        p   g   o
    stage 0    everything on every rank              2  + 2  + 12        = 16           4 + 4 + 8      = 16
    stage 1    the optimiser's state is sharded      2  + 2  + 12/N      = 4 + 12/N     4 + 4 + 8/N    = 8 + 8/N
    stage 2    and the gradients                     2  + (2 + 12)/N     = 2 + 14/N     4 + (4 + 8)/N  = 4 + 12/N
    stage 3    and the parameters                    (2 + 2 + 12)/N      = 16/N         (4 + 4 + 8)/N  = 16/N

p: parameters, g: gradients, o: the state of the optimiser (Adam: two averages; in mixed precision also the parameters
in float32). Ψ includes the padding of each unit to a multiple of N. A step needs further memory: in stage 3 for the
root and two whole units at a time (*unit buffers*), in stages 2 and 3 for up to two vectors of gradients (*gradient
buffers*), and for activations, which no stage changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch

from unisono.parallel.sharded_parameter import gradient_of
from unisono.planner.state_memory import FLOAT32_ADAM, MIXED_ADAM, HeldMemory, Kind, formula

if TYPE_CHECKING:
    from unisono.parallel.zero import Zero

__all__ = [
    "FLOAT32_ADAM", "MIXED_ADAM", "STEP_BYTES", "HeldMemory", "Kind", "formula", "measure", "measure_alone", "padded",
    "table",
]  # fmt: skip

STEP_BYTES = 4  # Adam's step counter, a tensor for each shard


def padded(zero: Zero) -> int:
    """Return the number of trained parameters, padding included."""
    return sum(flat.padded_numel for flat in zero.trained)


def measure(zero: Zero) -> HeldMemory:
    """Return the bytes that this rank holds now: the memory of every live tensor, counted once."""
    seen: set[int] = set()
    unit_buffers = () if zero._gatherer is None else [buffer.memory for buffer in zero._gatherer.buffers]
    unit_buffer_bytes = _new_bytes(unit_buffers, seen)
    gradient_buffer_bytes = _new_bytes(getattr(zero._reducer, "buffers", ()), seen)
    _new_bytes(
        [] if zero._gatherer is None else zero._gatherer.placeholders, seen
    )  # absent parameters are views of these
    parameters = [member.parameter.data for flat in zero.flats for member in flat.members]
    parameter_bytes = _new_bytes([*parameters, *(flat.shard for flat in zero.flats)], seen)
    gradients = [gradient_of(member.parameter) for flat in zero.flats for member in flat.members]
    gradient_bytes = _new_bytes([*gradients, *(flat.gradient for flat in zero.trained)], seen)
    return HeldMemory(
        parameter_bytes,
        gradient_bytes,
        _new_bytes(_of_optimizer(zero.optimizer), seen),
        unit_buffer_bytes,
        gradient_buffer_bytes,
    )


def measure_alone(module: Any, optimizer: Any) -> HeldMemory:
    """Return the bytes that a model and its optimiser hold without sharding: stage 0."""
    seen: set[int] = set()
    parameters = list(module.parameters())
    return HeldMemory(
        _new_bytes(parameters, seen), _new_bytes([parameter.grad for parameter in parameters], seen),
        _new_bytes(_of_optimizer(optimizer), seen),
    )  # fmt: skip


def table(kind: Kind, parameters: int, ranks: Iterable[int]) -> str:
    """Return the gigabytes of a model by formula, as a Markdown table."""
    ranks = list(ranks)
    heads = " | ".join(f"{each} rank{'' if each == 1 else 's'}" for each in ranks)
    rows = [f"| stage | {heads} |", "|---|" + "---:|" * len(ranks)]
    for stage in range(4):
        totals = [formula(stage, parameters, each, kind).total / 1e9 for each in ranks]
        rows.append(f"| {stage} | " + " | ".join(f"{total:,.1f} GB" for total in totals) + " |")
    return "\n".join(rows)


def _of_optimizer(optimizer: Any) -> list[Any]:
    kept = [value for state in optimizer.state.values() for value in state.values()]
    return [parameter for group in optimizer.param_groups for parameter in group["params"]] + kept


def _new_bytes(tensors: Iterable[Any], seen: set[int]) -> int:
    """Return the bytes of the memory that is not in ``seen``, and add it."""
    total = 0
    for tensor in tensors:
        if torch.is_tensor(tensor):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in seen:
                seen.add(storage.data_ptr())
                total += storage.nbytes()
    return total
