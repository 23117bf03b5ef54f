"""The pages in simulated time, in a real browser."""

from __future__ import annotations

import pytest

import unisono
from browser import END, HOME, RIGHT
from unisono import draw

pytestmark = pytest.mark.slow

FAR = "unisono.roads().find(({ src, dst }) => src === 3 && dst === 4)"
SWATCH = "document.querySelector('[data-link] .swatch')"
LANES = "[...document.querySelectorAll('.compare-lane .progress')].map((one) => one.textContent)"
# A colour counts as another one only if it is not the colour of an idle link.
COLOURS = f"""(() => {{
    const seen = new Set();
    for (let step = 0; step <= 100; step += 2) {{
        unisono.player.go(step, false);
        seen.add({FAR}.load + " " + {FAR}.colour);
    }}
    return [...seen];
}})()"""


@pytest.fixture
def page(tmp_path):
    """Draw algorithms like a user and return the file."""

    def write(*names, **arguments):
        return draw(names, **arguments).save(tmp_path / "page.html")

    return write


@pytest.fixture
def network(tmp_path):
    """Return the file of a network of hosts with four ranks that share a NIC."""
    path = tmp_path / "hosts.toml"
    path.write_text(
        'name = "hosts"\nranks_per_host = 4\n[near]\nkind = "switch"\nbandwidth = "100 GB/s"\n'
        '[nic]\nlatency = "8 us"\nbandwidth = "5 GB/s"\n'
    )
    return path


@pytest.mark.parametrize(
    ("language", "start", "end"),
    [("en", "Nothing has been sent yet", "Finished after"), ("zh", "还没有发送任何数据", "后完成")],
)
def test_a_page_plays_in_simulated_time_in_both_languages(browser, page, network, language, start, end):
    browser.open(page("ring", size=8, network=network, nbytes=1 << 20), f"#lang={language}")
    seconds = unisono.simulate(unisono.find("ring").schedule(8), 1 << 20, network).time_s
    assert browser.run("unisono.times.finish") == pytest.approx(seconds)
    assert start in browser.text(".moment")
    browser.press(RIGHT)
    assert 0 < browser.step() < 100
    browser.press(END)
    assert end in browser.text(".moment")
    assert browser.run("unisono.roads().every(({ load }) => load === 0)")
    states = "unisono.scene.rows.every((rows, rank) => unisono.times.finished[rank].length === rows.length - 1)"
    assert browser.run(states)
    browser.press(HOME)
    browser.set_up(motion=True)
    browser.click("#button-play")
    browser.wait_for("unisono.state.get('step') > 1")
    browser.click("#button-play")
    assert browser.complaints() == []


def test_a_link_changes_its_colour_with_its_load(browser, page, network):
    browser.open(page("ring", size=8, network=network, nbytes=1 << 20), "#lang=en")
    assert browser.run(f"{FAR}.far")
    assert not browser.run("unisono.roads().find(({ src }) => src === 0).far")
    loads = {float(text.split(" ", 1)[0]): text.split(" ", 1)[1] for text in browser.run(COLOURS)}
    assert len(loads) == len(set(loads.values())) > 1
    assert {0.0, 1.0} <= set(loads)


def test_the_panel_of_links_shows_the_load_of_the_simulator(browser, page, network):
    browser.open(page("ring", size=8, network=network, nbytes=1 << 20), "#lang=en&step=100")
    idle = browser.run(f"{SWATCH}.style.background")
    predicted = unisono.simulate(unisono.find("ring").schedule(8), 1 << 20, network, timeline=True)
    use = predicted.timeline.use
    times, used = (each[use.link == use.link.min()] for each in (use.time_s, use.used))
    busy = int(used.argmax())
    middle_s = (times[busy] + times[busy + 1]) / 2
    browser.run(f"unisono.player.go({100 * middle_s / predicted.time_s}, false)")
    assert browser.text("[data-link] output") == f"{round(100 * used[busy])} %"
    assert browser.run(f"{SWATCH}.style.background") != idle


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_page_in_simulated_time_is_not_wider_than_the_window(browser, page, width, language):
    browser.set_up(width, 844)
    browser.open(page("ring", size=16, network="dgx-h100"), f"#step=40&lang={language}")
    assert browser.cut_off() == []


@pytest.mark.parametrize("size", [1, 2, 13])
def test_pages_of_any_number_of_ranks_open_and_end(browser, page, size):
    browser.open(page("ring", size=size, network="dgx-h100", nbytes=8))
    browser.press(END)
    assert browser.step() == 100
    assert browser.complaints() == []


def test_algorithms_race_at_the_times_of_the_simulator(browser, page):
    names = ("ring", "recursive_doubling")
    browser.open(page(*names, size=8), "#lang=en")
    assert browser.run("unisono.state.get('by')") == "time"
    for network in ("ideal", "dgx-h100"):
        browser.choose("#network", network)
        for position, nbytes in ((0, 8), (9, 1 << 30)):
            browser.choose("#slider-bytes", str(position))
            expected = [unisono.simulate(unisono.find(name).schedule(8), nbytes, network).time_s for name in names]
            assert browser.run("unisono.times().map(({ finish }) => finish)") == pytest.approx(expected)
            first = names[expected.index(min(expected))].replace("_", " ")
            assert f"{first} finishes first" in browser.text(".board [aria-live]")
    browser.press(END)
    assert all("finished after" in text for text in browser.run(LANES))


def test_crossovers_are_marked_and_follow_the_network(browser, page):
    browser.open(page("ring", "recursive_doubling", size=8), "#lang=en&network=ideal")
    (ideal,) = browser.run("unisono.crossing()")
    assert (ideal["before"], ideal["after"]) == ("recursive doubling", "ring")
    assert float(browser.run("document.querySelector('.crossover').dataset.bytes")) == ideal["bytes"]
    browser.choose("#network", "fugaku")
    assert browser.run("unisono.crossing()[0].bytes") != ideal["bytes"]
    browser.choose("#network", "model")
    assert browser.run("document.querySelector('#slider-alpha') !== null")
    browser.click("[data-by=step]")
    browser.press(END)
    assert "finished after 14 steps" in browser.run(LANES)[0]


def test_the_race_and_its_link_are_in_both_languages(browser, page):
    browser.set_up(390, 844)
    browser.open(page("ring", "tree", size=5), "#lang=zh&network=dgx-h100&bytes=8")
    assert "dgx-h100，8 B" in browser.text(".board [aria-live]")
    assert browser.cut_off() == []
    browser.click("[data-language=en]")
    assert "dgx-h100, 8 B" in browser.text(".board [aria-live]")
    assert browser.run("location.hash").startswith("#step=0&")
    assert browser.cut_off() == []


def test_many_ranks_are_compared_without_a_stage(browser, page):
    browser.open(page("ring", "rabenseifner", size=70, network="fugaku", nbytes=8), "#lang=en")
    assert browser.run("document.querySelectorAll('canvas, .controls').length") == 0
    assert "rabenseifner finishes first" in browser.text(".board [aria-live]")
    browser.choose("#slider-bytes", "9")
    assert "1 GiB" in browser.text(".board [aria-live]")
    assert browser.complaints() == []
