"""Codecs that a call allows, by name and as a record."""

from __future__ import annotations

import pytest

from unisono.codecs import AutoCodec, Codec, find_auto
from unisono.errors import UsageError


def test_a_name_and_a_record_are_the_same():
    assert find_auto("auto:bf16") == AutoCodec("bf16") == AutoCodec(Codec("bf16"))
    assert find_auto(AutoCodec("int8")).codec == Codec("int8")
    assert str(AutoCodec("fp8_e4m3")) == "auto:fp8_e4m3"
    assert len({AutoCodec("bf16"), find_auto("auto:bf16")}) == 1


@pytest.mark.parametrize("codec", [None, "bf16", "auto", "topk:0.01", Codec("bf16")])
def test_what_names_a_codec_allows_none(codec):
    assert find_auto(codec) is None


@pytest.mark.parametrize(
    ("name", "complaint"), [("auto:bf17", "bf17"), ("auto:", "''"), ("auto:topk:0.1", "top-k drops most numbers")]
)
def test_a_codec_that_cannot_be_allowed_is_named(name, complaint):
    with pytest.raises(UsageError, match=complaint):
        find_auto(name)
