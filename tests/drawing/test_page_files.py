"""The page as a file: in one piece, small, and closed to the world."""

from __future__ import annotations

import re

import pytest

from unisono import find
from unisono.drawing.page import ASSETS, EXPORT, IMPORT, script, write_page
from unisono.drawing.scene import scene_of

ENTRIES = ("main", "index", "run", "training", "busbw")
MODULES = sorted(ASSETS.glob("*.mjs"))


@pytest.fixture(scope="module")
def page():
    ring = find("ring")
    return write_page([scene_of(ring.schedule(5), ring)], "ring")


def test_without_data_it_is_below_300_kilobytes(page):
    assert len(page.encode()) < 300_000


def test_it_loads_nothing(page):
    assert "default-src 'none'" in page
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert not re.search(
        r"<(link|img|iframe)\b|\bsrc=|@import|url\(", page.split('<script type="application/json"')[0]
    )
    assert not re.search(r"\b(fetch|XMLHttpRequest|importScripts|import)\(", script("main"))


def test_no_text_of_a_user_can_end_the_data():
    scene = {"label": "</script><script>alert(1)</script>"}
    made = write_page([scene], "</title><b>")
    assert "<script>alert" not in made
    assert "</title><b>" not in made
    assert "\\u003c/script>" in made


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_modules_are_written_so_that_they_can_be_put_together(module):
    text = module.read_text(encoding="utf-8")
    assert len(IMPORT.findall(text)) == len(re.findall(r"^import ", text, re.MULTILINE))
    assert len(EXPORT.findall(text)) == len(re.findall(r"^export ", text, re.MULTILINE))
    assert not any(" as " in names for names, _ in IMPORT.findall(text))
    assert len(text.splitlines()) <= 400


def test_every_module_is_used():
    whole = "".join(map(script, ENTRIES))
    for module in MODULES:
        if module.stem not in ENTRIES:
            assert f"const module_{module.stem} = " in whole


@pytest.mark.parametrize("entry", ENTRIES)
def test_each_module_comes_after_those_that_it_needs(entry):
    whole = script(entry)
    for module in MODULES:
        place = len(whole) if module.stem == entry else whole.find(f"const module_{module.stem} = ")
        for _, needed in IMPORT.findall(module.read_text(encoding="utf-8")) if place >= 0 else ():
            assert 0 <= whole.index(f"const module_{needed} = ") < place
