"""The gallery, and the frame rate, in a real browser."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


def test_the_index_leads_to_every_page_in_the_language_of_the_reader(browser, gallery):
    index = gallery
    browser.open(index)
    cards = browser.run(
        "[...document.querySelectorAll('.card, .compare, .lesson-card a')].map((one) => one.getAttribute('href'))"
    )
    for link in cards:
        assert (index.parent / link.partition("#")[0]).exists()
    assert len({link.partition("#")[0] for link in cards}) == len(list(index.parent.glob("*.html"))) - 1
    assert "bytes: the lower bound" in browser.text("#all_reduce")
    assert "bytes" not in browser.text("#barrier")  # it has none
    browser.click("[data-language=zh]")
    assert "每个人手里有一个数，最后每个人都知道总和。" in browser.text("#all_reduce")
    assert "rank 之间如何通信" in browser.text("h1")
    browser.click("#all_reduce .card:nth-of-type(3)")
    browser.wait_for("globalThis.unisono !== undefined")
    assert browser.run("document.documentElement.lang") == "zh-CN"
    assert "先让每一块绕环一圈求和" in browser.text(".idea")
    browser.click(".brand")
    browser.wait_for("document.querySelector('.gallery') !== null")
    assert browser.complaints() == []


def test_reduce_scatter_then_all_gather_equals_all_reduce_step_by_step(browser, gallery):
    browser.open(gallery.parent / "lesson-3-halves.html", "#step=4")
    said = "[...document.querySelectorAll('.compare-lane')].map((one) => one.querySelector('.progress').textContent)"
    assert browser.run(said) == ["finished after 3 steps", "Step 1 of 3", "Step 4 of 6"]
    states = "unisono.scenes.map(({ rows }) => rows.map((of) => of.at(-1).map((cell) => cell && cell.value)))"
    scattered, gathered, reduced = browser.run(states)
    assert [row[rank] for rank, row in enumerate(scattered)] == [6, 10, 14, 18]
    assert gathered == reduced == [[6, 10, 14, 18]] * 4
    assert not browser.run("document.querySelector('#slider-alpha').offsetParent")


@pytest.mark.parametrize("size", [16, 64])
def test_playing_is_smooth(browser, written_page, size):
    """In at least one of several seconds, as the machine may be busy; tools/measure_page.py measures it."""
    browser.set_up(motion=True)
    browser.open(written_page("ring", size=size))
    assert any(browser.frames_per_second(1.0) >= 30 for _ in range(10))
