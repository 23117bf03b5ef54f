"""Every check of tools/page_checks.py that concerns documents finds the defect that it is for, planted into a
document without defects.
"""

from __future__ import annotations

import pytest

import page_checks
from page_checks import View

pytestmark = pytest.mark.slow

DOCUMENT = "course.html"
STYLE = "document.head.append(Object.assign(document.createElement('style'), {textContent: `%s`}))"
BODY = "document.body.insertAdjacentHTML('beforeend', `%s`)"
CODE = "document.querySelectorAll('pre > code').forEach((one) => %s)"
LINKS = (
    "<a href='#' style='position: absolute; top: 0'>one</a><a href='#' style='position: absolute; top: 5px'>two</a>"
)

BOXES_AND_CONTRAST = {
    "the page is wider than its window": STYLE % ".md-typeset pre { display: block; width: 900px; }",
    "text is cut off": STYLE % ".md-typeset pre > code { overflow: hidden; }",
    "text over text": STYLE % "h1 { position: relative; top: 3rem; }",
    "controls overlap": BODY % LINKS,
    "elements overlap": STYLE % ".md-typeset pre { margin-bottom: -60px; }",
    "text is covered": BODY % "<div style='position: fixed; inset: 0; z-index: 9'></div>",
    "contrast of text: p": STYLE % ".md-typeset p { color: #999; }",
    "contrast of text: code": STYLE % ".md-typeset code { opacity: 0.3; }",
    "console": "console.error('planted')",
    "axe: link-in-text-block": STYLE % ".md-typeset a { text-decoration: none !important; }",
    "axe: scrollable-region-focusable": CODE % "one.removeAttribute('tabindex')",
}
FOCUS = {
    "Tab does not reach it": CODE % "one.addEventListener('keydown', (event) => event.preventDefault())",
    "focus is invisible": STYLE % "pre > code:focus-visible { outline: none !important; }",
    "focus is cut off: code": STYLE % "pre > code:focus-visible { outline-offset: 9px !important; }",
    "contrast of the focus": STYLE % "pre > code:focus-visible { outline: 2px solid #ddd !important; }",
    "the focus goes up": "[...document.querySelectorAll('pre > code[tabindex]')].at(-1).tabIndex = 1",
    "only a mouse can use it: #": "document.querySelector('h1').onclick = () => {}",
}


@pytest.fixture
def opened(checker, built_site):
    """Open the document in a narrow window; return the checker."""
    assert checker.open(built_site / DOCUMENT, View("en", 390)) == []
    return checker


def defects(findings):
    """Return each finding as "check: element"."""
    return [f"{one.check}: {one.element.rpartition('> ')[2]}" for one in findings]


def matching(found, expected):
    return [one for one in found if one.startswith(expected)]


def test_the_document_has_no_findings(opened):
    assert defects(opened.here() + opened.keyboard()) == []


@pytest.mark.parametrize("expected", BOXES_AND_CONTRAST)
def test_a_planted_defect_is_found(opened, expected):
    if expected.startswith("axe") and not page_checks.AXE.exists():
        pytest.skip(page_checks.NO_AXE)
    opened.browser.driver.execute_script(BOXES_AND_CONTRAST[expected])
    found = defects(opened.axe() if expected.startswith("axe") else opened.here())
    assert matching(found, expected), found


@pytest.mark.parametrize("expected", FOCUS)
def test_a_planted_defect_of_the_keyboard_is_found(opened, expected):
    opened.browser.driver.execute_script(FOCUS[expected])
    found = defects(opened.keyboard())
    assert matching(found, expected), found


def test_a_missing_page_is_an_error(checker, built_site):
    with pytest.raises(FileNotFoundError):
        checker.open(built_site / "missing.html")
