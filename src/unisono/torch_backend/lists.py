"""Checks of the lists of tensors that torch's groups take.

torch's functions pass lists of the right length. A program that calls the methods of a group directly may not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from unisono.errors import UsageError
from unisono.torch_backend import tensor_messages as messages


def root_of(opts: Any, size: int, call: str, tensors: int = 1) -> int:
    """Return the root of a call from torch's options or a bare number; refuse what Gloo refuses."""
    root: int = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
    if not 0 <= root < size:
        raise UsageError(messages.BAD_ROOT(call=call, root=root, last=size - 1))
    root_tensor_of(opts, call, tensors)
    return root


def root_tensor_of(opts: Any, call: str, tensors: int) -> int:
    """Return the index of the root's tensor among those of a call."""
    index: int = getattr(opts, "rootTensor", 0)
    if not 0 <= index < tensors:
        raise UsageError(messages.BAD_ROOT_TENSOR(call=call, index=index, count=tensors))
    return index


def wrong_count(call: str, name: str, found: int, size: int) -> UsageError:
    """Return the error for a list that does not have one tensor for each rank."""
    if call == "all_gather":
        return UsageError(messages.WRONG_ALL_GATHER_COUNT(call=call, name=name, found=found, size=size))
    if call == "all_to_all":
        return UsageError(messages.WRONG_ALL_TO_ALL_COUNT(call=call, name=name, found=found, size=size))
    title = str(name).capitalize()
    return UsageError(messages.WRONG_LIST_COUNT(call=call, name=name, title=title, found=found, size=size))


def _is_root(group: Any, opts: Any) -> bool:
    root = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
    return bool(root == group.getRank())


def _check_on_root(call: str, name: str, lists: Any, is_root: bool) -> None:
    if is_root and len(lists) != 1:
        raise UsageError(messages.SINGLE_LIST_ON_ROOT(call=call, name=name, found=len(lists)))
    if not is_root and len(lists) != 0:
        raise UsageError(messages.NO_LIST_ELSEWHERE(call=call, name=name, found=len(lists)))


def _gather(group: Any, outs: Any, sources: Any, opts: Any = None, *_: Any, **__: Any) -> None:
    if torch.is_tensor(sources):
        return
    if len(sources) != 1:
        raise UsageError(messages.SINGLE_INPUT(call="gather", found=len(sources)))
    _check_on_root("gather", messages.OUTPUT(), outs, _is_root(group, opts))


def _scatter(group: Any, outs: Any, sources: Any, opts: Any = None, *_: Any, **__: Any) -> None:
    if torch.is_tensor(outs):
        return
    if len(outs) != 1:
        raise UsageError(messages.SINGLE_OUTPUT(call="scatter", found=len(outs)))
    _check_on_root("scatter", messages.INPUT(), sources, _is_root(group, opts))


def _reduce(group: Any, tensors: Any, *_: Any, **__: Any) -> None:
    if not torch.is_tensor(tensors) and len(tensors) != 1:
        raise UsageError(messages.SINGLE_TENSOR(call="reduce", found=len(tensors)))


def _all_gather(group: Any, outs: Any, sources: Any, *_: Any, **__: Any) -> None:
    if torch.is_tensor(sources):
        return
    if not sources:
        raise UsageError(messages.NO_INPUT(call="all_gather"))
    if len(outs) != len(sources):
        raise UsageError(messages.LIST_LENGTHS_DIFFER(call="all_gather", inputs=len(sources), outputs=len(outs)))


def _all_reduce_coalesced(group: Any, tensors: Any, *_: Any, **__: Any) -> None:
    call = "all_reduce_coalesced"
    if not tensors:
        raise UsageError(messages.NO_TENSORS(call=call))
    first = tensors[0]
    for index, tensor in enumerate(tensors):
        if tensor.layout != first.layout:
            raise UsageError(
                messages.WRONG_LAYOUT(call=call, index=index, layout=tensor.layout, expected=first.layout)
            )
        if tensor.dtype != first.dtype:
            raise UsageError(messages.MIXED_TYPES(call=call, first=first.dtype, other=tensor.dtype, index=index))
    if first.layout is torch.sparse_coo:
        raise UsageError(messages.UNSUPPORTED_LAYOUT(call=call, layout=first.layout))


def _all_gather_coalesced(group: Any, out_lists: Any, sources: Any, *_: Any, **__: Any) -> None:
    call, size = "all_gather_coalesced", group.getSize()
    if len(out_lists) != size:
        raise UsageError(messages.WRONG_OUTPUT_LISTS(call=call, found=len(out_lists), size=size))
    for rank, outs in enumerate(out_lists):
        if len(outs) != len(sources):
            raise UsageError(
                messages.WRONG_OUTPUT_COUNT(call=call, found=len(outs), rank=rank, expected=len(sources))
            )
        for index, (out, source) in enumerate(zip(outs, sources, strict=True)):
            where = {"call": call, "index": index, "rank": rank}
            if out.shape != source.shape:
                shapes = {"shape": list(out.shape), "expected": list(source.shape)}
                raise UsageError(messages.WRONG_OUTPUT_SHAPE(**where, **shapes))
            if out.dtype != source.dtype:
                raise UsageError(messages.WRONG_OUTPUT_TYPE(**where, dtype=out.dtype, expected=source.dtype))


# By the name of the method.
CHECKS: dict[str, Callable[..., None]] = {
    "gather": _gather, "scatter": _scatter, "reduce": _reduce, "allgather": _all_gather,
    "allreduce_coalesced": _all_reduce_coalesced, "allgather_coalesced": _all_gather_coalesced,
}  # fmt: skip
