"""The documents as pages of the site."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

import build_site
import site_navigation
from site_sources import Sources, documents, line_of, site_path

TOUR = PurePosixPath("docs/tour.md")
SOURCES = Sources(Path("unused"))


@pytest.mark.parametrize(
    ("document", "text", "made"),
    [
        ("README.md", "[the tour](docs/tour.md#run-it)", "[the tour](tour.md#run-it)"),
        ("README.md", "[中文](README.zh.md)", "[中文](index.zh.md)"),
        ("docs/tour.md", "[home](../README.md)", "[home](index.md)"),
        ("docs/tour.md", "[index](README.md)", "[index](documentation.md)"),
        ("docs/parallel/zero.md", "[codecs](../codecs.md)", "[codecs](../codecs.md)"),
        ("docs/tour.md", "[train](../examples/train.py)", "[train](source/examples/train.py.md)"),
        ("docs/tour.md", "[decisions](adr)", "[decisions](adr/README.md)"),
        (
            "docs/tour.md",
            "[a folder](../src/unisono/algorithms/)",
            "[a folder](source/src/unisono/algorithms/index.md)",
        ),
        ("docs/tour.md", "[there](https://example.org/x.md)", "[there](https://example.org/x.md)"),
        ("docs/tour.md", "![picture](images/page-en.png)", "![picture](images/page-en.png)"),
        ("docs/tour.md", "[gpu.md](gpu.md)", "[GPUs](gpu.md)"),
        ("docs/tour.md", "`[x](gpu.md)` and ``[`](gpu.md)``", "`[x](gpu.md)` and ``[`](gpu.md)``"),
        ("docs/tour.md", "| `a \\| b` |", "| `a | b` |"),
        ("docs/tour.md", "<!-- site: [play](site:gallery/index.html) -->", "[play](gallery/index.html)"),
        ("docs/tour.md", "Text\n- one\n- two", "Text\n\n- one\n- two"),
        ("docs/tour.md", "```\nText\n- no list\n```", "```\nText\n- no list\n```"),
        ("docs/tour.md", "- one\n  more\n- two", "- one\n  more\n- two"),
    ],
)
def test_a_document_becomes_a_page(document, text, made):
    page = SOURCES.page_of(PurePosixPath(document), text + "\n")
    assert page.split("---\n\n")[-1] == made + "\n"


def test_a_page_knows_its_language_and_its_twin():
    assert SOURCES.page_of(TOUR, "").startswith("---\ntwin: tour.zh.html\n---\n")
    chinese = SOURCES.page_of(PurePosixPath("docs/tour.zh.md"), "")
    assert chinese.startswith("---\nlang: zh\ntwin: tour.html\n---\n")
    assert not SOURCES.page_of(PurePosixPath("docs/gpu.md"), "").startswith("---")


def test_a_link_to_a_name_in_a_program_leads_to_its_line():
    path = PurePosixPath("tests/test_site.py")
    with_import = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert with_import[line_of(path, "test_a_page_knows_its_language_and_its_twin") - 1].startswith("def test_a_page")
    with pytest.raises(LookupError):
        line_of(path, "missing")


def in_navigation(entries) -> set[str]:
    pages = set()
    for entry in entries:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            pages |= in_navigation(value) if isinstance(value, list) else {value}
    return pages


def test_every_document_is_in_the_navigation():
    pages = in_navigation(site_navigation.navigation())
    assert {site_path(document) for document in documents()} - pages == set()
    assert "gallery/index.html" in pages


def test_every_short_title_is_that_of_a_page():
    assert set(site_navigation.SHORT) - {site_path(document) for document in documents()} == set()


def test_anchors_are_those_of_github():
    assert build_site.slug("The `--lesson` option, and 2(p−1)/p") == "the---lesson-option-and-2p1p"
