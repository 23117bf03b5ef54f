"""A stand-in for torch with tensors in the memory of a fake GPU: what a communicator asks of them, and no more."""

from __future__ import annotations

import sys
from types import SimpleNamespace

from gpu.fake_arrays import CudaArray

CURRENT = {"stream": 0}  # torch's current stream


class Tensor:
    """A float32 tensor of one dimension on device 0."""

    is_cpu, is_cuda, is_nested, itemsize, dtype = False, True, False, 4, "torch.float32"

    def __init__(self, array: CudaArray) -> None:
        self.array, self.nbytes, self.shape = array, array.nbytes, array.shape
        self.recorded: list[object] = []

    def data_ptr(self):
        return self.array.address

    def numel(self):
        return self.nbytes // self.itemsize

    def get_device(self):
        return 0

    def is_contiguous(self):
        return True

    def is_neg(self):
        return False

    is_conj = is_neg

    def untyped_storage(self):
        return SimpleNamespace(nbytes=lambda: self.nbytes)

    def record_stream(self, stream):
        self.recorded.append(stream)


def install() -> None:
    """Make this process, which must be that of a rank, one that has imported torch."""
    sys.modules["torch"] = SimpleNamespace(
        Tensor=Tensor,
        nn=SimpleNamespace(Parameter=type("Parameter", (Tensor,), {})),
        _C=SimpleNamespace(_cuda_getCurrentRawStream=lambda device: CURRENT["stream"]),
        cuda=SimpleNamespace(
            current_stream=lambda device: SimpleNamespace(cuda_stream=CURRENT["stream"]),
            ExternalStream=lambda handle, device: handle,
        ),
    )
