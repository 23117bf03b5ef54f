"""The codecs give the bits of the numpy reference, on every instruction set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arrays import at_offset, bits, some_bits
from floats import of_every_kind
from unisono import _engine
from unisono.codecs import reference
from unisono.codecs.formats import BLOCK, FORMATS
from unisono.player.reduction import combining

VARIANTS = _engine.variants()
SCALED = [name for name, form in FORMATS.items() if form.block]


def encoded(
    values: np.ndarray, name: str, variant: str = "", *, stochastic: bool = False, seed: int = 0, first: int = 0
) -> np.ndarray:
    wire = np.empty(_engine.encoded_bytes(name, len(values)), np.uint8)
    _engine.encode(name, wire, values.view(np.uint8), stochastic, seed, first, variant)
    return wire


def decoded(wire: np.ndarray, name: str, n: int, variant: str = "") -> np.ndarray:
    out = np.empty(n, np.float32)
    _engine.decode(name, out.view(np.uint8), wire, variant)
    return out


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("stochastic", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_the_engine_gives_the_bits_of_the_reference(name, stochastic, variant):
    rounding = {"stochastic": stochastic, "seed": 2**63 + 12345, "first": 77}
    for kind, values in of_every_kind(6_000 + 7).items():
        wanted = reference.encode(values, name, **rounding)
        wire = encoded(values, name, variant, **rounding)
        assert np.array_equal(wire, wanted), kind
        assert bits(decoded(wire, name, len(values), variant)) == bits(reference.decode(wire, name, len(values))), (
            kind
        )


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", SCALED)
def test_every_code_at_every_scale_is_decoded_like_the_reference(name, variant):
    form = FORMATS[name]
    scales = np.arange(1, 255 - form.exponent, dtype=np.uint8)
    codes = np.tile(np.arange(256, dtype=np.uint8), len(scales))
    wire = np.concatenate([np.repeat(scales, 256 // BLOCK), codes])
    assert bits(decoded(wire, name, len(codes), variant)) == bits(reference.decode(wire, name, len(codes)))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_every_16_bit_number_is_decoded_like_the_reference(name, variant):
    wire = np.arange(65536, dtype=np.uint16).view(np.uint8)
    assert bits(decoded(wire, name, 65536, variant)) == bits(reference.decode(wire, name, 65536))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("stochastic", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_rounding_the_source_gives_it_the_decoded_numbers(name, stochastic, variant):
    for kind, values in of_every_kind(3_000 + 5).items():
        source, wire = values.copy(), encoded(values, name, variant, stochastic=stochastic)
        other = np.empty_like(wire)
        _engine.encode_rounding_source(name, other, source.view(np.uint8), stochastic, 0, 0, variant)
        assert np.array_equal(other, wire), kind
        assert bits(source) == bits(decoded(wire, name, len(values), variant)), kind


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("name", FORMATS)
def test_decode_combine_gives_the_bits_of_decode_and_then_combine(name, op, variant):
    rng = np.random.default_rng(3)
    left = some_bits("float32", 3_000 + 9, rng)
    for kind, values in of_every_kind(len(left)).items():
        wire = encoded(values, name)
        wanted = combining(op, left.dtype)(left, decoded(wire, name, len(left)))
        out = left.copy()  # the result overwrites a side
        _engine.decode_combine(name, op, out.view(np.uint8), out.view(np.uint8), wire, variant)
        assert bits(out) == bits(wanted), kind


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(list(FORMATS)), n=st.integers(0, 200), variant=st.sampled_from(VARIANTS),
    offset=st.sampled_from([0, 4, 20]), seed=st.integers(0, 2**32),
)  # fmt: skip
def test_any_length_and_any_address(name, n, variant, offset, seed):
    values = some_bits("float32", n, np.random.default_rng(seed))
    wire = at_offset(np.zeros(_engine.encoded_bytes(name, n), np.uint8), offset + 1)
    _engine.encode(name, wire, at_offset(values, offset), False, 0, 0, variant)
    assert np.array_equal(wire, reference.encode(values, name))
    out = at_offset(np.zeros(n, np.float32), offset)
    _engine.decode(name, out, wire, variant)
    assert bits(out) == bits(reference.decode(wire, name, n))


@pytest.mark.parametrize("name", FORMATS)
def test_pieces_of_whole_codec_blocks_can_be_encoded_one_by_one(name):
    values = of_every_kind(1_000)["normal"]
    whole = decoded(encoded(values, name, stochastic=True, seed=5, first=3), name, 1_000)
    pieces = [(0, 32), (32, 512), (512, 1_000)]
    found = [
        decoded(encoded(values[a:b], name, stochastic=True, seed=5, first=3 + a), name, b - a) for a, b in pieces
    ]
    assert bits(np.concatenate(found)) == bits(whole)
    assert sum(_engine.encoded_bytes(name, b - a) for a, b in pieces) == _engine.encoded_bytes(name, 1_000)


def test_invalid_arguments_are_rejected():
    zeros = np.zeros(4, np.uint8)
    with pytest.raises(ValueError, match="there is no codec 'fp4'; expected one of none, fp16"):
        _engine.encode("fp4", zeros, zeros, False, 0, 0, "")
    with pytest.raises(ValueError, match="there is nothing to encode"):
        _engine.encode("none", zeros, zeros, False, 0, 0, "")
    with pytest.raises(ValueError, match="found 4 bytes of numbers and 4 on the wire"):
        _engine.encode("fp16", zeros, zeros, False, 0, 0, "")
    with pytest.raises(ValueError, match="band has no meaning for float32"):
        _engine.decode_combine("fp16", "band", zeros, zeros, zeros[:2], "")
    with pytest.raises(ValueError, match="two float32 arrays of equal length"):
        _engine.decode_combine("fp16", "sum", zeros, np.zeros(8, np.uint8), zeros[:2], "")
