"""Pages on paper: one sheet for one algorithm, black on white, with the step that is shown."""

from __future__ import annotations

import base64
import re

import pytest

from unisono import algorithm, draw, find, one, recv_reduce, send
from unisono.collectives import all_reduce
from unisono.drawing.page import write_page
from unisono.drawing.scene import scene_of

pytestmark = pytest.mark.slow

DARK = [{"name": "prefers-color-scheme", "value": "dark"}]
A4, LETTER = (8.27, 11.69), (8.5, 11.0)  # inches, upright


def sheets(browser, paper):
    """Print the open page to PDF, and return the number of its pages."""
    width, height = paper
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"paperWidth": width, "paperHeight": height})
    return len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed["data"])))


@algorithm(all_reduce, chunks=one)
def twice(rank, size):
    """Incorrect: the second exchange adds the sum again."""
    for _ in range(2):
        yield send(0, dst=rank ^ 1), recv_reduce(0, src=rank ^ 1)


@pytest.mark.parametrize(
    ("name", "size", "link"),
    [
        ("ring", 5, "#step=3"),
        ("ring", 5, "#step=3&rank=2&lang=zh&present"),
        ("ring", 5, "#step=3&embed"),
        ("hierarchical", 16, "#step=4&lang=zh"),
        ("rabenseifner", 13, "#step=3"),
        ("all_to_all/bruck", 8, "#step=2"),
        ("barrier/dissemination", 8, "#step=1"),
        ("direct", 64, "#step=1"),
        ("ring", 100, "#step=9"),  # a matrix
    ],
)
def test_the_page_of_an_algorithm_is_one_sheet(browser, written_page, name, size, link):
    browser.set_up(dark=True)
    browser.open(written_page(name, size=size), link)
    assert sheets(browser, A4) == 1
    assert sheets(browser, LETTER) == 1
    assert browser.run("document.documentElement.dataset.theme") == "dark"  # as before
    assert browser.run("document.querySelector('.printed, .origin')") is None
    assert browser.complaints() == []


# Lessons of each kind, a comparison, and simulated time; test_a_failing_program_and_a_lesson prints a lesson, too.
OTHERS = (
    "lesson-3-halves", "lesson-4-busbw", "lesson-7-zero3", "lesson-7-experts", "lesson-8-race", "lesson-8-links",
    "compare-all_reduce",
)  # fmt: skip


@pytest.mark.parametrize("page", OTHERS)
def test_every_kind_of_page_is_one_sheet(browser, gallery, page):
    for language in ("en", "zh"):
        browser.open(gallery.parent / f"{page}.html", f"#step=3&lang={language}")
        assert [sheets(browser, paper) for paper in (A4, LETTER)] == [1, 1]
    assert browser.complaints() == []


def test_compared_stages_are_on_paper_with_the_command_that_draws_them(browser, written_page):
    browser.open(written_page("ring", "tree", size=5), "#by=step&step=2")
    browser.run("dispatchEvent(new Event('beforeprint'))")
    names = browser.run("[...document.querySelectorAll('.printed text')].map((one) => one.textContent)")
    assert {"ring", "tree"} <= set(names)
    assert browser.text(".origin") == "unisono draw all_reduce/ring all_reduce/tree -n 5"
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run("document.querySelector('.printed, .origin')") is None


def test_a_failing_program_and_a_lesson_are_one_sheet(browser, tmp_path, gallery):
    path = tmp_path / "page.html"
    path.write_text(write_page([scene_of(twice.schedule(2), twice)], "twice"), encoding="utf-8")
    browser.open(path)
    assert sheets(browser, A4) == sheets(browser, LETTER) == 1
    browser.open(gallery.parent / "lesson-3-five.html", "#step=2")
    assert sheets(browser, A4) == sheets(browser, LETTER) == 1


def test_the_sheet_has_title_stage_words_facts_and_command_in_black_on_white(browser, tmp_path):
    browser.set_up(dark=True)
    browser.open(draw("ring", size=5, step=3, rank=2).save(tmp_path / "ring.html"))
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": DARK})
    browser.run("dispatchEvent(new Event('beforeprint'))")
    visible = "[...document.querySelectorAll(arguments[0])].filter((one) => one.getClientRects().length).length"
    for part in ("h1", ".printed svg", ".story h2", ".story li", ".facts dl", ".origin"):
        assert browser.run(visible, part) > 0, part
    for part in ("canvas", ".controls", ".code", ".contents", ".switches", ".foot", "select", "button"):
        assert browser.run(visible, part) == 0, part
    assert browser.text(".origin") == "unisono draw ring -n 5 --step 3 --rank 2"
    texts = browser.run("[...document.querySelectorAll('.printed text')].map((one) => one.textContent)")
    assert "c0+c3+c4" in texts  # at step 3
    assert [text for text in texts if text.startswith("rank")] == [f"rank {rank}" for rank in range(5)]
    colours = browser.run(
        "['body', '.stage', '.story'].map((name) => getComputedStyle(document.querySelector(name)).backgroundColor)"
    )
    assert colours == ["rgb(255, 255, 255)"] * 3
    assert browser.run("getComputedStyle(document.querySelector('.story li')).color") == "rgb(28, 36, 48)"
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run(visible, ".printed") == 0
    assert browser.run("document.documentElement.dataset.theme") == "dark"


def test_the_command_on_paper_has_root_and_options(browser, written_page):
    browser.open(written_page("hierarchical", size=6, node=2), "#step=1")
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.text(".origin") == "unisono draw all_reduce/hierarchical -n 6 --option node=2 --step 1"
    assert find("broadcast/tree").schedule(5, 3).root == 3
    browser.open(written_page("broadcast/tree", root=3))
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.text(".origin") == "unisono draw broadcast/tree -n 5 --root 3"
