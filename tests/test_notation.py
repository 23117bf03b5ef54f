"""The notation for data is the same in Python and on the pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unisono.notation import abbreviated, chunk_name, expression, short_expressions

# tests/drawing/page/common/expressions.test.mjs reads the same cases.
CASES = json.loads((Path(__file__).parent / "notation_cases.json").read_text(encoding="utf-8"))


def test_chunks_are_called_a_b_c_to_z_then_aa_ab():
    assert {chunk: chunk_name(int(chunk)) for chunk in CASES["chunk_names"]} == CASES["chunk_names"]
    assert len({chunk_name(chunk) for chunk in range(2000)}) == 2000


@pytest.mark.parametrize("case", CASES["cells"], ids=lambda case: case["expression"])
def test_an_expression_and_its_short_forms_are_those_of_the_pages(case):
    assert expression(case["chunk"], case["ranks"], case["again"]) == case["expression"]
    assert short_expressions(case["chunk"], case["ranks"], case["size"], case["again"]) == case["short"]


def test_a_long_sum_is_written_without_its_middle():
    assert abbreviated(0, range(8)) == "a0+a1+a2+a3+a4+a5+a6+a7"
    assert abbreviated(1, range(16)) == "b0+b1+…+b15"
