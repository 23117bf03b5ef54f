"""The documents of the built site, and the views in which their readers see them."""

from __future__ import annotations

import zlib
from pathlib import Path

from page_checks import VIEWS, View

# Documents that stand for all: both languages, code, a wide table, a source with line numbers.
SAMPLES = ("index.html", "course.zh.html", "api/codecs.html", "source/src/unisono/algorithms/naive.py.html")
ELSEWHERE = ("gallery", "404.html")  # tests/drawing opens the gallery; a server shows 404.html


def documents_of(site: Path, *, sources: bool = True) -> list[Path]:
    """Return every document of a built site, with or without the pages of the sources that documents link to."""
    others = (*ELSEWHERE, *(() if sources else ("source",)))
    return [page for page in sorted(site.rglob("*.html")) if page.relative_to(site).parts[0] not in others]


def views_of(page: Path) -> list[View]:
    """Return the views of a document: in its language, both widths, light and dark."""
    language = "zh" if page.name.endswith(".zh.html") else "en"
    return [view for view in VIEWS if view.language == language]


def one_view_of(site: Path, page: Path) -> View:
    """Return one of the views of a document; documents differ in it, and a document always has the same."""
    views = views_of(page)
    return views[zlib.crc32(page.relative_to(site).as_posix().encode()) % len(views)]
