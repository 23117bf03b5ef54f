"""The page as a file: self-contained, small, and without network access."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from unisono import find
from unisono.drawing.page import ASSETS, EXPORT, IMPORT, STYLES, imports, scope_name, script, write_page
from unisono.drawing.scene import scene_of

ENTRIES = (
    "algorithm/page", "compare/page", "simulated/page", "index", "run/run", "lessons/training", "lessons/busbw",
)  # fmt: skip
MODULES = sorted(path.relative_to(ASSETS).with_suffix("").as_posix() for path in ASSETS.rglob("*.mjs"))

PAGE_TESTS = Path(__file__).parent / "page"


@pytest.fixture(scope="module")
def page():
    ring = find("ring")
    return write_page([scene_of(ring.schedule(5), ring)], "ring")


def test_a_page_without_data_is_smaller_than_300_kilobytes(page):
    assert len(page.encode()) < 300_000


def test_a_page_loads_nothing(page):
    assert "default-src 'none'" in page
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert not re.search(
        r"<(link|img|iframe)\b|\bsrc=|@import|url\(", page.split('<script type="application/json"')[0]
    )
    for entry in ENTRIES:
        assert not re.search(r"\b(fetch|XMLHttpRequest|importScripts|import)\(", script(entry))


def test_user_text_cannot_end_the_data_section():
    scene = {"label": "</script><script>alert(1)</script>"}
    made = write_page([scene], "</title><b>")
    assert "<script>alert" not in made
    assert "</title><b>" not in made
    assert "\\u003c/script>" in made


@pytest.mark.parametrize("module", MODULES)
def test_modules_can_be_concatenated(module):
    text = (ASSETS / f"{module}.mjs").read_text(encoding="utf-8")
    assert len(IMPORT.findall(text)) == len(re.findall(r"^import ", text, re.MULTILINE))
    assert len(EXPORT.findall(text)) == len(re.findall(r"^export ", text, re.MULTILINE))
    assert not any(" as " in names for names, _ in IMPORT.findall(text))


@pytest.mark.parametrize("module", MODULES)
def test_every_imported_name_is_exported(module):
    for target, names in zip(imports(module), _imported_names(module), strict=True):
        exported = {name for _, name in EXPORT.findall((ASSETS / f"{target}.mjs").read_text(encoding="utf-8"))}
        assert set(names) <= exported, target


def test_every_module_is_used():
    whole = "".join(map(script, ENTRIES))
    assert [
        module for module in MODULES if module not in ENTRIES and f"const {scope_name(module)} = " not in whole
    ] == []


def test_every_export_is_used():
    """By another module, or by a test and its own module: an export that only a test uses adds to the size of every
    page.
    """
    imported = {
        (target, name)
        for module in MODULES
        for target, names in zip(imports(module), _imported_names(module), strict=True)
        for name in names
    }
    tests = "".join(path.read_text(encoding="utf-8") for path in PAGE_TESTS.rglob("*.test.mjs"))
    unused = []
    for module in MODULES:
        text = (ASSETS / f"{module}.mjs").read_text(encoding="utf-8")
        for _, name in EXPORT.findall(text):
            uses = re.compile(rf"\b{name}\b")
            tested = uses.search(tests) and len(uses.findall(text)) > 1
            if (module, name) not in imported and not tested:
                unused.append(f"{module}: {name}")
    assert unused == []


def test_every_style_sheet_is_used():
    assert {path.relative_to(ASSETS).with_suffix("").as_posix() for path in ASSETS.rglob("*.css")} == set(STYLES)


def test_every_class_of_the_style_sheets_occurs_in_a_module():
    code = "".join((ASSETS / f"{module}.mjs").read_text(encoding="utf-8") for module in MODULES)
    style = "".join((ASSETS / f"{name}.css").read_text(encoding="utf-8") for name in STYLES)
    names = set(re.findall(r"\.([a-z][a-z-]*[a-z])(?![\w.(])", re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)))
    assert len(names) > 100
    for name in names:
        prefix = name.partition("-")[0]  # some names are composed, such as strip-${kind}
        assert re.search(rf"\b{name}\b|\b{prefix}-\$\{{", code), name


@pytest.mark.parametrize("entry", ENTRIES)
def test_each_module_follows_the_modules_that_it_imports(entry):
    whole = script(entry)
    for module in MODULES:
        position = len(whole) if module == entry else whole.find(f"const {scope_name(module)} = ")
        for needed in imports(module) if position >= 0 else ():
            assert 0 <= whole.index(f"const {scope_name(needed)} = ") < position


def _imported_names(module):
    text = (ASSETS / f"{module}.mjs").read_text(encoding="utf-8")
    return [re.findall(r"\w+", names) for names, _ in IMPORT.findall(text)]
