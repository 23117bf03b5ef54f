"""The page of one algorithm, in a real browser."""

from __future__ import annotations

import pytest

from browser import DOWN, END, ESCAPE, HOME, LEFT, RIGHT
from builders import NAMES, written
from unisono import draw, find, play, prove
from unisono.algorithms import algorithm, one
from unisono.collectives import all_reduce
from unisono.collectives import find as find_collective
from unisono.drawing.page import write_page
from unisono.drawing.scene import example_inputs, scene_of
from unisono.schedule import recv_reduce, send

pytestmark = pytest.mark.slow

TABLE = """[...document.querySelectorAll('.contents tbody tr')].map(
    (row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent))"""


def contents(browser):
    """Return the contents of every rank, as shown on the page."""
    browser.run("document.querySelector('.contents').open = true")
    browser.wait_for("document.querySelectorAll('.contents tbody tr').length > 0")
    return browser.run(TABLE)


@pytest.mark.parametrize("name", NAMES)
def test_every_page_steps_to_its_end_and_shows_the_results_of_play(browser, written_page, name):
    schedule = find(name).schedule(5)
    browser.open(written_page(name, numbers=True))
    levels = browser.run("unisono.scene.levels")
    browser.press(*[RIGHT] * levels)
    assert browser.step() == levels == prove(schedule).levels
    rows = contents(browser)
    if find_collective(schedule.collective).carries_data:
        outputs = play(schedule, example_inputs(schedule)).outputs
        for rank, output in enumerate(outputs):
            held = find_collective(schedule.collective).held_after(rank, 5, schedule.chunks, schedule.root or 0)
            assert [rows[rank][slot] for slot in held] == [
                str(value) for value in (output if output is not None else [])
            ]
    else:
        assert rows == [["5"]] * 5  # every rank knows that all five have arrived
    assert browser.run("unisono.finish(1, 0)") == prove(schedule).rounds
    assert browser.complaints() == []


def test_the_four_rank_example_ends_with_its_four_sums(browser, written_page):
    browser.open(written_page("ring", size=4, numbers=True))
    browser.press(END)
    assert contents(browser) == [["6", "10", "14", "18"]] * 4


def test_a_step_is_described_and_announced(browser, written_page):
    browser.open(written_page("ring"), "#step=2")
    sentence = "Rank 2 sends a1+a2 to rank 3, which adds it to a3."
    assert sentence in browser.text(".said")
    assert browser.text(".story h2") == "Step 2 of 8 · reduce-scatter"
    assert sentence in browser.text("[aria-live=polite]")


def test_the_keyboard_plays_steps_and_selects_ranks(browser, written_page):
    browser.open(written_page("ring"))
    browser.press(RIGHT, RIGHT, RIGHT, LEFT)
    assert browser.step() == 2
    browser.press(END)
    assert browser.step() == 8
    browser.press(HOME, DOWN, DOWN)
    assert browser.step() == 0
    assert browser.run("unisono.state.get('rank')") == 1
    browser.press(ESCAPE)
    assert browser.run("unisono.state.get('rank')") is None
    browser.press("n")
    assert browser.run("unisono.state.get('numbers')") is True
    browser.press(" ")
    assert browser.run("unisono.state.get('playing')") is True
    assert browser.run("document.querySelector('#button-play').getAttribute('aria-label')") == "Pause"
    browser.press(" ")
    assert browser.run("unisono.state.get('playing')") is False


def test_the_buttons_are_usable_with_the_keyboard_alone(browser, written_page):
    browser.open(written_page("ring"))
    browser.run("document.querySelector('#button-forward').focus()")
    browser.press("\ue007")
    assert browser.step() == 1
    labels = browser.run(
        "[...document.querySelectorAll('button.round')].map((one) => one.getAttribute('aria-label'))"
    )
    assert labels == ["Go to start", "Previous step", "Play", "Next step", "Go to end"]


def test_a_link_reproduces_the_view_and_the_page_writes_such_links(browser, written_page):
    browser.open(written_page("ring"), "#step=3&rank=2")
    assert browser.step() == 3
    assert browser.run("document.querySelector('#rank').value") == "2"
    assert browser.run("document.querySelector('.code-line.here').textContent").strip().startswith("yield send(")
    browser.press(RIGHT)
    assert browser.run("location.hash") == "#step=4&rank=2"
    browser.run("(location.hash = '#step=6&rank=1&layout=line')")
    browser.wait_for("unisono.state.get('layout') === 'line'")
    assert browser.step() == 6


