"""At 1280 by 800, the stage, its bar and the words are above the fold; a failing program opens at its failure."""

from __future__ import annotations

import pytest

from unisono import algorithm, draw, find, recv_reduce, send
from unisono.algorithms import one
from unisono.collectives import all_reduce
from unisono.drawing.page import write_page
from unisono.drawing.scene import scene_of

pytestmark = pytest.mark.slow

PAGES = [
    ("ring", 5, {}),
    ("tree", 8, {}),
    ("hierarchical", 8, {"node": 4}),
    ("rabenseifner", 8, {}),
    ("all_to_all/bruck", 8, {}),
]
EDGES = """(() => Object.fromEntries([
    'header', '.stage', '.controls', '.story', '.phase-idea', '.story li', '.facts'].map(
    (name) => { const { left, top, right, bottom } = document.querySelector(name).getBoundingClientRect();
                return [name, { left, top, right, bottom }]; })))()"""


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("name", "size", "options"), PAGES, ids=[name for name, *_ in PAGES])
def test_stage_bar_and_words_are_above_the_fold_and_the_facts_below_them(
    browser, written_page, name, size, options, language
):
    browser.set_up(1280, 800)
    browser.open(written_page(name, size=size, **options), f"#step=2&lang={language}")
    edges = browser.run(EDGES)
    for part in ("header", ".stage", ".controls", ".phase-idea", ".story li"):
        assert 0 <= edges[part]["top"] < edges[part]["bottom"] <= 800, part
    assert edges["header"]["bottom"] <= edges[".stage"]["top"]
    assert edges[".stage"]["bottom"] <= edges[".controls"]["top"]
    assert edges[".story"]["left"] >= edges[".stage"]["right"]
    assert edges[".facts"]["top"] >= edges[".controls"]["bottom"]
    assert edges[".stage"]["bottom"] - edges[".stage"]["top"] >= 400  # it is still the largest part
    assert browser.cut_off() == []


@pytest.mark.parametrize(("language", "idea"), [("en", "Each chunk makes one trip"), ("zh", "每一块沿环走一圈")])
def test_each_phase_begins_with_its_idea_and_then_tells_what_happens_from_rank_0_on(
    browser, written_page, language, idea
):
    browser.open(written_page("ring"), f"#step=1&lang={language}")
    said = browser.run("[...document.querySelectorAll('.said > p, .said li')].map((one) => one.textContent)")
    assert said[0].startswith(idea)
    assert ("Rank 0 sends a0 to rank 1" if language == "en" else "rank 0 把 a0 发给 rank 1") not in said[1]
    senders = [sentence.lower().split("rank ")[1][0] for sentence in said[2:7]]
    assert senders == ["0", "1", "2", "3", "4"]


@algorithm(all_reduce, chunks=one)
def twice(rank, size):
    """Incorrect: the second exchange adds the sum again."""
    for _ in range(2):
        yield send(0, dst=rank ^ 1), recv_reduce(0, src=rank ^ 1)


def test_a_comparison_with_a_failing_program_opens_at_its_error_and_gives_the_reason(browser, tmp_path):
    tree = find("tree")
    scenes = [scene_of(tree.schedule(4), tree), scene_of(twice.schedule(4), twice)]
    path = tmp_path / "page.html"
    path.write_text(write_page(scenes, "compared"), encoding="utf-8")
    browser.open(path)
    assert browser.step() == scenes[1]["failure"]["level"] == 2
    lane = ".compare-lane[data-name=twice]"
    assert browser.text(f"{lane} .progress") == "✗ Not proved"
    reason = browser.text(f"{lane} .reason")
    assert "The result is missing, wrong, or not the same everywhere." in reason
    assert "is counted twice" in reason
    assert "`" not in reason
    assert browser.run("document.querySelector('.compare-lane[data-name=tree] .reason').offsetParent") is None
    assert browser.run("document.querySelector('.board').offsetParent") is None  # no race with a wrong program
    browser.click("[data-language=zh]")
    assert browser.text(f"{lane} .progress") == "✗ 未通过证明"
    assert "被重复计入" in browser.text(f"{lane} .reason")
    browser.press("\ue011")
    assert browser.step() == 0
    assert browser.text(f"{lane} .progress") != "✗ 未通过证明"
    assert browser.complaints() == []


