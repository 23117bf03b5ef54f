"""The arrays of one collective in the memory of a GPU."""

from __future__ import annotations

import importlib
from typing import Any

from .buffers import Buffers


class TensorBuffers(Buffers):
    """Tensors on a device, filled from the arrays of the CPU and checked there."""

    is_asynchronous = True  # a call returns when it is enqueued

    def __init__(self, command: dict[str, Any], rank: int, size: int, device: str) -> None:
        """Allocate tensors; ranks beyond the number of GPUs share them."""
        torch = importlib.import_module("torch")  # by name: only an environment with torch has it
        if device == "cuda":
            torch.cuda.set_device(rank % torch.cuda.device_count())
        self.torch, self.there = torch, None
        super().__init__(command, rank, size)
        here = self._here()
        given = here[0].to(device, copy=True)
        self.there = given, given if self.in_place else here[1].to(device, copy=True)
        self.is_on_gpu = device == "cuda"

    def _here(self) -> tuple[Any, Any]:
        return super().tensors()

    def tensors(self) -> tuple[Any, Any]:
        """Return the tensors of the input and the output."""
        assert self.there is not None
        return self.there

    def synchronize(self) -> None:
        """Wait until the GPU is done with all calls."""
        if self.is_on_gpu:
            self.torch.cuda.synchronize()

    def clear(self) -> None:
        """Fill all with zeros."""
        super().clear()
        for tensor in self.there or ():
            tensor.zero_()

    def fill(self) -> None:
        """Write the test vector to the device."""
        super().fill()
        for here, there in zip(self._here(), self.tensors(), strict=True):
            there.copy_(here)

    def wrong(self) -> int:
        """Count the wrong elements."""
        self._here()[1].copy_(self.tensors()[1])
        return super().wrong()


def make_buffers(command: dict[str, Any], rank: int, size: int) -> Buffers:
    """Return the arrays of a command, on its device."""
    device = command.get("device", "cpu")
    return Buffers(command, rank, size) if device == "cpu" else TensorBuffers(command, rank, size, device)
