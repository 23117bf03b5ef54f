"""Codecs as records: names, sizes, rejected arguments, and descriptions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from arrays import bits
from unisono import _engine, codecs
from unisono.codecs.formats import FORMATS
from unisono.errors import UsageError

SIZES = [0, 1, 31, 32, 33, 64, 1_000, 65_535, 65_536, 65_537, 200_000]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", [*FORMATS, "topk:0.01", "topk:1"])
def test_the_wire_has_the_predicted_length(name, n):
    codec = codecs.find(name)
    array = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    assert codecs.encode(array, codec).nbytes == codec.wire_bytes(n)
    if not codec.is_topk:
        assert codec.wire_bytes(n) == _engine.encoded_bytes(name, n)


def test_fp8_and_int8_are_about_a_quarter_of_float32_scales_included():
    for name in ("fp8_e4m3", "fp8_e5m2", "int8"):
        assert codecs.find(name).wire_bytes(2**20) / 2**22 == 0.2578125


def test_a_hundredth_on_four_ranks_sends_a_fiftieth_of_a_dense_ring():
    n, ranks = 2**20, 4
    sent = (ranks - 1) * codecs.find("topk:0.01").wire_bytes(n)  # an all-gather of the pieces
    dense = 2 * (ranks - 1) * n // ranks * 4
    assert sent / dense == pytest.approx(0.02, rel=0.01)


@pytest.mark.parametrize(
    ("name", "n", "kept"),
    [
        ("topk:0.01", 100, 1),
        ("topk:0.01", 101, 2),
        ("topk:0.1", 30, 3),
        ("topk:1", 7, 7),
        ("topk:1e-9", 5, 1),
        ("topk:0.5", 0, 0),
    ],
)
def test_top_k_keeps_the_fraction_rounded_up(name, n, kept):
    assert codecs.find(name).kept(n) == kept


@pytest.mark.parametrize(
    "name", ["fp8", "FP16", "", "topk", "topk:", "topk:0", "topk:1.01", "topk:-1", "topk:nan", "topk:x", None, 8]
)
def test_the_error_for_an_unknown_codec_lists_all_codecs(name):
    with pytest.raises(
        UsageError, match=r"there is no codec .*; expected one of fp16, bf16, fp8_e4m3, .* topk:0\.01"
    ):
        codecs.find(name)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"name": "topk:0.1", "stochastic": True}, "codec 'topk:0.1' has no stochastic rounding"),
        ({"name": "int8", "seed": -1}, "the seed of a codec is -1; expected a whole number from 0"),
        ({"name": "int8", "seed": 0.5}, "the seed of a codec is 0.5"),
    ],
)
def test_invalid_options_are_rejected(arguments, complaint):
    with pytest.raises(UsageError, match=complaint):
        codecs.Codec(**arguments)


def test_a_codec_is_found_by_its_name_or_by_its_record():
    codec = codecs.Codec("int8", stochastic=True, seed=3)
    assert codecs.find(codec) is codec
    assert codecs.find("int8") == codecs.Codec("int8") != codec
    assert str(codec) == "int8, stochastic, seed 3"
    assert eval(repr(codec), {"Codec": codecs.Codec}) == codec


def test_a_codec_describes_itself():
    assert codecs.find("fp8_e4m3").describe().splitlines() == [
        "codec fp8_e4m3",
        "  bytes: 0.2578 of float32",
        "  error: at most the larger of 0.0625 of the element and 0.000976562 of the scale of its 32 elements",
        "  too large: becomes 2.97747e+38",
        "  infinity: becomes NaN; NaN: kept",
    ]
    assert "rounded to bf16" in codecs.find("topk:0.01").describe()


def test_torch_tensors_are_accepted_like_numpy_arrays():
    values = np.linspace(-3, 3, 99, dtype=np.float32).reshape(3, 33)
    tensor = torch.tensor(values, requires_grad=True)
    assert bits(codecs.encode(tensor, "int8")) == bits(codecs.encode(values, "int8"))
    with torch.no_grad():
        codecs.round_in_place(tensor, "int8")
    codecs.round_in_place(values, "int8")
    assert bits(tensor.detach().numpy()) == bits(values)


@pytest.mark.parametrize(
    ("array", "complaint"),
    [
        (np.zeros(4), "has dtype float64; codecs support float32"),
        (np.zeros(4, ">f4"), "has dtype >f4; codecs support float32"),
        (np.zeros((4, 4), np.float32)[:, 1], "is not contiguous"),
        ([1.0], "is a list; expected a numpy array, a torch tensor or a CUDA array"),
        (torch.zeros(4, dtype=torch.bfloat16), "has dtype torch.bfloat16; codecs support float32"),
        (torch.zeros(4, device="meta"), "is on meta; expected a tensor on the CPU"),
    ],
)
def test_arrays_that_cannot_be_encoded_are_rejected(array, complaint):
    with pytest.raises(UsageError, match=f"the array to encode {complaint}"):
        codecs.encode(array, "fp16")


def test_a_read_only_array_is_encoded_but_not_rounded():
    array = np.ones(4, np.float32)
    array.flags.writeable = False
    assert codecs.encode(array, "fp16").size == 8
    with pytest.raises(UsageError, match="the array to round is read-only"):
        codecs.round_in_place(array, "fp16")


def test_a_wire_of_another_length_is_rejected():
    wire = codecs.encode(np.ones(40, np.float32), "int8")
    with pytest.raises(
        UsageError, match=r"41 elements in codec int8 are a flat array of 43 uint8; found uint8 of shape \(42,\)"
    ):
        codecs.decode(wire, "int8", 41)


def test_the_errors_of_the_record_follow_from_the_bits():
    for name, form in FORMATS.items():
        nearest, stochastic = codecs.find(name), codecs.Codec(name, stochastic=True)
        assert stochastic.relative_error == 2 * nearest.relative_error
        assert stochastic.absolute_error == 2 * nearest.absolute_error == form.quantum
    relative = {name: codecs.find(name).relative_error for name in FORMATS}
    assert relative == {"fp16": 2**-11, "bf16": 2**-8, "fp8_e4m3": 2**-4, "fp8_e5m2": 2**-3, "int8": 0}
    assert math.isclose(codecs.rounding_error("int8", 1.0), 1 / 127)