# The parts that must be above the fold: what moves, and what is said about it.
KINDS = {
    "lesson-1-rank": [".captions", ".stage", ".controls", ".story .said"],
    "lesson-3-five": [".captions", ".stage", ".controls", ".phase-idea"],
    "lesson-3-halves": [".captions", ".compare-lanes", ".doing", ".controls"],
    "lesson-4-busbw": [".captions", ".stage", ".controls", ".story .said"],
    "lesson-6-hosts": [".captions", ".stage", ".controls", ".phase-idea"],
    "lesson-7-data-parallel": [".captions", ".stage", ".controls", ".story .said"],
    "lesson-7-tensor-parallel": [".captions", ".stage", ".controls", ".story .said"],
    "lesson-7-zero3": [".captions", ".stage", ".controls", ".story .said"],
    "lesson-7-experts": [".captions", ".stage", ".controls", ".story .said"],
    "lesson-8-race": [".captions", ".race-said", ".compare-lanes", ".doing", ".controls"],
    "lesson-8-links": [".captions", ".stage", ".controls", ".moment .lead"],
    "compare-all_reduce": [".race-said", ".compare-lane", ".doing", ".controls"],
}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("page", KINDS)
def test_every_kind_of_page_has_its_animation_and_its_words_above_the_fold(browser, gallery, page, language):
    browser.set_up(1280, 800)
    browser.open(gallery.parent / f"{page}.html", f"#step=2&lang={language}")
    for part in KINDS[page]:
        box = browser.run(
            "(({ top, bottom }) => [top, bottom])(document.querySelector(arguments[0]).getBoundingClientRect())", part
        )
        assert 0 <= box[0] < box[1] <= 800, part
    assert browser.cut_off() == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_simulated_time_has_its_stage_bar_and_moment_above_the_fold(browser, tmp_path, language):
    browser.set_up(1280, 800)
    page = draw("ring", size=16, network="dgx-h100").save(tmp_path / "simulated.html")
    browser.open(page, f"#step=37&lang={language}")
    edges = browser.run(
        "['.stage', '.controls', '.moment .lead', '.moment li', '.save'].map((one) =>"
        " (({ top, bottom }) => [top, bottom])(document.querySelector(one).getBoundingClientRect()))"
    )
    assert all(0 <= top < bottom <= 800 for top, bottom in edges), edges


def test_a_run_has_its_finding_timeline_and_moment_above_the_fold(browser, drawn):
    browser.set_up(1280, 800)
    browser.open(drawn(4), "#call=2&at=50")
    boxes = browser.run(
        "['h1', '.tale', '.timeline', '.story h2', '.story li', '.replay .stage'].map((one) =>"
        " (({ left, top, right, bottom }) => [left, top, right, bottom])"
        "(document.querySelector(one).getBoundingClientRect()))"
    )
    *shown, stage = boxes
    assert all(0 <= top < bottom <= 800 for _, top, _, bottom in shown)
    assert shown[3][0] >= stage[2]  # the words are beside the stage
    assert stage[1] < 600


def test_the_numbers_of_a_lesson_are_on_its_stages(browser, gallery):
    for width, height in ((1280, 800), (390, 844)):
        browser.set_up(width, height)
        browser.open(gallery.parent / "lesson-3-halves.html")
        cells = browser.run("unisono.lanes.map((lane) => lane.stage().plan.form.cell)")
        assert all(cell["height"] >= 15 and cell["width"] >= 22 for cell in cells)  # room for text
    tops = browser.run("unisono.lanes.map(({ node }) => node.getBoundingClientRect().top)")
    assert tops == sorted(set(tops))  # one below the other
    browser.set_up(1280, 800)
    browser.wait_for("new Set(unisono.lanes.map(({ node }) => node.getBoundingClientRect().top)).size === 1")
