"""Every page in a real browser, in both languages, wide and narrow, light and dark: nothing overlaps or is cut off,
texts are readable, everything works with the keyboard, and links lead somewhere. tools/page_checks.py measures.

The short version opens every page in two views, and a page of each kind in all views. The long version,
`make site-test`, opens all pages of the gallery in all views.
"""

from __future__ import annotations

import pytest

import page_checks
from page_checks import VIEWS, View, report
from page_kinds import FROM_THE_GALLERY, KINDS, write_others
from shared_folders import made_once

pytestmark = pytest.mark.slow

PARTS = 8  # tests of the gallery, which can run at the same time
LONG_PARTS = 25
# Each page is seen in both languages, both widths and both themes; one of each kind in all combinations.
PAIRS = (
    (View("en", 1280, "light"), View("zh", 390, "dark")),
    (View("zh", 1280, "light"), View("en", 390, "dark")),
    (View("en", 1280, "dark"), View("zh", 390, "light")),
    (View("zh", 1280, "dark"), View("en", 390, "light")),
)


@pytest.fixture(scope="session")
def site(built_site):
    """Return the folder of the gallery."""
    return built_site / "gallery"


@pytest.fixture(scope="session")
def others(tmp_path_factory):
    """Return the folder of the pages that the gallery does not have."""
    return made_once(tmp_path_factory, "every_page_others", write_others)


@pytest.fixture
def page_of(request):
    """Return the page of a kind."""
    return lambda kind: request.getfixturevalue("site" if kind in FROM_THE_GALLERY else "others") / f"{kind}.html"


@pytest.mark.parametrize("part", range(PARTS))
def test_no_page_of_the_gallery_has_a_defect(checker, site, part):
    pages = sorted(site.glob("*.html"))[part::PARTS]
    assert pages
    found = []
    for at, page in enumerate(pages):
        views = PAIRS[at % len(PAIRS)]
        found += checker.open(page, views[0])
        found += checker.everywhere(views)
        found += checker.axe()
        found += checker.links(site)
    assert report(found) == ""


def in_all_views(checker, page, *, long):
    """Return the findings about a page; in the short version, axe sees each language, width and theme once."""
    found = checker.open(page, VIEWS[0])
    for view in VIEWS:
        found += checker.everywhere([view])
        if long or view in PAIRS[0]:
            found += checker.axe()
        if view in PAIRS[0]:
            found += checker.keyboard()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_of_each_kind_has_no_defect_in_any_view(checker, page_of, kind):
    assert report(in_all_views(checker, page_of(kind), long=False)) == ""


@pytest.mark.long
@pytest.mark.parametrize("part", range(LONG_PARTS))
def test_no_page_of_the_gallery_has_a_defect_in_any_view(checker, site, part):
    found = []
    for page in sorted(site.glob("*.html"))[part::LONG_PARTS]:
        found += in_all_views(checker, page, long=True)
    assert report(found) == ""


@pytest.mark.parametrize(
    ("kind", "view"), [("all_reduce-hierarchical", View("zh", 390, "dark")), ("lesson-7-zero3", View("zh"))]
)
def test_a_page_that_opens_in_a_language_and_a_theme_has_no_defect(checker, page_of, kind, view):
    found = checker.open(page_of(kind), view, link=f"#lang={view.language}")
    assert checker.browser.run("[document.documentElement.lang, document.documentElement.dataset.theme]") == [
        "zh-CN",
        view.theme,
    ]
    found += checker.everywhere([view])
    assert report(found) == ""


def test_the_theme_of_the_reader_is_the_theme_of_the_whole_page(checker, page_of):
    checker.open(page_of("all_reduce-hierarchical"))
    checker.browser.choose("#theme", "dark")
    assert checker.browser.run("document.documentElement.dataset.theme") == "dark"
    assert report(checker.here()) == ""


def test_axe_is_there():
    if not page_checks.AXE.exists():
        pytest.skip(page_checks.NO_AXE)
