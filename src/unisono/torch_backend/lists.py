"""The lists that torch's groups take: how many tensors a call must have, told in torch's words.

torch's functions give lists of the right length. A program that calls the methods of a group directly may not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from unisono.errors import UsageError


def root_of(opts: Any, size: int, what: str, tensors: int = 1) -> int:
    """Return the root of a call from torch's options or a bare number; refuse what Gloo refuses."""
    root: int = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
    if not 0 <= root < size:
        raise UsageError(f"{what}: invalid root rank {root}; expected a rank from 0 to {size - 1}")
    root_tensor_of(opts, what, tensors)
    return root


def root_tensor_of(opts: Any, what: str, tensors: int) -> int:
    """Return the place of the root's tensor among those of a call."""
    place: int = getattr(opts, "rootTensor", 0)
    if not 0 <= place < tensors:
        raise UsageError(f"{what}: invalid root tensor {place}; the call has {tensors} tensors, counted from 0")
    return place


def wrong_count(what: str, name: str, found: int, size: int) -> UsageError:
    """Return the error for a list that does not have one tensor for each rank, with the words of Gloo's errors."""
    if what == "all_gather":
        text = f"invalid {name} tensor list: {found} tensors as {name}; expected {size}"
    elif what == "all_to_all":
        text = f"{name} tensor list size {found} does not match world size {size}"
    else:
        text = f"Incorrect {name} list size {found}. {name.capitalize()} list size should be {size}"
    return UsageError(f"{what}: {text}, one tensor for each rank")


def _is_root(group: Any, opts: Any) -> bool:
    root = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
    return bool(root == group.getRank())


def _gather(group: Any, outs: Any, sources: Any, opts: Any = None, *_: Any, **__: Any) -> None:
    if torch.is_tensor(sources):
        return
    if len(sources) != 1:
        raise UsageError(f"gather: requires a single-element input tensor list; found {len(sources)} tensors")
    is_root = _is_root(group, opts)
    if is_root and len(outs) != 1:
        raise UsageError(f"gather: requires a single-element output list on the root; found {len(outs)} lists")
    if not is_root and len(outs) != 0:
        raise UsageError(f"gather: requires empty output on non-root ranks; found {len(outs)} lists")


def _scatter(group: Any, outs: Any, sources: Any, opts: Any = None, *_: Any, **__: Any) -> None:
    if torch.is_tensor(outs):
        return
    if len(outs) != 1:
        raise UsageError(f"scatter: requires a single-element output tensor list; found {len(outs)} tensors")
    is_root = _is_root(group, opts)
    if is_root and len(sources) != 1:
        raise UsageError(f"scatter: requires a single-element input list on the root; found {len(sources)} lists")
    if not is_root and len(sources) != 0:
        raise UsageError(f"scatter: requires empty input on non-root ranks; found {len(sources)} lists")


def _reduce(group: Any, tensors: Any, *_: Any, **__: Any) -> None:
    if not torch.is_tensor(tensors) and len(tensors) != 1:
        raise UsageError(f"reduce: requires a single-element tensor list; found {len(tensors)} tensors")


def _all_gather(group: Any, outs: Any, sources: Any, *_: Any, **__: Any) -> None:
    if torch.is_tensor(sources):
        return
    if not sources:
        raise UsageError("all_gather: requires non-empty input tensor list; found none")
    if len(outs) != len(sources):
        raise UsageError(
            f"all_gather: requires input/output tensor lists to have the same length; found {len(sources)} and "
            f"{len(outs)}"
        )


def _all_reduce_coalesced(group: Any, tensors: Any, *_: Any, **__: Any) -> None:
    what = "all_reduce_coalesced"
    if not tensors:
        raise UsageError(f"{what}: requires non-empty tensor list; found none")
    first = tensors[0]
    for place, tensor in enumerate(tensors):
        if tensor.layout != first.layout:
            raise UsageError(
                f"{what}: invalid tensor layout at index {place}: {tensor.layout}; expected {first.layout}"
            )
        if tensor.dtype != first.dtype:
            raise UsageError(
                f"{what}: tensors must all have the same type; found {first.dtype} and {tensor.dtype} (index {place})"
            )
    if first.layout is torch.sparse_coo:
        raise UsageError(f"{what}: unsupported layout {first.layout}; call all_reduce for each sparse tensor")


def _all_gather_coalesced(group: Any, out_lists: Any, sources: Any, *_: Any, **__: Any) -> None:
    what, size = "all_gather_coalesced", group.getSize()
    if len(out_lists) != size:
        raise UsageError(
            f"{what}: output lists should be equal to world size; found {len(out_lists)}, expected {size}"
        )
    for rank, outs in enumerate(out_lists):
        if len(outs) != len(sources):
            raise UsageError(
                f"{what}: invalid output size: {len(outs)} tensors in output list {rank}; expected {len(sources)}"
            )
        for place, (out, source) in enumerate(zip(outs, sources, strict=True)):
            if out.shape != source.shape:
                raise UsageError(
                    f"{what}: invalid size of output tensor at index {place} of list {rank}: {list(out.shape)}; "
                    f"expected {list(source.shape)}, as the input"
                )
            if out.dtype != source.dtype:
                raise UsageError(
                    f"{what}: invalid tensor type at index {place} of list {rank}: {out.dtype}; expected "
                    f"{source.dtype}, as the input"
                )


# By the name of the method.
CHECKS: dict[str, Callable[..., None]] = {
    "gather": _gather, "scatter": _scatter, "reduce": _reduce, "allgather": _all_gather,
    "allreduce_coalesced": _all_reduce_coalesced, "allgather_coalesced": _all_gather_coalesced,
}  # fmt: skip
