"""Every document of the built site in a real browser: nothing overlaps or is cut off, texts are readable, everything
works with the keyboard. tools/page_checks.py measures; tests/test_site_links.py and `make site` check the links.

The short version opens every document in one view, and samples in all views. The long version, `make site-test`,
opens all documents and the pages of the sources in all views.
"""

from __future__ import annotations

import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from browser import ENTER, ESCAPE, TAB
from documents import SAMPLES, documents_of, one_view_of, views_of
from page_checks import View, report

pytestmark = pytest.mark.slow

PARTS = 4  # tests that can run at the same time
LONG_PARTS = 24
SHOWN = "[...document.querySelectorAll('.md-search-result__item a')].map((one) => one.getAttribute('href'))"
FOUND = f"{SHOWN}.length > 0"


def in_all_views(checker, page):
    """Return the findings about a document; axe and the keyboard see each width and each theme once."""
    views = views_of(page)
    found = checker.open(page, views[0])
    for view in views:
        found += checker.everywhere([view])
        if view[1:] in ((1280, "light"), (390, "dark")):
            found += checker.axe()
            found += checker.keyboard()
    return found


@pytest.mark.parametrize("part", range(PARTS))
def test_no_document_has_a_defect(checker, built_site, part):
    seen = [(one_view_of(built_site, page), page) for page in documents_of(built_site, sources=False)]
    assert len(seen) > 100
    found = []
    for view, page in sorted(seen)[part::PARTS]:
        found += checker.open(page, view)
        found += checker.here()
    assert report(found) == ""


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_has_no_defect_in_any_view(checker, built_site, sample):
    assert report(in_all_views(checker, built_site / sample)) == ""


@pytest.mark.long
@pytest.mark.parametrize("part", range(LONG_PARTS))
def test_no_document_has_a_defect_in_any_view(checker, built_site, part):
    found = []
    for page in documents_of(built_site)[part::LONG_PARTS]:
        found += in_all_views(checker, page)
    assert report(found) == ""


def test_the_navigation_of_a_narrow_window_works_with_the_keyboard(checker, built_site):
    checker.open(built_site / "tour.html", View("en", 390))
    browser = checker.browser
    button, is_open = "label[for=__drawer].md-header__button", "document.querySelector('#__drawer').checked"
    browser.run("document.querySelector(arguments[0]).focus()", button)
    browser.press(" ")
    assert browser.run(is_open)
    assert browser.run("document.querySelector(arguments[0]).ariaExpanded", button) == "true"
    entries = ".md-sidebar--primary :is(a, label)"
    reached = f"document.activeElement.matches('{entries}')"
    for _ in range(6):  # what follows the button in the header
        browser.press(TAB)
        if browser.run(reached):
            break
    assert browser.run(reached)
    assert report(checker.axe()) == ""
    browser.press(ESCAPE)
    assert not browser.run(is_open)


@pytest.mark.parametrize(
    ("page", "width", "words", "expected"),
    [("tour.html", 1280, "ring", "algorithms"), ("tour.zh.html", 390, "集合", "zh")],
)
def test_the_search_of_a_file_finds_documents_with_the_keyboard(checker, built_site, page, width, words, expected):
    view = next(view for view in views_of(built_site / page) if view.width == width)
    checker.open(built_site / page, view)
    browser = checker.browser
    if width == 390:
        browser.run("document.querySelector('label[for=__search].md-header__button').focus()")
        browser.press(ENTER)
        browser.wait_for("document.activeElement.matches('.md-search__input')")
    else:
        browser.press("/")
    browser.press(words)
    browser.wait_for(FOUND)
    assert any(expected in link for link in browser.run(SHOWN))
    assert report(checker.axe()) == ""
    assert browser.complaints() == []


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files, and 404.html for what is missing, like the servers of static sites do."""

    def log_message(self, *_):
        """Print nothing."""

    def send_error(self, code, *_):
        """Send the page for missing files."""
        body = (self.site / "404.html").read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def address(built_site):
    """Serve the site from this host, and return its address."""
    handler = type("Handler", (QuietHandler,), {"site": built_site})
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(built_site))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_site_also_works_from_a_server(checker, address):
    browser = checker.browser
    browser.driver.get(f"{address}/index.html")
    assert browser.complaints() == []
    browser.press("/")
    browser.press("ring")
    browser.wait_for(FOUND)
    browser.driver.get(f"{address}/missing.html")
    assert "404" in browser.text("h1")
    said = [line for line in browser.complaints() if "missing.html" not in line]
    assert report(checker.here()) == ""
    assert said == []
