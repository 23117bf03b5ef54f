"""What must be true before a strategy starts, asked on all ranks at once: found early, told to all, with names.

Every function here that takes a group is called by all its ranks, and either returns on all or raises on all:
nobody waits for a rank that has given up. What is compared are digests, a few bytes per tensor; only where
they differ do ranks tell each other more.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unisono.errors import GradientError, UsageError
from unisono.parallel.group import Group

DIGEST_BYTES = 8


def check_parameters(module: nn.Module, who: str) -> None:
    """Raise unless the module has parameters to train, all of them with a shape."""
    parameters = dict(module.named_parameters())
    lazy = [name for name, parameter in parameters.items() if nn.parameter.is_lazy(parameter)]
    if lazy:
        raise UsageError(
            f"{who}: parameter {lazy[0]!r} has no shape yet; call the module once on a batch before it is wrapped"
        )
    if not any(parameter.requires_grad for parameter in parameters.values()):
        found = f"all its {len(parameters)} parameters are frozen" if parameters else "it has no parameters"
        raise UsageError(f"{who}: nothing to train in {type(module).__name__}, {found}; use the module as it is")


def check_same_model(
    module: nn.Module, group: Group, who: str, *, local: Callable[[Tensor], bool] = lambda _: False, **settings: Any
) -> None:
    """Raise on all ranks if their modules or settings differ; the first difference is named.

    ``local`` says which parameters may differ.
    """
    mine = [f"{name}={value!r}" for name, value in settings.items()]
    mine += [_described("parameter", name, each) for name, each in module.named_parameters() if not local(each)]
    mine += [_described("buffer", name, tensor) for name, tensor in module.named_buffers()]
    digests = group.all_gather_object(hashlib.blake2b(repr(mine).encode(), digest_size=16).digest())
    others = [rank for rank, digest in enumerate(digests) if digest != digests[0]]
    if not others:
        return
    told = group.all_gather_object(mine if group.rank in (0, others[0]) else None)
    expected, found = told[0], told[others[0]]
    place = next(
        (place for place, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1]),
        min(len(expected), len(found)),
    )
    here, there = (parts[place] if place < len(parts) else "nothing more" for parts in (expected, found))
    raise UsageError(
        f"{who}: {_ranks(others)} not the model of rank 0; the first difference is: {there} on rank {others[0]}, "
        f"expected as on rank 0: {here}; make the same model with the same settings on every rank"
    )


def check_same_values(tensors: Mapping[str, Tensor], group: Group, who: str) -> None:
    """Raise on all ranks if tensors that should have the same bits differ; the first one is named."""
    told = group.all_gather_object([digest_of(tensor) for tensor in tensors.values()])
    wrong = [
        (name, others) for place, name in enumerate(tensors)
        if (others := [rank for rank, digests in enumerate(told) if digests[place] != told[0][place]])
    ]  # fmt: skip
    if not wrong:
        return
    name, others = wrong[0]
    more = f" (and {len(wrong) - 1} more parameters)" if len(wrong) > 1 else ""
    raise UsageError(
        f"{who}: parameter {name!r}{more} of {_ranks(others)} not the values of rank 0; start with the same on every "
        "rank: torch.manual_seed() with the same number before the model is made, or the same checkpoint, or "
        "broadcast_parameters=True to take those of rank 0"
    )


def make_same_values(tensors: Mapping[str, Tensor], group: Group, who: str, broadcast: bool) -> None:
    """Give all ranks the tensors of rank 0; without ``broadcast``, raise unless they have them already."""
    if not broadcast:
        check_same_values(tensors, group, who)
        return
    for name, tensor in tensors.items():
        whole = tensor.contiguous()
        group.broadcast(whole, name=name, phase="start")
        tensor.copy_(whole)


def check_same_calls(calls: list[str], groups: Sequence[Group], device: Any, phase: str, who: str) -> None:
    """Raise on all ranks if they have called different units, or in another order. One all-reduce of eight bytes."""
    digest = torch.tensor(call_digest(calls), dtype=torch.uint8, device=device)
    for group in groups:
        group.all_reduce(digest, op="max", name="(order of the units)", phase=phase)
    if not is_same_digest(digest.tolist()):
        raise_different_calls(calls, groups, who)


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


def raise_different_calls(calls: list[str], groups: Sequence[Group], who: str) -> None:
    """Raise on all ranks, which know that their calls differ; name the first rank that differs from rank 0."""
    gathered = [calls]
    for group in groups:  # the ranks of a group first, then those of its replicas
        gathered = [each for part in group.all_gather_object(gathered) for each in part]
    raise_if_orders_differ(gathered, who)


def raise_if_orders_differ(told: list[list[str]], who: str) -> None:
    """Raise if the ranks have run other units, or in another order; ``told`` has those of each rank."""
    rank = next((rank for rank, each in enumerate(told) if each != told[0]), 0)
    if rank == 0:
        return
    raise UsageError(
        f"{who}: rank {rank} ran the units {_listed(told[rank])}; expected the order of rank 0: {_listed(told[0])}. "
        "In stage 3 every unit is gathered from all ranks: run the same units on all, or use stage 2"
    )


def digest_of(tensor: Tensor) -> int:
    """Return a number that two tensors share only if all their bits are the same (else: one chance in 2³²)."""
    return zlib.crc32(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())


def first_nan(named: Iterable[tuple[str, Tensor | None]]) -> str | None:
    """Return the name of the first tensor that has a NaN."""
    return next((name for name, tensor in named if tensor is not None and bool(tensor.isnan().any())), None)


def raise_nan(name: str | None, group: Group, who: str) -> None:
    """Raise on all ranks: some have found a NaN in a gradient, of the parameter of that name, others (None) have not.

    All ranks call this once they know that there is one.
    """
    told = group.all_gather_object(name)
    found = [(rank, each) for rank, each in enumerate(told) if each is not None]
    rank, name = found[0]
    more = f", and of {len(found) - 1} other ranks" if len(found) > 1 else ""
    raise GradientError(
        f"{who}: the gradient of {name!r} on rank {rank}{more} has a NaN before it is averaged; look at what that "
        "rank had for input, and at torch.autograd.detect_anomaly()", rank=rank, parameter=str(name),
    )  # fmt: skip


def _described(kind: str, name: str, tensor: Tensor) -> str:
    frozen = ", frozen" if kind == "parameter" and not tensor.requires_grad else ""
    return f"{kind} {name!r} {str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}{frozen}"


def _ranks(ranks: list[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]} has"
    return f"ranks {', '.join(map(str, ranks[:8]))}{', ...' if len(ranks) > 8 else ''} have"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
