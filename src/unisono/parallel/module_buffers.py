"""The buffers of a module (running means, counters), kept the same on all ranks by few broadcasts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unisono.parallel.group import Group


class ModuleBuffers:
    """All buffers of a module; those of one type travel together."""

    def __init__(self, module: nn.Module) -> None:
        # Who has them, and how they are called there: a module may put another tensor in a buffer's place.
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
        """Take those of rank 0."""
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
