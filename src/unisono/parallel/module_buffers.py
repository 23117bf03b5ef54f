"""Keeps the buffers of a module (running means, counters) the same on all ranks, with few broadcasts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unisono.parallel.group import Group


class ModuleBuffers:
    """All buffers of a module; one broadcast sends all those of one dtype and device."""

    def __init__(self, module: nn.Module) -> None:
        # Submodule and name of each buffer, not the tensor: a module may assign another tensor to a buffer.
        owners = [
            (owner, own_name, f"{path}.{own_name}" if path else own_name, tensor)
            for path, owner in module.named_modules()
            for own_name, tensor in owner.named_buffers(recurse=False)
        ]
        self.parts: dict[Any, list[tuple[nn.Module, str]]] = {}
        self.names: dict[Any, list[str]] = {}
        for owner, own_name, name, tensor in owners:
            kind = (tensor.dtype, tensor.device)
            self.parts.setdefault(kind, []).append((owner, own_name))
            self.names.setdefault(kind, []).append(name)

    def broadcast(self, group: Group, *, phase: str) -> None:
        """Replace the buffers by those of rank 0."""
        for kind, part in self.parts.items():
            buffers = [getattr(owner, name) for owner, name in part]
            flat = torch.cat([buffer.detach().reshape(-1) for buffer in buffers])
            names = self.names[kind]
            group.broadcast(flat, name=names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}", phase=phase)
            if group.rank != 0:
                self._copy(buffers, flat)

    def _copy(self, buffers: list[Tensor], flat: Tensor) -> None:
        parts = flat.split([buffer.numel() for buffer in buffers])
        with torch.no_grad():
            for buffer, part in zip(buffers, parts, strict=True):
                buffer.copy_(part.view(buffer.shape))
