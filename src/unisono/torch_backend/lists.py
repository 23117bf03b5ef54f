"""The lists that torch's groups take: how many tensors a call must have, told in torch's words.

torch's functions give lists of the right length. Who calls the methods of a group may not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from unisono.errors import UsageError


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
    if not tensors:
        raise UsageError("all_reduce_coalesced: requires non-empty tensor list; found none")


# By the name of the method.
CHECKS: dict[str, Callable[..., None]] = {
    "gather": _gather, "scatter": _scatter, "reduce": _reduce, "allgather": _all_gather,
    "allreduce_coalesced": _all_reduce_coalesced,
}  # fmt: skip
