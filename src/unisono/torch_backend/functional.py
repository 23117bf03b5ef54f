"""Kernels of two functional collectives that torch 2.13 sends directly to a C++ backend, not to a Python group.

The kernels call the group, of whatever backend; torch's own groups behave as before.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from unisono.torch_backend.private import register_work, resolve_process_group

_library: torch.library.Library | None = None


def register_kernels() -> None:
    """Give torch the kernels; once."""
    global _library
    if _library is None:
        _library = torch.library.Library("_c10d_functional", "IMPL")
        for device in ("CPU", "CUDA"):
            _library.impl("all_gather_into_tensor_out", _all_gather_into, device, allow_override=True)
            _library.impl("batch_p2p_ops", _transfer_all, device, allow_override=True)


def _group_of(name: Any) -> Any:
    return name if isinstance(name, dist.ProcessGroup) else resolve_process_group(name)


def _all_gather_into(source: torch.Tensor, group_size: int, group_name: Any, *, out: torch.Tensor) -> torch.Tensor:
    register_work(out, _group_of(group_name)._allgather_base(out, source))
    return out


def _transfer_all(
    ops: list[str], peers: list[int], tags: list[int], tensors: list[torch.Tensor], group_name: Any
) -> list[torch.Tensor]:
    group = _group_of(group_name)
    for op, peer, tag, tensor in zip(ops, peers, tags, tensors, strict=True):
        start = group.send if op == "isend" else group.recv
        register_work(tensor, start([tensor], peer, tag))
    return tensors
