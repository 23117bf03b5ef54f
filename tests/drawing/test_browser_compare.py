"""The page that compares algorithms, in a real browser."""

from __future__ import annotations

import math

import pytest

from browser import END
from page_checks import View, checking, report
from unisono import find, prove

pytestmark = pytest.mark.slow


def formula(size: int, alpha: float, beta: float) -> float:
    """Return the size at which ring and recursive doubling take the same time: 2(p-1)(α + nβ/p) = log2(p)(α + nβ)."""
    rounds = math.log2(size)
    return alpha * (2 * (size - 1) - rounds) / (beta * (rounds - 2 * (size - 1) / size))


@pytest.mark.parametrize("size", [4, 8, 16])
def test_the_crossover_follows_the_sliders_as_in_the_formula(browser, written_page, size):
    browser.open(written_page("ring", "recursive_doubling", size=size))
    for alpha_at, beta_at in ((500, 500), (300, 700), (700, 450)):
        browser.choose("#slider-alpha", str(alpha_at))
        browser.choose("#slider-beta", str(beta_at))
        alpha = browser.run("unisono.state.get('alpha')") * 1e-6
        beta = browser.run("unisono.state.get('beta')") * 1e-9
        assert alpha == pytest.approx(1e-7 * 1e4 ** (alpha_at / 1000), rel=0.01)
        found = browser.run("unisono.crossing()")
        assert [(change["before"], change["after"]) for change in found] == [("recursive doubling", "ring")]
        assert found[0]["bytes"] == pytest.approx(formula(size, alpha, beta), rel=1e-6)
        drawn = browser.run("document.querySelectorAll('.crossover').length")
        assert drawn == 1
        assert "ring is the fastest" in browser.text(".board [aria-live]")


def test_the_order_of_finish_changes_with_the_size_slider(browser, written_page):
    browser.open(written_page("ring", "recursive_doubling", "tree", size=8))
    order = "[...document.querySelectorAll('.board li')].map((one) => one.dataset.name)"
    browser.choose("#slider-bytes", "0")
    assert browser.run(order) == ["recursive doubling", "tree", "ring"]
    browser.choose("#slider-bytes", "1000")
    assert browser.run(order) == ["ring", "recursive doubling", "tree"]


def test_algorithms_with_equal_times_finish_together(browser, written_page):
    browser.open(written_page("ring", "rabenseifner", "swing", size=8))
    assert "rabenseifner and swing finish together" in browser.text(".board [aria-live]")
    browser.click("[data-language=zh]")
    assert "rabenseifner 与 swing 同时最先完成" in browser.text(".board [aria-live]")


def test_by_time_the_fastest_algorithm_finishes_first(browser, written_page):
    browser.open(written_page("ring", "recursive_doubling", size=8), "#by=time&bytes=16")
    browser.run("unisono.player.go(5, false)")
    said = "[...document.querySelectorAll('.compare-lane')].map((one) => one.querySelector('.progress').textContent)"
    ring, doubling = browser.run(said)
    assert "finished" not in ring
    assert "1st" in doubling
    browser.press(END)
    ring, doubling = browser.run(said)
    assert "2nd" in ring


def test_by_step_all_algorithms_advance_together_until_they_finish(browser, written_page):
    browser.open(written_page("ring", "recursive_doubling", size=8), "#step=4")
    said = "[...document.querySelectorAll('.compare-lane')].map((one) => one.querySelector('.progress').textContent)"
    assert browser.run(said) == ["Step 4 of 14", "finished after 3 steps"]


def test_the_clock_counts_rounds_if_only_messages_have_a_cost(browser, written_page):
    names = ["ring", "naive", "direct", "rabenseifner", "double_tree", "hierarchical", "swing", "butterfly"]
    browser.open(written_page(*names, size=6))
    rounds = [prove(find(name).schedule(6)).rounds for name in names]
    assert browser.run("unisono.finish(1, 0)") == rounds


def test_switching_the_language_translates_the_comparison(browser, written_page):
    browser.open(written_page("ring", "tree", size=5))
    browser.click("[data-language=zh]")
    shown = browser.run("document.querySelector('#page').innerText")
    for english in ("Order", "clock", "size", "Step", "fastest", "by time"):
        assert english not in shown
    assert "完成顺序" in shown


@pytest.mark.parametrize("width", [390, 1280])
def test_the_comparison_is_not_wider_than_the_window(browser, written_page, width):
    browser.set_up(width, 844)
    browser.open(written_page("ring", "recursive_doubling", "rabenseifner", "tree", size=8), "#step=2")
    assert browser.cut_off() == []


def test_a_single_rank_is_compared_without_a_clock(browser, written_page):
    browser.open(written_page("ring", "tree", size=1))
    browser.press(END)
    assert browser.step() == 0
    browser.choose("#slider-bytes", "900")
    assert browser.run("document.querySelectorAll('.crossover').length") == 0
    assert browser.complaints() == []


