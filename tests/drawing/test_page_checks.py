"""Every check of tools/page_checks.py finds the defect that it is for, planted into a page without defects."""

from __future__ import annotations

import pytest

import page_checks
from page_checks import View, checking
from unisono import draw

pytestmark = pytest.mark.slow

SPEED = "document.querySelector('#speed')"
STYLE = "document.head.append(Object.assign(document.createElement('style'), {textContent: `%s`}))"
# A pen for the stage, the first name on it, and how to undo what was planted.
PEN = "const pen = document.querySelector('#stage').getContext('2d'); pen.setTransform(1, 0, 0, 1, 0, 0);"
NAME = f"{PEN} const [x, y] = pageChecks.marksOf(pen.canvas).find(({{bold}}) => bold).corners[0];"
BODY = "document.body.insertAdjacentHTML('beforeend', `%s`)"

BOXES_AND_CONTRAST = {
    "the page is wider than its window": BODY % "<div style='width: 3000px; height: 1px'></div>",
    "text is cut off": STYLE % "h1 { width: 30px; white-space: nowrap; overflow: hidden; }",
    "text is cut off: #speed": STYLE % "#speed { width: 30px; }",
    "text is cut off: #stage": f"{PEN} pen.fillText('name', pen.canvas.width - 9, 99)",
    "text over text": STYLE % ".idea { position: relative; top: -1.4rem; }",
    "text over text: #stage": f"{NAME} pen.fillText('name', x + 9, y + 9)",
    "controls overlap": STYLE % "#button-play { position: relative; left: 30px; }",
    "elements overlap": STYLE % ".controls { margin-top: -60px; }",
    "text is covered": BODY % "<div style='position: fixed; inset: 0'></div>",
    "text is painted over": f"{NAME} pen.fillStyle = '#ffffff'; pen.globalAlpha = 1; pen.fillRect(x, y - 5, 50, 20)",
    "a line crosses text": f"{NAME} pen.beginPath(); pen.moveTo(x - 9, y); pen.lineTo(x + 50, y + 9); pen.stroke()",
    "contrast of text: #stage": f"{PEN} pen.fillStyle = '#ccc'; pen.font = '12px serif'; pen.fillText('p', 20, 20)",
    "contrast of text: text": BODY % "<svg><text y='20' style='fill: #ccc'>pale</text></svg>",
    "contrast of text: p": BODY % "<p style='background: linear-gradient(#000, #fff)'>dark below, light above</p>",
    "contrast of an edge": STYLE % "#speed { border-color: #eee; }",
    "console": "console.error('planted')",
    "a link leads nowhere: a[href=\"#nowhere\"]": BODY % "<a href='#nowhere'>a place</a>",
    "a link leads nowhere: a[href=\"missing.html#lang=en\"]": BODY % "<a href='missing.html#lang=en'>a page</a>",
    "axe: button-name": BODY % "<button></button>",
}  # fmt: skip
FOCUS = {
    "Tab does not reach it": f"{SPEED}.addEventListener('keydown', (event) => event.preventDefault())",
    "focus is invisible: #speed": STYLE % "#speed:focus-visible { outline: none; }",
    "focus is cut off": BODY % "<p style='overflow: hidden'><button style='display: block'>cut</button></p>",
    "contrast of the focus: #speed": STYLE % "#speed:focus-visible { outline-color: #ddd; }",
    "the focus goes up": "document.querySelector('#copy-link').tabIndex = 1",
    "only a mouse can use it: p": "document.querySelector('.idea').onclick = () => {}",
    "a step is not announced": "document.querySelectorAll('[role=status]').forEach((one) => {"
    "one.removeAttribute('role'); one.removeAttribute('aria-live'); })",
    "a step is announced more than once": "document.querySelector('.where').setAttribute('aria-live', 'polite')",
    "playing is announced": "document.querySelector('.where').setAttribute('aria-live', 'polite')",
}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return draw("ring", size=3).save(tmp_path_factory.mktemp("planted") / "page.html")


@pytest.fixture(scope="module")
def checker(one_browser):
    with checking(one_browser) as made:
        yield made


def defects(findings):
    """Return each finding as "check: element"."""
    return [f"{one.check}: {one.element.rpartition('> ')[2]}" for one in findings]


def matching(found, expected):
    return [one for one in found if one.startswith(expected)]


def test_a_page_without_defects_has_no_findings(checker, page):
    found = checker.open(page, View("en", 390)) + checker.here() + checker.links(page.parent) + checker.keyboard()
    assert defects(found) == []


@pytest.mark.parametrize("expected", BOXES_AND_CONTRAST)
def test_a_planted_defect_is_found(checker, page, expected):
    if expected.startswith("axe") and not page_checks.AXE.exists():
        pytest.skip(page_checks.NO_AXE)
    assert checker.open(page) == []
    checker.browser.driver.execute_script(BOXES_AND_CONTRAST[expected])
    found = checker.here() + checker.links(page.parent)
    if expected.startswith("axe"):
        found += checker.axe()
    assert matching(defects(found), expected), defects(found)


@pytest.mark.parametrize("expected", FOCUS)
def test_a_planted_defect_of_the_keyboard_or_of_announcements_is_found(checker, page, expected):
    assert checker.open(page, View("en", 390)) == []
    checker.browser.driver.execute_script(FOCUS[expected])
    found = defects(checker.keyboard())
    assert matching(found, expected), found


def test_a_finding_names_page_view_element_and_measured_value(checker, page):
    checker.open(page, View("zh", 390))
    checker.browser.driver.execute_script(BOXES_AND_CONTRAST["contrast of an edge"])
    (said,) = page_checks.report(checker.here()).splitlines()
    assert said.startswith("page.html (zh 390 light): contrast of an edge: #speed")


def test_defects_that_differ_only_in_their_place_are_one_line_of_the_report(checker, page):
    checker.open(page)
    checker.browser.driver.execute_script(BODY % ("<p style='width: 9px; overflow: hidden'>unbreakable</p>" * 3))
    said = page_checks.report(checker.here())
    assert said.count("text is cut off") == 1
    assert said.endswith("(+2)")