def test_a_page_drawn_with_a_step_and_a_rank_opens_there(browser, tmp_path):
    page = draw("ring", size=5, step=3, rank=2).save(tmp_path / "ring.html")
    browser.open(page)
    assert (browser.step(), browser.run("unisono.state.get('rank')")) == (3, 2)
    assert browser.text(".story h2") == "Step 3 of 8 · reduce-scatter"
    assert browser.run("unisono.state.link()") == "#step=3&rank=2"
    browser.open(page, "#step=5")  # a link comes first, so that it shows what it showed when it was copied
    assert (browser.step(), browser.run("unisono.state.get('rank')")) == (5, None)
    browser.open(page, "#lang=zh")
    assert (browser.step(), browser.run("unisono.state.get('lang')")) == (3, "zh")


def test_a_comparison_drawn_with_a_step_opens_there_by_step(browser, tmp_path):
    browser.open(draw("ring", "tree", size=8, step=4, rank=1).save(tmp_path / "compared.html"))
    assert browser.step() == 4
    assert browser.run("[unisono.state.get('by'), unisono.state.get('rank')]") == ["step", 1]


def test_invalid_values_in_a_link_are_ignored(browser, written_page):
    browser.open(written_page("ring"), "#step=99&rank=7&layout=spiral&lang=xx&numbers=maybe")
    assert browser.step() == 0
    assert browser.run("unisono.state.get('rank')") is None
    assert browser.run("unisono.state.get('layout')") == "ring"


def test_switching_the_language_translates_the_whole_page(browser, written_page):
    browser.open(written_page("ring"), "#step=2")
    browser.click("[data-language=zh]")
    assert browser.run("document.documentElement.lang") == "zh-CN"
    assert "rank 2 把 a1+a2 发给 rank 3，与后者的 a3 相加。" in browser.text(".said")
    browser.run("document.querySelectorAll('pre').forEach((one) => one.remove())")  # the program is not translated
    shown = browser.run("document.querySelector('#page').innerText")
    for english in ("Rank", "ranks", "sends", "Step", "step", "Facts", "Speed", "Layout", "added to"):
        assert english not in shown
    assert browser.run("location.hash") == "#step=2&lang=zh"
    browser.click("[data-language=en]")
    assert "Facts" in browser.text(".facts")


def test_a_phase_button_jumps_to_the_phase(browser, written_page):
    browser.open(written_page("ring"))
    assert browser.run("[...document.querySelectorAll('.phases button')].map((one) => one.textContent)") == [
        "reduce-scatter",
        "all-gather",
    ]
    browser.click(".phases button:nth-child(2)")
    assert browser.step() == 5
    assert browser.text(".phases button[aria-current]") == "all-gather"


def test_the_line_of_the_selected_rank_is_marked(browser, written_page):
    browser.open(written_page("rabenseifner", size=6), "#step=2&rank=0")
    assert "run backwards" in browser.text(".code")
    here = browser.run("[...document.querySelectorAll('.code-line.here')].map((one) => one.textContent.trim())")
    assert here == ["yield ("]
    on_the_way = browser.run("[...document.querySelectorAll('.on-the-way')].map((one) => one.textContent.trim())")
    assert on_the_way[0] == "yield from folded_all_reduce(halving_then_doubling, rank, size, core, chunks=core)"


def test_hovering_over_a_chunk_shows_its_expression_and_clicking_selects_the_rank(browser, written_page):
    from selenium.webdriver.common.action_chains import ActionChains

    browser.open(written_page("ring"), "#step=3")
    place = browser.run(
        "(() => { const box = document.querySelector('#stage').getBoundingClientRect();"
        "const middle = unisono.painter().middle(0, 1); return [box.left + middle.x, box.top + middle.y]; })()"
    )
    pointer = ActionChains(browser.driver, duration=0)
    pointer.w3c_actions.pointer_action.move_to_location(*map(int, place))
    pointer.perform()
    assert browser.text(".tip") == "rank 0 · chunk bb0+b2+b3+b4 = 13"
    pointer.w3c_actions.pointer_action.click()
    pointer.perform()
    assert browser.run("unisono.state.get('rank')") == 0


