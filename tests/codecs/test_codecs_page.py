"""The tables of docs/codecs.md agree with the code."""

from __future__ import annotations

import re

import numpy as np
import pytest

from console_blocks import ROOT
from unisono import codecs
from unisono.codecs.formats import FORMATS

PAGE = (ROOT / "docs" / "codecs.md").read_text(encoding="utf-8")


def rows(heading: str) -> dict[str, list[str]]:
    """Return the cells of each row of the table after a heading, by the first cell."""
    table = PAGE.split(f"## {heading}\n", 1)[1].split("\n|", 1)[1].split("\n\n", 1)[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {row[0]: row[1:] for row in cells}


def power(text: str) -> float:
    found = re.match(r"2\^(-\d+)", text)
    return 2.0 ** int(found[1]) if found else float(text)


@pytest.mark.parametrize("name", FORMATS)
def test_the_table_of_codecs_is_correct(name):
    codec = codecs.find(name)
    _, share, relative, absolute, largest = rows("The codecs")[name]
    assert float(share) == round(codec.wire_bytes(2**20) / 2**22, 4)
    assert (power(relative), power(absolute)) == (codec.relative_error, codec.absolute_error)
    assert absolute.endswith("scales") == (codec.format.block is not None)
    assert float(f"{codec.format.largest:.3g}") == pytest.approx(float(largest), rel=1e-3)


@pytest.mark.parametrize("name", [*FORMATS, "topk"])
def test_the_table_of_special_numbers_is_correct(name):
    table = rows("Numbers that are too large, infinite or NaN")
    column = table[""].index(name)
    largest, infinity, nan, zero = (table[row][column] for row in ("finite, too large", "infinity", "NaN", "-0"))
    codec = codecs.find("topk:1" if name == "topk" else name)
    values = np.array([3.4028e38, np.inf, np.nan, -0.0], np.float32)
    found = codecs.decode(codecs.encode(values, codec), codec, 4)
    assert found[0] == pytest.approx(float(largest.strip("±")), rel=0.01)
    assert np.isinf(found[1]) if infinity == "kept" else np.isnan(found[1])
    assert np.isnan(found[2])
    assert nan.startswith("NaN")
    assert np.signbit(found[3]) == (zero == "-0")


def test_the_break_even_of_a_codec_follows_from_the_measured_speeds():
    for name, cells in rows("When a codec pays off").items():
        if name in FORMATS:
            encode, add, link = map(float, cells)
            share = codecs.find(name).wire_bytes(2**20) / 2**22
            assert link == pytest.approx((1 - share) / (1 / encode + 1 / add), abs=0.06)
