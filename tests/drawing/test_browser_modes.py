"""Pages that are presented on the full screen or embedded in a slide or a notebook, in a real browser."""

from __future__ import annotations

from itertools import pairwise

import pytest

from browser import ESCAPE, RIGHT
from unisono import draw
from unisono.drawing.course.contents import PLACES

pytestmark = pytest.mark.slow

SIZES = [(1920, 1080), (1280, 800), (390, 844)]
PAGES = ["all_reduce-ring.html", "all_reduce-hierarchical.html", "compare-all_reduce.html"]
LESSONS = [place.file for place in PLACES]
# The boxes of the visible parts, from top to bottom, and the names of visible parts that should be hidden.
PARTS = """(() => {
    const seen = (one) => one.offsetParent !== null || getComputedStyle(one).position === 'fixed';
    const boxes = (names) => [...document.querySelectorAll(names)].filter(seen).map((one) => {
        const { left, top, right, bottom } = one.getBoundingClientRect(); return [left, top, right, bottom]; });
    const rest = '.top, .foot, .facts, .code, .contents, .legend, .choices, .board, .links, .question, .story h2';
    const others = [...document.querySelectorAll(rest)].filter((one) => seen(one) && one.clientHeight);
    return { caption: boxes('.captions, .story'), stage: boxes('.stage, .compare-lanes'), bar: boxes('.controls'),
             rest: others.map((one) => one.className) };
})()"""


def check_layout(browser, width, height, *, caption=True):
    """Check that the window shows the caption, the stage and the bar one below the other, and nothing else."""
    parts = browser.run(PARTS)
    assert parts["rest"] == []
    assert len(parts["caption"]) == (1 if caption else 0)
    order = [*parts["caption"], *parts["stage"], *parts["bar"]]
    assert len(order) == (3 if caption else 2)
    assert order[0][1] >= 0
    assert order[-1][3] <= height
    for left, _, right, _ in order:
        assert 0 <= left < right <= width
    for above, below in pairwise(order):
        assert above[3] <= below[1]
    _, top, _, bottom = parts["stage"][0]
    assert bottom - top >= 0.45 * height  # most of the window
    assert browser.cut_off() == []
    assert browser.run("document.documentElement.scrollHeight") <= height


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("page", [*PAGES, *LESSONS])
def test_a_presentation_shows_caption_stage_and_bar_in_large_type(browser, gallery, page, width, height):
    browser.set_up(width, height, dark=width == 390)
    browser.open(gallery.parent / page, f"#present&lang={'zh' if width == 1920 else 'en'}")
    check_layout(browser, width, height, caption=not page.startswith("compare"))
    for part in (".caption, .story .said", ".controls .where"):
        points = browser.run(
            "(() => { const it = [...document.querySelectorAll(arguments[0])].find((one) => one.offsetParent);"
            "return it ? parseFloat(getComputedStyle(it).fontSize) : null; })()",
            part,
        )
        if points is not None:
            assert points >= {1920: 27, 1280: 19, 390: 16}[width]


def test_a_simulated_page_can_be_presented(browser, tmp_path):
    page = draw("ring", size=8, network="dgx-h100").save(tmp_path / "simulated.html")
    for width, height in SIZES:
        browser.set_up(width, height)
        browser.open(page, "#step=30&present")
        check_layout(browser, width, height)
    assert "messages in transit" in browser.text(".said")


def test_keys_and_a_button_begin_and_end_a_presentation(browser, written_page):
    browser.open(written_page("ring"), "#step=2&rank=1")
    browser.press("f")
    assert browser.run("document.documentElement.dataset.mode") == "present"
    assert browser.run("location.hash") == "#step=2&rank=1&present"
    browser.press(RIGHT)
    assert browser.step() == 3
    browser.press(" ")
    assert browser.run("unisono.state.get('playing')") is True
    browser.press(" ")
    browser.wait_for("document.fullscreenElement !== null")
    browser.run("document.exitFullscreen()")  # as the browser does when Escape is pressed
    browser.wait_for("!document.documentElement.dataset.mode")
    browser.run("(document.documentElement.requestFullscreen = async () => {})")  # such as in a frame
    browser.press("f")
    browser.press(ESCAPE)
    assert browser.run("unisono.state.get('mode')") is None
    assert browser.run("unisono.state.get('rank')") == 1  # only the presentation has ended
    assert "present" not in browser.run("location.hash")
    browser.click("#present")
    assert browser.run("unisono.state.get('mode')") == "present"
    browser.click("#leave-mode")
    assert browser.run("unisono.state.get('mode')") is None
    assert browser.run("document.querySelector('.facts').offsetParent !== null")


