"""The pages of training steps and of bus bandwidth, in a real browser."""

from __future__ import annotations

import json

import pytest

from browser import END, HOME, LEFT, RIGHT
from unisono import find, prove
from unisono.collectives import COLLECTIVES
from unisono.drawing.page import Settings
from unisono.drawing.script_pages import RECORDED, SCRIPT_PAGES

pytestmark = pytest.mark.slow

TRAINING = {
    "data-parallel": "data_parallel",
    "tensor-parallel": "tensor_parallel",
    "zero3": "zero3",
    "experts": "experts",
}
TOTALS = "[...document.querySelectorAll('.memory')].map((one) => Number(one.dataset.total))"


@pytest.fixture
def lesson(tmp_path):
    def write(name, **settings):
        path = tmp_path / f"{name}.html"
        path.write_text(SCRIPT_PAGES[name].write(Settings(**settings)), encoding="utf-8")
        return path

    return write


def recorded(name):
    return json.loads((RECORDED / f"{TRAINING[name]}.json").read_text(encoding="utf-8"))


def number(text):
    return float(text.replace(",", "").split()[0])


@pytest.mark.parametrize("name", TRAINING)
def test_every_step_shows_the_measured_memory_and_the_last_one_the_bytes_sent(browser, lesson, name):
    data = recorded(name)
    browser.open(lesson(name))
    said = set()
    for level, moment in enumerate(data["moments"]):
        if level:
            browser.press(RIGHT)
        expected = [sum(map(sum, held)) + empty for held, empty in zip(moment["held"], moment["empty"], strict=True)]
        assert browser.run(TOTALS) == expected
        assert browser.run("document.querySelectorAll('.band').length") == len(moment["open"])
        said.add(browser.text("[aria-live]"))
    assert len(said) == len(data["moments"])  # every moment has a different announcement
    assert number(browser.text("[data-fact=sent]")) == sum(each["sent_bytes"] for each in data["collectives"])
    assert browser.complaints() == []


@pytest.mark.parametrize("name", TRAINING)
def test_languages_links_and_narrow_screens_work(browser, lesson, name):
    browser.set_up(390, 800, dark=True)
    browser.open(lesson(name), "#step=3&rank=2&lang=zh")
    assert browser.step() == 3
    assert browser.text("h1").startswith(SCRIPT_PAGES[name].title.zh)
    assert browser.text(".rank-name[aria-pressed=true] .narrow") == "2"
    assert browser.cut_off() == []
    browser.click("[data-language=en]")
    assert SCRIPT_PAGES[name].words.en in browser.text(".tale")
    assert "Step 3 of" in browser.text(".story h2")
    browser.press(HOME)
    assert browser.step() == 0
    browser.press(END, LEFT)
    assert browser.step() == len(recorded(name)["moments"]) - 2
    assert f"#step={browser.step()}" in browser.run("location.hash")
    assert browser.complaints() == []


@pytest.mark.parametrize(
    ("name", "holds", "sends"),
    [
        ("data-parallel", lambda p, psi: 16 * psi, lambda p, psi: 2 * (p - 1) / p * 2 * psi),
        ("zero3", lambda p, psi: 16 * psi / p, lambda p, psi: 3 * (p - 1) / p * 2 * psi),
        (
            "experts",
            lambda p, psi: 16 * psi / p,
            lambda p, psi: 4 * 32 * (p - 1) / p * 2 * 2 * 8192 / p * (psi / 8 / 32 / p) ** 0.5,
        ),
        (
            "tensor-parallel",
            lambda p, psi: 16 * psi / p,
            lambda p, psi: 4 * 32 * 2 * (p - 1) / p * 2 * 8192 * (psi / 12 / 32) ** 0.5,
        ),
    ],
)
def test_the_sliders_give_the_results_of_the_formula(browser, lesson, name, holds, sends):
    browser.open(lesson(name))
    for notch, parameters in ((2, 300), (9, 700)):
        browser.choose("#slider-ranks", str(notch))
        browser.choose("#slider-parameters", str(parameters))
        found = browser.run("unisono.yours()")
        p, psi = found["given"]["ranks"], found["given"]["parameters"]
        assert found["holds"]["total"] == pytest.approx(holds(p, psi))
        assert found["sends"] == pytest.approx(sends(p, psi))
        factor = {"GB": 1e9, "TB": 1e12, "MB": 1e6}[browser.text("[data-fact=holds]").split()[1]]
        assert number(browser.text("[data-fact=holds]")) * factor == pytest.approx(holds(p, psi), rel=0.01)
    browser.choose("#precision", "float32")
    assert "(4 + 4 + 8) · Ψ" in browser.text(".result")


def test_the_ring_is_counted_step_by_step_and_the_verifier_agrees(browser, lesson):
    browser.open(lesson("busbw"))
    for notch, size in ((0, 2), (3, 5), (8, 16)):
        browser.choose("#slider-ranks", str(notch))
        assert browser.step() == 0
        browser.press(RIGHT)
        assert browser.run("unisono.sent(1)") == 1
        browser.press(END)
        assert browser.run(f"Array.from({{length: {size}}}, (_, r) => unisono.sent(r))") == [2 * (size - 1)] * size
        busiest = prove(find("ring").schedule(size)).busiest
        assert f"{busiest} of the vector" in browser.text(".finished")
        assert number(browser.text("[data-fact=factor]")) == pytest.approx(float(busiest), rel=0.005)
        for collective in COLLECTIVES:
            if collective.carries_data:
                shown = float(browser.text(f"[data-factor={collective}]"))
                assert shown == pytest.approx(float(collective.bus_factor(size)), rel=0.005)
    assert browser.text("[data-fact=busbw]") == "50 GB/s"
    browser.run("(location.hash = '#step=3&ranks=7&bytes=4096')")
    browser.wait_for("unisono.state.get('ranks') === 7")
    assert browser.run("[unisono.state.get('step'), unisono.sent(4), unisono.state.get('bytes')]") == [3, 3, 4096]
    browser.click("[data-language=zh]")
    assert SCRIPT_PAGES["busbw"].title.zh in browser.text("h1")
    assert browser.complaints() == []


def test_every_rank_of_the_ring_can_be_selected_with_the_keyboard(browser, lesson):
    browser.open(lesson("busbw"), "#ranks=5")
    up, down = "\ue013", "\ue015"
    browser.press(up)
    assert browser.run("unisono.state.get('rank')") == 4
    browser.press(down)
    assert browser.run("unisono.state.get('rank')") == 0


def test_links_lead_to_pages_of_the_gallery(browser, gallery):
    site = gallery.parent
    for path in sorted(site.glob("lesson-[47]-*.html")):
        browser.open(path, "#lang=zh")
        links = browser.run("[...document.querySelectorAll('td a, th a')].map((a) => a.getAttribute('href'))")
        assert links
        for link in links:
            page, _, view = link.partition("#")
            assert (site / page).exists()
            assert view == "lang=zh"
