"""Checks that all ranks make before a strategy starts, and after each pass.

All ranks of a group call these functions, which return on all of them or raise on all of them, so that no rank waits
for one that has raised. The ranks compare digests of a few bytes per tensor, and exchange details only where those
differ.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unisono.errors import GradientError, UsageError
from unisono.message import listed
from unisono.parallel.group import Group
from unisono.parallel.messages import (
    ALL_FROZEN,
    GRADIENT_HAS_NAN,
    ITS_PARAMETER_FROZEN,
    LAZY_PARAMETER,
    MODELS_DIFFER,
    MORE_PARAMETERS,
    NO_PARAMETERS,
    NOTHING_MORE,
    NOTHING_TO_TRAIN,
    ON_ONE_OTHER_RANK,
    ON_OTHER_RANKS,
    ONE_MODEL_DIFFERS,
    ONE_MORE_PARAMETER,
    RANK,
    RANKS,
    UNIT_ORDER_DIFFERS,
    VALUES_DIFFER,
)

DIGEST_BYTES = 8


def check_parameters(module: nn.Module, location: str) -> None:
    """Raise unless the module has parameters to train and all of them have a shape."""
    parameters = dict(module.named_parameters())
    lazy = [name for name, parameter in parameters.items() if nn.parameter.is_lazy(parameter)]
    if lazy:
        raise UsageError(LAZY_PARAMETER(location=location, name=lazy[0]))
    if not any(parameter.requires_grad for parameter in parameters.values()):
        frozen = ITS_PARAMETER_FROZEN() if len(parameters) == 1 else ALL_FROZEN(count=len(parameters))
        reason = frozen if parameters else NO_PARAMETERS()
        raise UsageError(NOTHING_TO_TRAIN(location=location, module=type(module).__name__, reason=reason))


def check_same_model(
    module: nn.Module,
    group: Group,
    location: str,
    *,
    local: Callable[[Tensor], bool] = lambda _: False,
    **settings: Any,
) -> None:
    """Raise on all ranks if their modules or settings differ; name the first difference.

    ``local`` returns whether a parameter may differ.
    """
    mine = [f"{name}={value!r}" for name, value in settings.items()]
    mine += [_described("parameter", name, each) for name, each in module.named_parameters() if not local(each)]
    mine += [_described("buffer", name, tensor) for name, tensor in module.named_buffers()]
    digests = group.all_gather_object(hashlib.blake2b(repr(mine).encode(), digest_size=16).digest())
    others = [rank for rank, digest in enumerate(digests) if digest != digests[0]]
    if not others:
        return
    details = group.all_gather_object(mine if group.rank in (0, others[0]) else None)
    expected, found = details[0], details[others[0]]
    index = next(
        (index for index, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1]),
        min(len(expected), len(found)),
    )
    here, there = (parts[index] if index < len(parts) else NOTHING_MORE() for parts in (expected, found))
    template = ONE_MODEL_DIFFERS if len(others) == 1 else MODELS_DIFFER
    raise UsageError(template(location=location, ranks=_ranks(others), rank=others[0], found=there, expected=here))


def check_same_values(tensors: Mapping[str, Tensor], group: Group, location: str) -> None:
    """Raise on all ranks if tensors that should have the same bits differ; name the first one."""
    of_ranks = group.all_gather_object([digest_of(tensor) for tensor in tensors.values()])
    wrong = [
        (name, others) for index, name in enumerate(tensors)
        if (others := [rank for rank, digests in enumerate(of_ranks) if digests[index] != of_ranks[0][index]])
    ]  # fmt: skip
    if not wrong:
        return
    name, others = wrong[0]
    count = len(wrong) - 1
    more = "" if count == 0 else ONE_MORE_PARAMETER() if count == 1 else MORE_PARAMETERS(count=count)
    raise UsageError(VALUES_DIFFER(location=location, name=name, more=more, ranks=_ranks(others)))


def make_same_values(tensors: Mapping[str, Tensor], group: Group, location: str, broadcast: bool) -> None:
    """Broadcast the tensors of rank 0; without ``broadcast``, raise unless all ranks have the same values."""
    if not broadcast:
        check_same_values(tensors, group, location)
        return
    for name, tensor in tensors.items():
        whole = tensor.contiguous()
        group.broadcast(whole, name=name, phase="start")
        tensor.copy_(whole)


def check_same_calls(calls: list[str], groups: Sequence[Group], device: Any, phase: str, location: str) -> None:
    """Raise on all ranks if they have called different units, or in another order. One all-reduce of eight bytes."""
    digest = torch.tensor(call_digest(calls), dtype=torch.uint8, device=device)
    for group in groups:
        group.all_reduce(digest, op="max", name="(order of the units)", phase=phase)
    if not is_same_digest(digest.tolist()):
        raise_different_calls(calls, groups, location)


def call_digest(calls: list[str]) -> list[int]:
    """Return eight bytes whose maximum over the ranks shows whether all ranks made the same calls.

    They are a checksum and its complement: a byte is the same on all ranks if its maximum and the maximum of its
    complement add up to 255.
    """
    checksum = zlib.crc32("\n".join(calls).encode()).to_bytes(DIGEST_BYTES // 2, "little")
    return [*checksum, *(255 - byte for byte in checksum)]


def is_same_digest(largest: list[int]) -> bool:
    """Return whether all ranks had the same digest, given the maximum of each of its bytes."""
    half = DIGEST_BYTES // 2
    return all(byte + complement == 255 for byte, complement in zip(largest[:half], largest[half:], strict=True))


def raise_different_calls(calls: list[str], groups: Sequence[Group], location: str) -> None:
    """Raise on all ranks, which know that their calls differ; name the first rank that differs from rank 0."""
    gathered = [calls]
    for group in groups:  # the ranks of a group first, then those of its replicas
        gathered = [each for part in group.all_gather_object(gathered) for each in part]
    raise_if_orders_differ(gathered, location)


def raise_if_orders_differ(orders: list[list[str]], location: str) -> None:
    """Raise if a rank ran other units than rank 0, or in another order; ``orders`` holds the units of each rank."""
    rank = next((rank for rank, order in enumerate(orders) if order != orders[0]), 0)
    if rank != 0:
        found, expected = _listed(orders[rank]), _listed(orders[0])
        raise UsageError(UNIT_ORDER_DIFFERS(location=location, rank=rank, found=found, expected=expected))


def digest_of(tensor: Tensor) -> int:
    """Return a checksum of the bits of a tensor; different tensors share it with a probability of 2⁻³²."""
    return zlib.crc32(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())


def first_nan(named: Iterable[tuple[str, Tensor | None]]) -> str | None:
    """Return the name of the first tensor that has a NaN."""
    return next((name for name, tensor in named if tensor is not None and bool(tensor.isnan().any())), None)


def raise_nan(name: str | None, group: Group, location: str) -> None:
    """Raise on all ranks: the gradient of a parameter has a NaN on some of them; ``name`` is None on the others.

    All ranks call this when they know that there is a NaN.
    """
    names = group.all_gather_object(name)
    found = [(rank, each) for rank, each in enumerate(names) if each is not None]
    rank, name = found[0]
    count = len(found) - 1
    more = "" if count == 0 else ON_ONE_OTHER_RANK() if count == 1 else ON_OTHER_RANKS(count=count)
    message = GRADIENT_HAS_NAN(location=location, name=name, rank=rank, more=more)
    raise GradientError(message, rank=rank, parameter=str(name))


def _described(kind: str, name: str, tensor: Tensor) -> str:
    frozen = ", frozen" if kind == "parameter" and not tensor.requires_grad else ""
    return f"{kind} {name!r} {str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}{frozen}"


def _ranks(ranks: list[int]) -> str:
    if len(ranks) == 1:
        return RANK(rank=ranks[0])
    return RANKS(ranks=listed(map(str, ranks), longest=8))


def _listed(names: list[str]) -> str:
    return listed(names, longest=6)
