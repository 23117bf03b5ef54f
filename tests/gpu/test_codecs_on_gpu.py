"""On a GPU, codecs give the bits of the CPU, alone and in collectives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import unisono
from arrays import bits, some_bits
from floats import of_every_kind
from unisono import codecs
from unisono.codecs import Codec, ErrorFeedback
from unisono.codecs.formats import BLOCK, FORMATS

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

SCALED = [name for name, form in FORMATS.items() if form.block]
FORMAT_CODECS = [
    Codec(name, stochastic=stochastic, seed=2**64 - 3) for name in FORMATS for stochastic in (False, True)
]
CODECS = [*FORMAT_CODECS, *(Codec(f"topk:{fraction}") for fraction in ("0.00001", "0.01", "0.5", "1"))]
SOME = pytest.mark.parametrize("codec", CODECS, ids=str)
LENGTHS = [0, 1, 3, 4, 5, 31, 32, 33, 100, 2049, 8191, 8192, 8193, 16384 + 7, 65537, 1_000_003]


def assert_same(values: np.ndarray, codec: Codec, offset: int = 0) -> None:
    """Compare with the CPU; ``offset``: how many elements the tensor lies after an aligned address."""
    memory = torch.empty(values.size + offset, device="cuda")
    tensor = memory[offset:]
    tensor.copy_(torch.from_numpy(values))
    wire = codecs.encode(values, codec)
    found = codecs.encode(tensor, codec)
    assert found.is_cuda
    assert np.array_equal(found.cpu().numpy(), wire)
    assert bits(tensor.cpu().numpy()) == bits(values)
    expected = codecs.decode(wire, codec, values.size)
    assert bits(codecs.decode(found, codec, values.size).cpu().numpy()) == bits(expected)
    codecs.round_in_place(tensor, codec)
    assert bits(tensor.cpu().numpy()) == bits(expected)


@SOME
def test_arrays_of_every_kind_have_the_same_bits(codec):
    for values in of_every_kind(140_003).values():
        assert_same(values, codec)


@SOME
def test_any_length_and_any_alignment_have_the_same_bits(codec):
    for n in LENGTHS:
        values = some_bits("float32", n, np.random.default_rng(n))
        for offset in (0, 1, 2):
            assert_same(values, codec, offset)


@pytest.mark.parametrize("codec", FORMAT_CODECS, ids=str)
def test_four_million_random_floats_have_the_same_bits(codec):
    """Usual blocks, which the GPU converts with instructions, and unusual ones."""
    rng = np.random.default_rng(3)
    n = 1 << 22
    with np.errstate(all="ignore"):
        scales = np.repeat(10.0 ** rng.uniform(-44, 38, n // BLOCK), BLOCK)
        assert_same((rng.standard_normal(n) * scales).astype(np.float32), codec)
    assert_same(rng.integers(0, 2**32, n, dtype=np.uint32).view(np.float32), codec)


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_every_16_bit_code_is_decoded_and_rounded_alike(name):
    codes = np.arange(65536, dtype=np.uint16).view(np.uint8)
    numbers = codecs.decode(codes, name, 65536)
    assert bits(codecs.decode(torch.from_numpy(codes).cuda(), name, 65536).cpu().numpy()) == bits(numbers)
    finite = np.sort(numbers[np.isfinite(numbers)])
    middle = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
    near = [np.nextafter(middle, np.float32(side)) for side in (-np.inf, np.inf)]
    for values in (numbers, middle, *near):
        assert_same(values, Codec(name))


@pytest.mark.parametrize("name", SCALED)
def test_every_scale_with_every_code_is_decoded_and_rounded_alike(name):
    scales = np.arange(1, 255 - FORMATS[name].exponent, dtype=np.uint8)
    codes = np.tile(np.arange(256, dtype=np.uint8), scales.size)
    wire = np.concatenate([np.repeat(scales, 256 // BLOCK), codes])
    numbers = codecs.decode(wire, name, codes.size)
    assert bits(codecs.decode(torch.from_numpy(wire).cuda(), name, codes.size).cpu().numpy()) == bits(numbers)
    assert_same(numbers, Codec(name))


@pytest.mark.parametrize("value", [0.0, -2.5, np.nan, 1e-40])
@pytest.mark.parametrize("n", [8193, 65536, 3_000_000])
def test_top_k_of_equal_elements_keeps_the_first(n, value):
    for fraction in ("0.3", "1"):
        assert_same(np.full(n, value, np.float32), Codec(f"topk:{fraction}"))


@SOME
def test_error_feedback_has_the_same_bits(codec):
    on_cpu, on_gpu = ErrorFeedback(codec), ErrorFeedback(codec)
    for step in range(3):
        values = of_every_kind(100_003, step)["lognormal"]
        tensor = torch.from_numpy(values.copy()).cuda()
        on_cpu.correct("w", values)
        on_gpu.correct("w", tensor)
        assert bits(tensor.cpu().numpy()) == bits(values)
        assert on_gpu.residuals["w"].is_cuda
        assert bits(on_gpu.residuals["w"].cpu().numpy()) == bits(on_cpu.residuals["w"])


def test_a_codec_works_on_the_current_stream_and_in_a_graph():
    values = of_every_kind(100_000)["normal"]
    expected = codecs.encode(values, "fp8_e4m3")
    tensor = torch.from_numpy(values).cuda()
    codecs.encode(tensor, "fp8_e4m3")  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        wire = codecs.encode(tensor, "fp8_e4m3")
    tensor.neg_()
    graph.replay()
    assert np.array_equal(wire.cpu().numpy(), codecs.encode(-values, "fp8_e4m3"))
    tensor.neg_()
    graph.replay()
    assert np.array_equal(wire.cpu().numpy(), expected)


def reduced_on_both(comm, names: list[str], n: int) -> list[tuple[str, str, str]]:
    """Return the calls whose results on the GPU and on the CPU differ."""
    different = []
    for name in names:
        for op in ("sum", "avg"):
            options = {} if name.startswith("topk") else {"algorithm": "ring"}
            values = of_every_kind(n, comm.rank)["normal"]
            tensor, later = (torch.from_numpy(values.copy()).cuda() for _ in range(2))
            comm.all_reduce(values, op=op, codec=name, **options)
            comm.all_reduce(tensor, op=op, codec=name, **options)
            comm.all_reduce(later, op=op, codec=name, async_op=True, **options).wait()
            for way, found in (("blocking", tensor), ("asynchronous", later)):
                if bits(found.cpu().numpy()) != bits(values):
                    different.append((name, op, f"rank {comm.rank}, {way}"))
    return different


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_an_all_reduce_with_a_codec_has_the_bits_of_the_cpu(size):
    names = [*FORMATS, "topk:0.01"]
    assert unisono.spawn(reduced_on_both, size, names, 100_003, start="spawn") == [[]] * size
