"""The course in a real browser: a walk with the keyboard, and every page in both languages, sizes and themes."""

from __future__ import annotations

import pytest

from browser import LEFT, RIGHT
from unisono.drawing.course.contents import PLACES

pytestmark = pytest.mark.slow

HERE = "location.pathname.split('/').at(-1)"


def walk(browser, forward=True):
    """Press Shift and an arrow key, as a reader does."""
    browser.press_with_shift(RIGHT if forward else LEFT)


def test_the_whole_course_is_walked_with_the_keyboard(browser, gallery):
    browser.open(gallery.parent / PLACES[0].file, "#lang=zh")
    for at, place in enumerate(PLACES):
        assert browser.run(HERE) == place.file
        assert f"第 {place.number} 课" in browser.text(".course-nav")
        said = [browser.text(".caption")]
        count = browser.run("unisono.course.captions.length")
        for number in range(1, count):
            walk(browser)
            browser.wait_for(f"unisono.course.caption() === {number}")
            said.append(browser.text(".caption"))
        assert len(set(said)) == count
        assert browser.run("document.querySelector('.answer').hidden")
        walk(browser)
        assert not browser.run("document.querySelector('.answer').hidden")
        following = PLACES[at + 1].file if at + 1 < len(PLACES) else gallery.name
        walk(browser)
        browser.wait_for(f"{HERE} === '{following}' && document.documentElement.dataset.ready === 'true'")
    assert browser.run("document.documentElement.lang") == "zh-CN"
    assert browser.complaints() == []


def test_the_way_back_leads_to_the_previous_page(browser, gallery):
    browser.open(gallery.parent / PLACES[3].file, "#step=1")
    walk(browser, forward=False)
    browser.wait_for("unisono.course.caption() === 0")
    walk(browser, forward=False)
    browser.wait_for(f"{HERE} === '{PLACES[2].file}'")


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.page.name)
def test_a_page_fits_wide_and_narrow_windows_in_both_languages(browser, gallery, place):
    for width, height, dark, language in ((1280, 800, False, "en"), (390, 800, True, "zh")):
        browser.set_up(width, height, dark=dark)
        browser.open(gallery.parent / place.file, f"#lang={language}")
        assert browser.cut_off() == []
        first = browser.run("document.querySelector('.caption').getBoundingClientRect().bottom")
        assert first < height / 2  # the caption is above the fold
        if width == 1280:
            bar = browser.run("document.querySelector('.controls .playback').getBoundingClientRect().bottom")
            assert bar <= height
        assert browser.text(".caption") == getattr(drawn_caption(place), language).replace("`", "")
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    assert browser.complaints() == []


def drawn_caption(place):
    return place.page.draw().captions[0].words


def test_the_stage_does_not_move_when_the_caption_changes(browser, gallery):
    browser.open(gallery.parent / "lesson-3-five.html")
    tops = set()
    for _ in range(6):
        tops.add(browser.run("document.querySelector('#stage').getBoundingClientRect().top + scrollY"))
        walk(browser)
    assert len(tops) == 1


def test_choices_are_checked_and_the_answer_is_revealed(browser, gallery):
    browser.open(gallery.parent / "lesson-3-five.html")
    right = browser.run("unisono.course.question.right")
    wrong = (right + 1) % 3
    browser.run(f"document.querySelector('[data-choice=\"{wrong}\"]').focus()")
    browser.press(" ")
    assert browser.text(".verdict").startswith("Not this one")
    assert browser.run(f"document.activeElement.dataset.choice === '{wrong}'")
    browser.click(f"[data-choice='{right}']")
    assert browser.text(".verdict") == "Right."
    browser.click("#reveal")
    assert "after step 8" in browser.text(".answer")
    browser.click("[data-language=zh]")
    assert "第 8 步之后" in browser.text(".answer")
    assert browser.text(".verdict") == "正确。"
    browser.click(".way-on a")
    browser.wait_for(f"{HERE} === 'lesson-3-halves.html'")


def test_the_captions_of_the_race_choose_the_size_and_come_back_after_a_detour(browser, gallery):
    browser.open(gallery.parent / "lesson-8-race.html")
    seen = []
    for _ in range(6):
        seen.append(browser.run("unisono.state.get('bytes')"))
        walk(browser)
    assert seen == [4096] * 3 + [1 << 27] * 3
    browser.run("unisono.state.set({ network: 'ideal' })")
    assert browser.text(".caption").startswith("You have changed what is shown")
    browser.click("#caption-forward")
    assert browser.run("[unisono.course.caption(), unisono.state.get('network')]") == [0, "dgx-h100"]


@pytest.mark.parametrize(
    ("language", "topics"),
    [
        ("en", ["Your own algorithm", "Several machines", "GPUs", "The simulator", "The planner"]),
        ("zh", ["自己的算法", "多台机器", "GPU", "模拟器", "规划器"]),
    ],
)
def test_the_last_page_says_where_to_go_from_here(browser, gallery, language, topics):
    browser.open(gallery.parent / PLACES[-1].file, f"#lang={language}")
    said = browser.run("[...document.querySelectorAll('.after-course li')].map((one) => one.textContent)")
    assert [text.replace("：", ":").split(":")[0] for text in said] == topics
    assert "unisono run --hosts a:4,b:4" in said[1]
    assert "unisono simulate" in said[3]
    assert "unisono plan" in said[4]
    browser.open(gallery.parent / PLACES[0].file)
    assert browser.run("document.querySelector('.after-course')") is None
