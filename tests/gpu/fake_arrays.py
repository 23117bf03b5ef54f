"""Arrays in the memory of the fake driver, with the interface by which libraries exchange arrays on GPUs."""

from __future__ import annotations

import contextlib
import ctypes

import numpy as np

from gpu.fake_driver import DriverError, FakeDriver


class CudaArray:
    """An array on a fake GPU: ``CudaArray(driver, numpy_array)``; ``.numpy()`` copies it back."""

    def __init__(self, driver: FakeDriver, values: np.ndarray, *, stream: int = 0, shareable: bool = True) -> None:
        self.driver, self.stream, self.dtype = driver, stream, values.dtype
        self.shape, self.nbytes, self.base, self.address = values.shape, values.nbytes, None, 0
        address = ctypes.c_uint64()
        allocate = driver.cuMemAlloc_v2 if shareable else driver.fake_alloc_private
        allocate(ctypes.byref(address), max(1, values.nbytes))
        self.address = address.value
        self.write(values)

    def __getitem__(self, part: slice) -> CudaArray:
        """Return a part of an array of one dimension, in the same memory."""
        begin, end, step = part.indices(self.shape[0])
        assert step == 1
        made = object.__new__(CudaArray)
        made.driver, made.stream, made.dtype, made.base = self.driver, self.stream, self.dtype, self
        made.shape = (max(0, end - begin),)
        made.nbytes = made.shape[0] * self.dtype.itemsize
        made.address = self.address + begin * self.dtype.itemsize
        return made

    @property
    def __cuda_array_interface__(self) -> dict:
        return {
            "shape": self.shape, "typestr": self.dtype.str, "data": (self.address if self.nbytes else 0, False),
            "strides": None, "version": 3, "stream": self.stream or 1,
        }  # fmt: skip

    def write(self, values: np.ndarray) -> None:
        """Overwrite the array, in the order of its stream."""
        values = np.ascontiguousarray(values)
        assert values.nbytes == self.nbytes
        if self.nbytes:
            self.driver.cuMemcpyHtoDAsync_v2(self.address, values.ctypes.data, values.nbytes, self.stream)

    def numpy(self) -> np.ndarray:
        """Return a copy in the memory of the host, after what its stream has been asked to do."""
        values = np.empty(self.shape, self.dtype)
        if self.nbytes:
            self.driver.cuMemcpyDtoHAsync_v2(values.ctypes.data, self.address, self.nbytes, self.stream)
        self.driver.cuStreamSynchronize(self.stream)
        return values

    def free(self) -> None:
        """Free the memory; the address may belong to the next array."""
        if self.address and self.base is None:
            self.driver.cuMemFree_v2(self.address)
        self.address = 0

    def __del__(self) -> None:
        with contextlib.suppress(DriverError):  # in a forked process
            self.free()


def new_stream(driver: FakeDriver, *, blocking: bool = False) -> int:
    """Return a new stream of the current device."""
    made = ctypes.c_void_p()
    driver.cuStreamCreate(ctypes.byref(made), 0 if blocking else 1)
    return made.value or 0