def test_algorithms_without_a_stage_are_still_compared(browser, written_page):
    browser.open(written_page("ring", "rabenseifner", size=70))
    assert browser.run("document.querySelectorAll('.compare-lane canvas').length") == 0
    browser.choose("#slider-bytes", "0")
    assert browser.run("document.querySelector('.board li').dataset.name") == "rabenseifner"
    assert browser.complaints() == []


def test_algorithms_of_different_collectives_have_full_names(browser, written_page):
    browser.open(written_page("all_gather/ring", "reduce_scatter/ring", size=3))
    names = browser.run("[...document.querySelectorAll('.compare-lane')].map((one) => one.dataset.name)")
    assert names == ["all_gather/ring", "reduce_scatter/ring"]


# What is painted outside of its stage: the corners of everything filled, by more than a pixel.
OUTSIDE = """[...document.querySelectorAll('.compare-lane canvas')].flatMap((canvas) =>
    pageChecks.marksOf(canvas).filter(({ kind }) => kind === 'fill').flatMap(({ corners }) => corners)
        .filter(([x, y]) => x < -1 || y < -1 || x > canvas.width + 1 || y > canvas.height + 1))"""
FAR = """unisono.lanes.map(({ stage }) => stage()).filter(({ plan }) => plan.places[0].name).map(({ plan }) => ({
    cards: plan.places.map(({ x, y }) => Math.hypot(x - plan.middle.x, y - plan.middle.y)),
    names: plan.places.map(({ name: { x, y } }) => Math.hypot(x - plan.middle.x, y - plan.middle.y)) }))"""


@pytest.mark.parametrize("width", [1280, 390])
def test_ranks_stand_on_a_circle_with_their_names_outside(browser, written_page, width):
    browser.set_up(width, 800)
    browser.open(written_page("ring", "recursive_doubling", "rabenseifner", size=8))
    lanes = browser.run(FAR)
    assert len(lanes) == 3
    for lane in lanes:
        assert max(lane["cards"]) - min(lane["cards"]) < 1
        assert min(lane["names"]) > max(lane["cards"])


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(
    "names", [("ring", "tree", "rabenseifner"), ("recursive_doubling", "hierarchical", "direct")]
)
def test_no_moving_chunk_covers_a_name_or_leaves_its_stage(browser, written_page, names, width):
    page = written_page(*names, size=8)
    with checking(browser) as checker:
        checker.open(page, View("en", width), link="#by=step")
        for tenth in range(0, 80, 3):
            browser.run("unisono.state.set({ step: arguments[0] })", tenth / 10)
            found = [one for one in checker.here() if "text" in one.check and "canvas" in one.element]
            assert report(found) == "", tenth
            assert browser.run(OUTSIDE) == [], tenth


@pytest.mark.parametrize("language", ["en", "zh"])
def test_who_leads_what_each_algorithm_does_and_the_bar_are_above_the_fold(browser, written_page, language):
    browser.set_up(1280, 800)
    browser.open(written_page("ring", "tree", "rabenseifner", size=8), f"#by=step&step=2&lang={language}")
    edges = browser.run(
        "['.race-said p', '.compare-lanes', '.controls', '.lane-legend', ...[0, 1, 2].map((at) =>"
        " `.compare-lane:nth-child(${at + 1}) .doing`)].map((one) =>"
        " { const { top, bottom } = document.querySelector(one).getBoundingClientRect(); return [top, bottom]; })"
    )
    assert all(0 < top < bottom <= 800 for top, bottom in edges)
    doing = browser.run("[...document.querySelectorAll('.doing')].map((one) => one.textContent)")
    assert ("Each chunk makes one trip" if language == "en" else "每一块沿环走一圈") in doing[0]
    assert browser.text(".lane-legend").startswith("added to" if language == "en" else "与接收方的数据相加")


def test_the_narration_follows_the_race_and_is_announced_at_rest(browser, written_page):
    browser.open(written_page("ring", "recursive_doubling", size=8), "#by=time&bytes=16")
    said = ".race-said p"
    assert browser.text(said) == "All algorithms start at the same time with the same data."
    browser.run("unisono.player.go(1.5, false)")
    assert browser.text(said).startswith("recursive doubling leads: ")
    assert browser.text(said) in browser.text(".race-said [aria-live=polite]")
    announced = browser.text(".race-said [aria-live=polite]")
    browser.run("unisono.state.set({ playing: true, step: 5 })")
    browser.wait_for("document.querySelector('.race-said p').textContent.includes('finished first')")
    assert browser.text(".race-said [aria-live=polite]") == announced  # silent while it plays
    browser.run("unisono.player.stop()")
    browser.press(END)
    assert "ring took" in browser.text(said)
    assert browser.run("document.querySelector('.doing').textContent") == "Finished: every rank has its result."
    browser.click("[data-by=step]")
    browser.run("unisono.player.go(4, false)")
    assert browser.text(said) == "recursive doubling has finished (3 steps). ring has 10 steps left."
