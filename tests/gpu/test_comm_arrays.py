"""CUDA arrays as the communicator sees them: an address, a length, a type and a device, or a clear error."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from unisono import collectives
from unisono.comm.arguments import Given, arguments_of
from unisono.comm.arrays import ANY_DEVICE, Array, array_of
from unisono.comm.call_request import CallRequest
from unisono.errors import UsageError
from unisono.gpu import driver

DEVICE_BYTES = 1 << 30  # device d of the stub has the addresses from (d + 1) * DEVICE_BYTES on


class StubDriver:
    def device_of(self, address):
        return address // DEVICE_BYTES - 1


@pytest.fixture(autouse=True)
def stub_driver(monkeypatch):
    monkeypatch.setattr(driver, "cuda_driver", StubDriver)


def cuda_array(shape=(4,), typestr="<f4", device=0, offset=0, read_only=False, **others):
    address = (device + 1) * DEVICE_BYTES + offset if 0 not in shape else 0
    interface = {"shape": shape, "typestr": typestr, "data": (address, read_only), "version": 3, **others}
    return SimpleNamespace(__cuda_array_interface__=interface)


class Tensor:
    """What a communicator asks a tensor of torch."""

    is_nested = is_cpu = False
    dtype, itemsize, nbytes = "torch.bfloat16", 2, 8

    def __init__(self, kind="cuda", index=1):
        self.is_cuda, self.device, self.index = kind == "cuda", f"{kind}:{index}", index

    def data_ptr(self):
        return DEVICE_BYTES

    def get_device(self):
        return self.index

    def numel(self):
        return 4

    def is_contiguous(self):
        return True

    def is_neg(self):
        return False

    is_conj = is_neg

    def untyped_storage(self):
        return SimpleNamespace(nbytes=lambda: self.nbytes)


def test_an_object_with_the_cuda_interface_is_an_array_on_its_device():
    given = cuda_array((2, 3), device=1, offset=64)
    assert array_of(given, "x", True) == Array(2 * DEVICE_BYTES + 64, 6, "float32", given, 1)


def test_a_tensor_on_cuda_is_an_array_on_its_device():
    given = Tensor()
    assert array_of(given, "x", True) == Array(DEVICE_BYTES, 4, "bfloat16", given, 1)


def test_arrays_on_the_cpu_have_no_device():
    assert array_of(np.ones(3), "x", True).device is None


def test_a_type_without_a_letter_has_the_name_that_the_array_states():
    given = cuda_array(typestr="<V2")
    given.dtype = "bfloat16"
    assert array_of(given, "x", True).dtype == "bfloat16"


def test_a_scalar_has_one_element():
    assert array_of(cuda_array(()), "x", True).length == 1


def test_an_empty_array_is_on_any_device():
    assert array_of(cuda_array((0, 3), strides=(99, 99)), "x", True)[1:3] == (0, "float32")
    assert array_of(cuda_array((0,)), "x", True).device == ANY_DEVICE


@pytest.mark.parametrize("strides", [None, (12, 4)])
def test_strides_of_contiguous_arrays_are_accepted(strides):
    assert array_of(cuda_array((2, 3), strides=strides), "x", True).length == 6


@pytest.mark.parametrize(
    ("given", "identifier"),
    [
        (cuda_array((2, 3), strides=(4, 8)), "comm.not_contiguous_cuda_array"),
        (cuda_array((2, 3), strides=(24, 8)), "comm.not_contiguous_cuda_array"),
        (cuda_array(read_only=True), "comm.read_only_array"),
        (cuda_array(typestr=">f4"), "comm.foreign_byte_order"),
        (cuda_array(typestr="<U4"), "comm.no_such_dtype"),
        (cuda_array(mask=np.ones(4)), "comm.masked_array"),
        (cuda_array(device=-2), "comm.not_device_memory"),
        (Tensor("mps", 0), "comm.not_on_cpu"),
        (Tensor("meta", 0), "comm.not_on_cpu"),
        ("text", "comm.not_an_array"),
    ],
)
def test_arrays_that_cannot_be_used_are_refused(given, identifier):
    with pytest.raises(UsageError) as caught:
        array_of(given, "x", True)
    assert caught.value.id == identifier


def gathered(out, array):
    return arguments_of(CallRequest(collectives.all_gather), 0, 2, Given(out, array))


def test_the_arrays_of_a_call_are_on_one_device():
    assert gathered(cuda_array((8,), offset=64), cuda_array()).device == 0
    assert gathered(cuda_array((8,), device=1), cuda_array(device=1)).device == 1
    assert gathered(np.ones(8), np.ones(4)).device is None


def test_an_empty_array_fits_to_any_cuda_device():
    request = CallRequest(collectives.all_gather)
    sizes = Given(cuda_array((8,), device=1), cuda_array((0,)), (0, 8))
    assert arguments_of(request, 0, 2, sizes).device == 1
    assert gathered(cuda_array((0,)), cuda_array((0,))).device == ANY_DEVICE


@pytest.mark.parametrize(
    ("out", "array", "places"),
    [
        (cuda_array((8,)), cuda_array(device=1), ("CUDA device 0", "CUDA device 1")),
        (cuda_array((8,)), np.ones(4, "f4"), ("CUDA device 0", "the CPU")),
        (np.ones(8, "f4"), cuda_array(device=1), ("the CPU", "CUDA device 1")),
        (np.ones(0, "f4"), cuda_array((0,)), ("the CPU", "CUDA device 0")),
    ],
)
def test_arrays_on_different_devices_are_refused(out, array, places):
    with pytest.raises(UsageError) as caught:
        gathered(out, array)
    assert caught.value.id == "comm.devices_differ"
    assert (caught.value.parameters["output"], caught.value.parameters["input"]) == places
