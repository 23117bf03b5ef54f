"""The gallery, and the frame rate, in a real browser."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


def test_the_index_leads_to_every_page_in_the_language_of_the_reader(browser, gallery):
    index = gallery
    browser.open(index)
    links = ".card .open, .compare, .lesson-card .open, .lesson-card .tab"
    cards = browser.run(f"[...document.querySelectorAll('{links}')].map((one) => one.getAttribute('href'))")
    for link in cards:
        assert (index.parent / link.partition("#")[0]).exists()
    assert len({link.partition("#")[0] for link in cards}) == len(list(index.parent.glob("*.html"))) - 1
    assert "bytes: the lower bound" in browser.text("#all_reduce")
    assert "bytes" not in browser.text("#barrier")  # it has none
    browser.click("[data-language=zh]")
    assert "每个人手里有一个数，最后每个人都知道总和。" in browser.text("#all_reduce")
    assert "rank 之间如何通信" in browser.text("h1")
    browser.click("#all_reduce .card:nth-of-type(3) .open")
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


ROWS = """[...document.querySelectorAll('.cards, .lessons')].map((grid) => {
    const { left, right } = grid.getBoundingClientRect();
    const rows = {};
    for (const card of grid.children) {
        const box = card.getBoundingClientRect();
        (rows[Math.round(box.top)] ??= []).push([box.left - left, right - box.right]);
    }
    return Object.values(rows);
})"""


@pytest.mark.parametrize("width", [390, 700, 900, 1180, 1280, 1920])
def test_every_row_of_cards_is_full(browser, gallery, width):
    browser.set_up(width, 844)
    browser.open(gallery)
    for rows in browser.run(ROWS):
        for row in rows:
            assert abs(row[0][0]) < 2  # from the left edge
            assert abs(row[-1][1]) < 2  # to the right edge
        assert max(map(len, rows)) - min(map(len, rows)) <= 1
    assert browser.cut_off() == []


def test_every_section_and_card_of_the_index_can_be_linked_to(browser, gallery):
    browser.open(gallery, "#all_reduce-rabenseifner")
    assert 0 <= browser.run("document.querySelector('#all_reduce-rabenseifner').getBoundingClientRect().top") < 300
    ids = browser.run("[...document.querySelectorAll('.card, .lesson-card, section')].map(({ id }) => id)")
    assert "" not in ids
    assert len(set(ids)) == len(ids)
    anchors = browser.run("[...document.querySelectorAll('.anchor')].map((one) => one.getAttribute('href'))")
    assert sorted(anchors) == sorted(f"#{one}" for one in ids)
    opacity = "getComputedStyle(document.querySelector('#all_reduce-rabenseifner .anchor')).opacity"
    hovers = browser.run("matchMedia('(hover: hover)').matches")
    assert browser.run(opacity) == ("0" if hovers else "1")
    browser.run("document.querySelector('#all_reduce-rabenseifner .open').focus()")
    browser.press_with_shift("\ue004")  # Tab
    assert browser.run(opacity) == "1"
    contents = browser.run("[...document.querySelectorAll('.toc a')].map((one) => one.getAttribute('href'))")
    assert set(contents) <= set(anchors)
    assert len(contents) == browser.run("document.querySelectorAll('.gallery section').length")


def test_the_thumbnails_of_the_index_fill_their_cards(browser, gallery):
    browser.open(gallery)
    high = browser.run("[...document.querySelectorAll('.thumbnail')].map((one) => one.clientHeight)")
    assert min(high) >= 120
