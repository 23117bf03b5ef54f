"""Codecs on CUDA arrays without a GPU: their kernels run on the host, on tensors of the CPU."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch

import device_coding
from arrays import bits, some_bits
from floats import of_every_kind
from unisono import codecs
from unisono.codecs import Codec, ErrorFeedback
from unisono.codecs.formats import FORMATS
from unisono.errors import UsageError
from unisono.gpu import coding

CODECS = [Codec("topk:0.01"), Codec("topk:1")] + [
    Codec(name, stochastic=stochastic, seed=2**64 - 3) for name in FORMATS for stochastic in (False, True)
]
SOME = pytest.mark.parametrize("codec", CODECS, ids=str)


@pytest.fixture(autouse=True)
def _kernels_run_on_the_host(monkeypatch):
    def launch(source, macros, name, blocks, device, *arguments):
        assert device.type == "cpu"
        assert blocks > 0
        given = [
            ctypes.c_float(each) if isinstance(each, float) else ctypes.c_uint64(each or 0)
            for each in (each.data_ptr() if isinstance(each, torch.Tensor) else each for each in arguments)
        ]
        getattr(device_coding.host_build(source, *macros), name)(*given, ctypes.c_uint32(blocks))

    monkeypatch.setattr(coding, "launch", launch)
    monkeypatch.setattr(coding, "multiprocessors", lambda device: 2)


@pytest.fixture
def _cpu_tensors_are_cuda_arrays(monkeypatch):
    for module in (codecs.coding, codecs.topk, codecs.feedback):
        monkeypatch.setattr(module, "is_on_cuda", lambda array: isinstance(array, torch.Tensor))


def arrays(n: int = 70_001) -> list[np.ndarray]:
    return [some_bits("float32", n, np.random.default_rng(0)), of_every_kind(n)["normal"]]


@SOME
@pytest.mark.usefixtures("_cpu_tensors_are_cuda_arrays")
def test_an_array_on_the_device_is_encoded_decoded_and_rounded_like_one_on_the_cpu(codec):
    for values in arrays():
        wire = codecs.encode(values, codec)
        found = codecs.encode(torch.from_numpy(values), codec)
        assert isinstance(found, torch.Tensor)
        assert np.array_equal(found.numpy(), wire)
        expected = codecs.decode(wire, codec, values.size)
        assert bits(codecs.decode(found, codec, values.size).numpy()) == bits(expected)
        rounded = torch.from_numpy(values.copy()).view(-1, 1)
        codecs.round_in_place(rounded, codec)
        assert bits(rounded.numpy().reshape(-1)) == bits(expected)


@SOME
@pytest.mark.usefixtures("_cpu_tensors_are_cuda_arrays")
def test_an_empty_array_has_an_empty_wire(codec):
    empty = torch.empty(0)
    assert codecs.encode(empty, codec).shape == (0,)
    assert codecs.decode(torch.empty(0, dtype=torch.uint8), codec, 0).shape == (0,)
    codecs.round_in_place(empty, codec)


@SOME
@pytest.mark.usefixtures("_cpu_tensors_are_cuda_arrays")
def test_error_feedback_on_the_device_gives_the_bits_of_the_cpu(codec):
    on_cpu, on_device = ErrorFeedback(codec), ErrorFeedback(codec)
    with np.errstate(all="ignore"):
        for step in range(3):
            for number, values in enumerate(arrays(5_003)):
                here, there = values * np.float32(step + 1), torch.from_numpy(values * np.float32(step + 1))
                on_cpu.correct(number, here)
                on_device.correct(number, there)
                assert bits(there.numpy()) == bits(here)
                residual = on_device.residuals[number]
                assert isinstance(residual, torch.Tensor)
                assert np.array_equal(residual.numpy(), on_cpu.residuals[number], equal_nan=True)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("op", ["sum", "avg"])
@pytest.mark.usefixtures("_cpu_tensors_are_cuda_arrays")
def test_an_all_reduce_of_the_largest_gives_the_bits_of_the_cpu(size, op):
    codec = codecs.find("topk:0.02")
    inputs = [some_bits("float32", 66_000, np.random.default_rng(rank)) for rank in range(size)]
    wires = np.concatenate([codecs.encode(values, codec) for values in inputs])
    for values in inputs:
        expected, found = values.copy(), torch.from_numpy(values.copy())
        with np.errstate(all="ignore"):
            codecs.all_reduce_topk(expected, codec, size, lambda out, mine: np.copyto(out, wires), op)
        codecs.all_reduce_topk(found, codec, size, lambda out, mine: out.copy_(torch.from_numpy(wires)), op)
        assert bits(found.numpy()) == bits(expected)


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_a_wire_of_top_k_at_an_odd_address_is_decoded(offset):
    codec, values = codecs.find("topk:0.1"), of_every_kind(1_000)["normal"]
    wire = codecs.encode(values, codec)
    memory = torch.zeros(wire.size + 4, dtype=torch.uint8)
    start = (offset - memory.data_ptr()) % 4
    memory[start : start + wire.size] = torch.from_numpy(wire)
    found = coding.decode(memory[start : start + wire.size], codec, values.size)
    assert bits(found.numpy()) == bits(codecs.decode(wire, codec, values.size))


def test_a_wire_that_is_not_one_is_refused():
    codec = codecs.find("topk:0.1")
    with pytest.raises(UsageError, match=r"not valid for codec topk:0\.1: its windows or positions do not fit 100"):
        coding.decode(torch.full((codec.wire_bytes(100),), 255, dtype=torch.uint8), codec, 100)
    with pytest.raises(UsageError, match="100 elements in codec int8 are a flat array of 104 uint8"):
        coding.decode(torch.zeros(103, dtype=torch.uint8), Codec("int8"), 100)


@pytest.mark.parametrize(
    ("tensor", "complaint"),
    [
        (torch.zeros(4, dtype=torch.float16), "has dtype torch.float16; codecs support float32"),
        (torch.zeros(4, 4)[:, 1], "is not contiguous"),
        (torch._neg_view(torch.zeros(4)), "is a view with the negative bit set"),
    ],
)
def test_arrays_that_cannot_be_rounded_are_rejected(tensor, complaint):
    with pytest.raises(UsageError, match=f"the array to round {complaint}"):
        coding.round_in_place(tensor, Codec("bf16"))


@pytest.mark.usefixtures("_cpu_tensors_are_cuda_arrays")
def test_a_residual_on_another_device_or_of_another_length_is_refused():
    feedback = ErrorFeedback("bf16")
    feedback.correct("w", torch.ones(4))
    with pytest.raises(UsageError, match="the array of 'w' has 5 elements; expected 4, as before"):
        feedback.correct("w", torch.ones(5))
    feedback.residuals["w"] = torch.zeros(4, device="meta")
    with pytest.raises(UsageError, match="the array of 'w' is on cpu; expected it on meta, as before"):
        feedback.correct("w", torch.ones(4))
    feedback.forget("w")
    feedback.correct("w", torch.ones(5))