@pytest.mark.parametrize("layout", ["ring", "line", "tree", "grid", "nodes", "matrix"])
def test_every_layout_can_be_selected_and_is_not_blank(browser, written_page, layout):
    browser.open(written_page("hierarchical", size=6, node=4), "#step=2")
    browser.choose("#layout", layout)
    assert browser.run("unisono.state.get('layout')") == layout
    painted = browser.run(
        "(() => { const it = document.querySelector('#stage'); const pen = it.getContext('2d');"
        "return new Set(new Uint32Array(pen.getImageData(0, 0, it.width, it.height).data.buffer)).size; })()"
    )
    assert painted > 5  # colours
    assert [entry for entry in browser.complaints() if "willReadFrequently" not in entry] == []


def test_the_dark_theme_is_dark_and_can_be_selected(browser, written_page):
    browser.set_up(dark=True)
    browser.open(written_page("ring"))
    assert browser.run("document.documentElement.dataset.theme") == "dark"
    browser.choose("#theme", "light")
    assert browser.run("document.documentElement.dataset.theme") == "light"


def test_reduced_motion_shows_no_intermediate_frames(browser, written_page):
    browser.set_up(motion=True)
    browser.open(written_page("ring"))
    browser.press(RIGHT)
    assert 0 <= browser.step() < 1
    browser.wait_for("unisono.state.get('step') === 1")
    browser.set_up()
    browser.open(written_page("ring"))
    browser.press(RIGHT)
    assert browser.step() == 1


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_nothing_is_wider_than_the_window(browser, written_page, width):
    browser.set_up(width, 844)
    browser.open(written_page("hierarchical", size=8), "#step=5&lang=zh")
    assert browser.cut_off() == []


@algorithm(all_reduce, chunks=one)
def twice(rank, size):
    """Incorrect: the second exchange adds the sum again."""
    for _ in range(2):
        yield send(0, dst=rank ^ 1), recv_reduce(0, src=rank ^ 1)