def test_a_presentation_asks_for_the_full_screen_at_the_first_gesture(browser, written_page):
    browser.open(written_page("ring"), "#present")
    browser.run("(document.documentElement.requestFullscreen = async () => { globalThis.asked = true; })")
    assert browser.run("globalThis.asked ?? false") is False
    browser.press(RIGHT)
    assert browser.run("globalThis.asked") is True
    assert browser.step() == 1


def test_the_cells_of_a_presentation_are_magnified_and_can_be_clicked(browser, written_page):
    from selenium.webdriver.common.action_chains import ActionChains

    browser.set_up(1920, 1080)
    browser.open(written_page("tree", size=4), "#step=1&present")
    assert browser.run("unisono.painter().zoom") >= 1.8
    x, y = browser.run(
        "(() => { const box = document.querySelector('#stage').getBoundingClientRect();"
        "const middle = unisono.painter().middle(2, 0); return [box.left + middle.x, box.top + middle.y]; })()"
    )
    pointer = ActionChains(browser.driver, duration=0)
    pointer.w3c_actions.pointer_action.move_to_location(int(x), int(y)).click()
    pointer.perform()
    assert browser.run("unisono.state.get('rank')") == 2


def test_a_lesson_is_presented_from_caption_to_question_to_the_next_page(browser, gallery):
    at = next(at for at, place in enumerate(PLACES) if place.page.name == "five")
    browser.open(gallery.parent / PLACES[at].file, "#present")
    for number in range(1, browser.run("unisono.course.captions.length")):
        browser.press_with_shift(RIGHT)
        browser.wait_for(f"unisono.course.caption() === {number}")
    assert browser.run("document.querySelector('.question').offsetParent") is None
    browser.press_with_shift(RIGHT)
    assert browser.run("getComputedStyle(document.querySelector('.question')).position") == "fixed"
    assert browser.run("document.querySelector('.answer').hidden")
    browser.press_with_shift(RIGHT)
    assert not browser.run("document.querySelector('.answer').hidden")
    browser.press_with_shift(RIGHT)
    following = PLACES[at + 1].file
    browser.wait_for(
        f"location.pathname.endsWith('{following}') && document.documentElement.dataset.ready === 'true'"
    )
    assert browser.run("document.documentElement.dataset.mode") == "present"


@pytest.mark.parametrize(("width", "height"), [(960, 600), (390, 480)])
@pytest.mark.parametrize("page", [*PAGES, LESSONS[4], "lesson-7-zero3.html"])
def test_an_embedded_page_shows_caption_stage_and_bar(browser, gallery, page, width, height):
    browser.set_up(width, height)
    browser.open(gallery.parent / page, "#embed&step=2")
    parts = browser.run(PARTS)
    assert parts["rest"] == []
    assert browser.step() == 2
    assert parts["bar"][0][3] <= height
    assert parts["stage"][0][1] < parts["stage"][0][3] <= parts["bar"][0][1]


def test_embed_combines_with_the_other_parts_of_a_link_and_stays_in_it(browser, written_page):
    browser.open(written_page("ring"), "#step=3&rank=2&lang=zh&embed")
    assert browser.step() == 3
    assert "rank 2" in browser.text(".said")
    assert "把 e0+e1+e2 发给 rank 3" in browser.text(".said")
    browser.press(RIGHT)
    assert browser.run("location.hash") == "#step=4&rank=2&lang=zh&embed"
    browser.press("f")
    browser.press("f")
    assert browser.run("unisono.state.get('mode')") == "embed"  # a presentation ends where it began
    browser.click("#leave-mode")
    assert browser.run("location.hash") == "#step=4&rank=2&lang=zh"
    assert browser.run("document.querySelector('.top').offsetParent !== null")


def test_a_notebook_shows_the_embedded_page_at_its_step(browser, tmp_path):
    notebook = tmp_path / "notebook.html"
    shown = draw("ring", size=5, step=3, rank=2)._repr_html_()
    notebook.write_text(f"<!doctype html><body style='width: 900px'>{shown}", encoding="utf-8")
    browser.driver.get(notebook.as_uri())
    browser.driver.switch_to.frame(0)
    try:
        browser.wait_for("document.documentElement.dataset.ready === 'true'")
        assert browser.step() == 3
        assert browser.run("unisono.state.get('rank')") == 2
        assert browser.run("[innerWidth, innerHeight]") == [900, 563]
        parts = browser.run(PARTS)
        assert parts["rest"] == []
        assert parts["bar"][0][3] <= 563
        assert browser.complaints() == []
    finally:
        browser.driver.switch_to.default_content()
