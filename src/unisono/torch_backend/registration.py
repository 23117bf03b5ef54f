"""Registers the backend with torch. Every ``import torch`` loads this module, so it imports as little as possible."""

from __future__ import annotations

import sys
from typing import Any

from unisono import native_engine

NAME = "unisono"
DEVICES = ("cpu", "cuda")  # the types of devices whose tensors it takes


def register() -> None:
    """Tell torch.distributed about the backend, which takes CPU and CUDA tensors; doing it twice does no harm."""
    import torch.distributed as dist

    if dist.is_available() and NAME not in dist.Backend.backend_list:
        dist.Backend.register_backend(NAME, _create, extended_api=True, devices=list(DEVICES))


def _create(backend_options: Any, group_options: Any) -> Any:
    native_engine.load(native_engine.BACKEND())
    from unisono.torch_backend.process_group import UnisonoProcessGroup

    return UnisonoProcessGroup.from_store(backend_options, group_options, sys._getframe(1))
