"""The tables of docs/parallel/*.md are what a step does."""

from __future__ import annotations

import pytest

import parallel_pages


@pytest.mark.parametrize("path", parallel_pages.pages(), ids=lambda path: path.stem)
def test_the_page_is_current(path):
    """If this fails: make docs."""
    text = path.read_text(encoding="utf-8")
    assert parallel_pages.page(text) == text
    assert parallel_pages.TABLE.search(text), "a page has a table of collectives"
