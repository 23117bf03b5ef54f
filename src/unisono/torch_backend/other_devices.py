"""Tensors that are not on the CPU: in a group such as "cpu:unisono,cuda:nccl" they go to the other backend.

torch makes no other backend beside a group that is written in Python, so we make it, when it is first needed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from unisono.errors import UsageError

Method = TypeVar("Method", bound=Callable[..., Any])


def first_tensor(given: Any) -> torch.Tensor | None:
    """Return the first tensor of a tensor, a list, a list of lists, or of several of these."""
    if isinstance(given, torch.Tensor):
        return given
    if isinstance(given, list | tuple):
        for part in given:
            found = first_tensor(part)
            if found is not None:
                return found
    return None


def also_elsewhere(method: Method) -> Method:
    """Have a method of the group call the same method of the backend of its tensors' device."""

    @functools.wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        tensor = first_tensor(args)
        if tensor is not None and not tensor.is_cpu:
            return getattr(self.backend_of(tensor.device), method.__name__)(*args, **kwargs)
        return method(self, *args, **kwargs)

    return wrapper  # type: ignore[return-value]


def make_backend(device: torch.device, store: Any, rank: int, size: int, timeout: Any) -> Any:
    """Make the backend that torch would have made for a device."""
    if device.type != "cuda" or not dist.is_nccl_available():
        raise UsageError(
            f"a tensor on {device}: the backend unisono takes tensors on the CPU, and there is no other one for this "
            "device in this torch"
        )
    options = dist.ProcessGroupNCCL.Options()
    options._timeout = timeout
    return dist.ProcessGroupNCCL(dist.PrefixStore(f"{device.type}/", store), rank, size, options)