def test_a_failing_program_opens_at_its_failure_and_shows_the_error(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(write_page([scene_of(twice.schedule(2), twice)], "twice"), encoding="utf-8")
    browser.open(path)
    assert browser.step() == 2  # it opens at the failure
    assert "step 2 of its program (step 2 on this page)." in browser.text(".said")
    assert "Not proved" in browser.text(".facts")
    assert "is counted twice" in browser.text(".facts")
    assert "The result is missing, wrong, or not the same everywhere." in browser.text(".said")
    assert contents(browser)[0] == ["2·a0+2·a1"]
    browser.click("[data-language=zh]")
    assert "未通过证明" in browser.text(".facts")
    assert "rank 0 的输入被重复计入" in browser.text(".facts")
    assert "counted" not in browser.text(".facts") + browser.text(".said")
    browser.press(HOME)
    assert browser.step() == 0


def test_code_in_an_error_is_shown_as_code(browser, tmp_path):
    @algorithm(all_reduce, chunks=one)
    def waits(rank, size):
        yield recv_reduce(0, src=(rank - 1) % size)
        yield send(0, dst=(rank + 1) % size)

    path = tmp_path / "page.html"
    path.write_text(write_page([scene_of(waits.schedule(2), waits)], "waits"), encoding="utf-8")
    browser.open(path)
    assert "`" not in browser.text(".facts") + browser.text(".said")
    assert browser.run("document.querySelector('.said code').textContent") == "recv_reduce 0 from 1"


@pytest.mark.parametrize("width", [1280, 1080, 390])
def test_the_description_of_a_step_is_next_to_the_stage(browser, written_page, width):
    """It is beside the stage, or below its bar on a phone, so that it is visible while the page plays."""
    browser.set_up(width, 800)
    browser.open(written_page("ring"), "#step=3")
    box = (
        "(() => {{ const {{ left, top, bottom }} = document.querySelector('{}').getBoundingClientRect(); "
        "return [left, top, bottom]; }})()"
    )
    stage, bar, said, facts = (browser.run(box.format(part)) for part in (".stage", ".controls", ".said", ".facts"))
    if width >= 1080:
        assert said[0] > stage[0]
        assert said[1] < 400
    else:
        assert said[1] > bar[2]
    assert facts[1] > said[1]


def test_a_schedule_in_text_form_shows_its_steps_beside_the_stage(browser, tmp_path):
    schedule = written("all_reduce", 1, "send 0 to 1; recv_reduce 0 from 1", "send 0 to 0; recv_reduce 0 from 0")
    path = tmp_path / "page.html"
    path.write_text(write_page([scene_of(schedule)], "text"), encoding="utf-8")
    browser.open(path, "#step=1&rank=1")
    assert browser.text(".code-line.here").strip() == "1: send 0 to 0; recv_reduce 0 from 0"


@pytest.mark.parametrize("size", [1, 2])
def test_one_and_two_ranks_are_drawn(browser, written_page, size):
    browser.open(written_page("ring", size=size))
    for layout in ("line", "tree", "grid", "nodes", "matrix", "ring"):
        browser.choose("#layout", layout)
    browser.press(END)
    assert browser.step() == 2 * (size - 1)
    assert browser.complaints() == []


def test_a_page_that_cannot_be_drawn_shows_an_error(browser, written_page):
    path = written_page("ring")
    path.write_text(path.read_text(encoding="utf-8").replace("new DecompressionStream", "new NoSuchThing"), "utf-8")
    browser.driver.get(path.as_uri())
    browser.wait_for("document.querySelector('.why') !== null")
    assert "needs a browser of 2023 or newer" in browser.text(".why")
    assert browser.complaints() != []


def test_above_64_ranks_a_matrix_shows_the_actions_of_the_ranks(browser, written_page):
    browser.open(written_page("ring", size=100), "#step=2&rank=7")
    assert browser.run("unisono.state.get('layout')") == "matrix"
    assert "Rank 7 sends chunk f to rank 8." in browser.text(".said")
    assert "Rank 7 receives chunk e from rank 6 and adds it." in browser.text(".said")
    browser.press(END)
    assert browser.step() == 198
    assert browser.run("unisono.finish(1, 0)") == 198
    assert browser.complaints() == []


@pytest.mark.parametrize(("name", "peer", "levels"), [("recursive_doubling", 1022, 10), ("tree", 511, 20)])
def test_a_matrix_has_room_for_1024_ranks(browser, written_page, name, peer, levels):
    browser.open(written_page(name, size=1024), "#step=1&rank=1023")
    assert browser.run("unisono.state.get('layout')") == "matrix"
    assert f"Rank 1023 sends chunk a to rank {peer}." in browser.text(".said")
    browser.press(END)
    assert browser.step() == levels
    assert browser.run("unisono.finish(1, 0)") == levels
    assert browser.complaints() == []


def test_the_frame_in_a_notebook_works(browser, tmp_path):
    from unisono import draw

    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><body>{draw('ring', size=3)._repr_html_()}</body>", encoding="utf-8")
    browser.driver.get(path.as_uri())
    browser.driver.switch_to.frame(0)
    browser.wait_for("document.documentElement.dataset.ready === 'true'")
    browser.press(RIGHT)
    browser.run("unisono.player.forward()")
    assert browser.step() >= 1
    browser.driver.switch_to.default_content()
    assert [entry for entry in browser.complaints() if "SEVERE" in entry] == []


@pytest.mark.parametrize(
    ("name", "said"),
    [("all_reduce/ring", "ranks summed so far"), ("broadcast/tree", "source rank"),
     ("barrier/tree", "ranks known to have arrived")],
)  # fmt: skip
def test_the_display_option_of_cells_is_named_after_the_collective(browser, written_page, name, said):
    browser.open(written_page(name, size=3, root=0 if name.startswith("broadcast") else None))
    assert browser.text("#labels option") == said


@pytest.mark.parametrize("link", ["#lang=constructor", "#lang=__proto__&step=1e308&rank=1e9", "#step=NaN&rank=-1"])
def test_an_invalid_link_still_opens_the_page(browser, written_page, link):
    path = written_page("ring", size=3)
    browser.open(path, link)
    assert browser.text("h1").startswith("all-reduce")
