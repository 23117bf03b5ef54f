"""The tables of docs/parallel/*.md match the collectives of a step, and their programs run."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torch")

import convergence_page
import parallel_pages
from torch_ranks import run_ranks

PAGES = parallel_pages.pages()
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_page_is_current(path):
    """If this fails: make docs."""
    text = path.read_text(encoding="utf-8")
    assert parallel_pages.page(text) == text


def test_every_strategy_has_a_page_with_its_collectives():
    strategies = "data_parallel zero tensor_parallel sequence_parallel sync_batchnorm mixture_of_experts"
    assert {path.stem for path in PAGES} == {*strategies.split(), "README"}


def test_the_tables_of_the_convergence_page_match_the_measurements():
    """If this fails: python tools/convergence_page.py."""
    text = convergence_page.PAGE.read_text(encoding="utf-8")
    assert convergence_page.page(text) == text
    assert text.count("<!-- table:") == 3


def run_blocks(text):
    for code in PYTHON.findall(text):
        exec(compile(code, "page", "exec"), {})


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_programs_of_the_page_run(path):
    text = path.read_text(encoding="utf-8")
    assert PYTHON.search(text)
    run_ranks(run_blocks, 2, text, init=False)
