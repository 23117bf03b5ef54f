"""The tables in Python agree with those of the engine."""

from __future__ import annotations

from unisono import _engine
from unisono.codecs.codec import Codec, find
from unisono.codecs.formats import FORMATS
from unisono.comm.arrays import ELEMENT_BYTES
from unisono.comm.faults import EXCEPTIONS

TABLES = _engine.tables()


def test_types_have_the_same_names_and_sizes():
    assert list(ELEMENT_BYTES.items()) == list(TABLES["dtypes"].items())


def test_codecs_have_the_same_names_and_codec_blocks():
    assert TABLES["codecs"] == ["none", *FORMATS]
    assert {form.block for form in FORMATS.values()} == {None, TABLES["codec_block_elements"]}


def test_codecs_have_the_same_lengths_on_the_wire():
    lengths = [0, 1, 31, 32, 33, 1000, 65536]
    for name, form in FORMATS.items():
        assert [form.wire_bytes(n) for n in lengths] == [_engine.encoded_bytes(name, n) for n in lengths]


def test_top_k_has_the_same_length_on_the_wire():
    codec = find("topk:0.01")
    assert isinstance(codec, Codec)
    for n in (0, 1, 100, TABLES["topk_window"], TABLES["topk_window"] + 1, 1_000_000):
        assert codec.wire_bytes(n) == _engine.topk_bytes(n, codec.kept(n))


def test_every_fault_has_an_exception():
    assert TABLES["faults"][0] == "none"
    assert len(EXCEPTIONS) == len(TABLES["faults"])
