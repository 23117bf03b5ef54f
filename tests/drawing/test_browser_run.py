"""The page of a real run, in a real browser: recorded here, with a deliberately slow rank."""

from __future__ import annotations

import dataclasses
import re

import pytest

from browser import END, HOME, LEFT, RIGHT
from stories import group, ring_of_three
from stories import run as story
from unisono.drawing.runs import write_run_page
from unisono.message import translated
from unisono.tracing import read_run
from unisono.tracing.critical_path import critical_path
from unisono.tracing.narration import describe_stretch
from unisono.tracing.run import Transfer
from watching import show, wait_for_call

pytestmark = pytest.mark.slow

DONE = """(() => { const { scene } = unisono.replay.shown(); const { states } = unisono.replay.view();
    return scene.goals.every((goal, rank) => [...goal].every(([slot, want]) => {
      const cell = scene.rows[rank][states[rank]][slot];
      return cell && cell.origin === want.origin && cell.ranks === want.ranks; })); })()"""


def colours_in_row(browser, rank):
    """Return the colour of the first pixels of a row on the timeline: its mark."""
    return browser.run(
        "(() => { const { timeline } = unisono; const pen = timeline.canvas.getContext('2d');"
        "const y = Math.round((timeline.y(arguments[0]) + timeline.row / 2) * timeline.ratio);"
        "return [...pen.getImageData(2, y, 1, 1).data].join(); })()",
        rank,
    )


def test_the_slow_rank_is_named_in_both_languages_and_its_row_is_marked(browser, drawn, capsys):
    page = drawn(4)
    assert "Rank 2 was slow" in capsys.readouterr().out
    show(browser, page)
    assert browser.run("document.querySelector('h1').firstChild.textContent") == "Rank 2 was slow"
    assert re.fullmatch(r"The others waited \d+ ms for it in \d of 8 calls\.", browser.text(".tale"))
    assert "It entered its calls late" in browser.text(".idea")
    rows = [colours_in_row(browser, rank) for rank in range(4)]
    assert len({*rows[:2], rows[3]}) == 1
    assert rows[2] != rows[0]
    assert browser.text(".heat-table th.slow") in ("2", "rank 2")
    browser.click("[data-language=zh]")
    assert browser.run("document.querySelector('h1').firstChild.textContent") == "rank 2 较慢"
    shown = browser.run("document.querySelector('#page').innerText")
    for english in ("Rank", "ranks", "call", "waited", "Timeline", "slow", "Speed", "path"):
        assert english not in shown.replace("all_reduce", "").replace("broadcast", ""), english
    assert [one for one in browser.complaints() if "willReadFrequently" not in one] == []


@pytest.mark.parametrize("size", [3, 4, 5])
def test_every_replay_ends_in_the_state_that_its_collective_requires(browser, drawn, size):
    show(browser, drawn(size))
    assert "Rank 2" in browser.text("h1")
    count = browser.run("unisono.open.group().calls.length")
    assert count >= 6  # and the calls that split() needs
    for number in range(1, count + 1):
        wait_for_call(browser, number)
        browser.press(HOME)
        assert not browser.run(DONE)
        browser.press(END)
        assert browser.run(DONE)
        assert "The call is finished" in browser.text(".story .said")
        browser.press("n")
    assert browser.complaints() == []


def test_the_playhead_is_the_same_on_the_timeline_and_on_the_stage(browser, drawn):
    browser.set_up(motion=True)
    show(browser, drawn(4), "#call=2")
    begin, end = browser.run("[unisono.open.call().begin, unisono.open.call().end]")
    assert browser.run("unisono.open.now()") == begin
    browser.press(" ")
    browser.wait_for("unisono.state.get('step') > 5")
    browser.press(" ")
    now, step = browser.run("[unisono.open.now(), unisono.state.get('step')]")
    assert begin < now < end
    assert browser.run("unisono.open.now() === unisono.timeline.look().now")
    assert float(browser.run("document.querySelector('#position').value")) == pytest.approx(step)
    browser.press(RIGHT)
    later = browser.run("unisono.open.now()")
    assert later > now
    browser.press(LEFT, LEFT)
    assert browser.run("unisono.open.now()") < later
    browser.press(END)
    assert browser.run("unisono.open.now()") == end


def test_waiting_ranks_and_absent_ranks_are_described(browser, drawn):
    show(browser, drawn(4))
    columns = browser.run("unisono.open.group().columns")
    came = list(zip(columns["entered_call"], columns["entered_begin"], columns["entered_rank"], strict=True))
    calls = [sorted(entry[1:] for entry in came if entry[0] == call) for call in range(5)]
    # The call that the slow rank entered last by the largest margin: on a busy machine other ranks are late too.
    late_ns = [last - before if rank == 2 else 0 for *_, (before, _), (last, rank) in calls]
    chosen = late_ns.index(max(late_ns))
    browser.choose("#call", str(chosen))
    wait_for_call(browser, chosen + 1)
    moment = calls[chosen][-1][0] - 0.05 * late_ns[chosen]  # shortly before it enters
    browser.run("unisono.player.go(unisono.replay.positionAt(arguments[0]))", moment)
    said = browser.text(".story .said")
    assert "Rank 2 has not entered the call yet." in said
    assert "Rank 3 waits for rank 2." in said
    assert browser.run("unisono.replay.view().away") == [2]
    assert said in browser.text(".story [aria-live=polite]")


def test_calls_are_selected_by_key_list_and_click_on_the_timeline(browser, drawn):
    from selenium.webdriver.common.action_chains import ActionChains

    show(browser, drawn(4))
    browser.press("n", "n", "p")
    wait_for_call(browser, 2)
    browser.choose("#call", "4")
    wait_for_call(browser, 5)
    assert "Replay of call 5: all_reduce/ring" in browser.text(".replay h2")
    x, y = browser.run(
        "(() => { const { timeline, open } = unisono; const box = timeline.canvas.getBoundingClientRect();"
        "const call = open.group().calls[2];"
        "return [box.left + timeline.x((call.begin + call.end) / 2), box.top + timeline.y(1) + 10]; })()"
    )
    pointer = ActionChains(browser.driver, duration=0)
    pointer.w3c_actions.pointer_action.move_to_location(int(x), int(y)).click()
    pointer.perform()
    wait_for_call(browser, 3)
    middle = browser.run("(unisono.open.call().begin + unisono.open.call().end) / 2")
    span = browser.run("unisono.open.call().end - unisono.open.call().begin")
    assert abs(browser.run("unisono.open.now()") - middle) < 0.1 * span
    assert browser.run("unisono.state.get('rank')") == 1
    assert "rank 1 waits for" in browser.text(".timeline .tip")


def test_the_page_of_a_long_run_states_which_part_is_drawn(browser, tmp_path):
    calls = [ring_of_three(late=1, at=5000 * number, number=number + 1) for number in range(60)]
    page = tmp_path / "long.html"
    page.write_text(write_run_page(story(group(3, *calls)), most_events=200).html, encoding="utf-8")
    show(browser, page)
    assert "Calls 1 to 40 of 60 are drawn" in browser.text(".run-notes")
    assert browser.run("document.querySelectorAll('#call option').length") == 40
    assert "in 60 of 60 calls" in browser.text(".tale")


def test_a_link_reproduces_the_view(browser, drawn):
    page = drawn(4)
    show(browser, page, "#call=3&at=42&rank=1&lang=zh")
    assert browser.run("[unisono.open.call().number, unisono.state.get('step'), unisono.state.get('rank')]") == [
        3,
        42,
        1,
    ]
    assert "第 3 次" in browser.text(".replay h2")
    browser.click("#fit-call")
    link = browser.run("location.hash")
    assert re.fullmatch(r"#call=3&at=42&from=[\d.]+&to=[\d.]+&rank=1&lang=zh", link)
    before = browser.run("[unisono.timeline.look().range, unisono.open.now()]")
    show(browser, page, link)
    (there, now), (was, then) = browser.run("[unisono.timeline.look().range, unisono.open.now()]"), before
    assert (there["from"], there["to"], now) == pytest.approx((was["from"], was["to"], then), abs=1)  # a nanosecond
    show(browser, page, "#call=99&at=1000&comm=9&rank=77&from=5&to=1&lang=xx")
    assert browser.run("[unisono.open.call().number, unisono.state.get('step'), unisono.state.get('from')]") == [
        1,
        0,
        None,
    ]


def test_the_critical_path_reads_as_in_the_terminal(browser, tmp_path):
    calls = [ring_of_three(late=number % 3, at=5000 * number, number=number + 1) for number in range(4)]
    made = group(3, *calls)
    page = tmp_path / "story.html"
    page.write_text(write_run_page(story(made)).html, encoding="utf-8")
    for language in ("en", "zh"):
        show(browser, page, f"#call=2&lang={language}")
        found = browser.run(
            "[...document.querySelectorAll('.path-list li')].map((one) => one.textContent.replaceAll('\\u00a0', ' '))"
        )
        wanted = [describe_stretch(stretch, calls[1], made) for stretch in critical_path(calls[1])]
        assert found == [translated(sentence, language) for sentence in wanted]
    assert "无法重放这次调用：跟踪记录中没有它的调度" in browser.text(".why-not")
    assert not browser.run("document.querySelector('#stage').offsetParent")


def test_one_of_several_communicators_can_be_selected(browser, drawn):
    show(browser, drawn(5))
    assert browser.run("document.querySelectorAll('#communicator option').length") == 3
    browser.choose("#communicator", "1")
    browser.wait_for("unisono.open.group().size < 5")
    names = browser.run("unisono.open.group().names")
    assert names in (["0", "2", "4"], ["1", "3"])
    browser.wait_for("document.querySelector('.replay h2').textContent.includes('all_gather')")
    browser.press(END)
    assert browser.run(DONE)
    assert browser.complaints() == []


def test_a_table_shows_waits_by_peer_or_by_cause(browser, drawn):
    show(browser, drawn(4))
    strong = """[...document.querySelectorAll('.heat-table tbody tr')].map(
        (row) => [...row.querySelectorAll('td')].findIndex((cell) => cell.classList.contains('strong')))"""
    assert browser.run(strong) == [2, 2, -1, 2]  # all because of rank 2
    browser.click("[data-table=waited]")
    assert browser.run(strong)[:2] == [3, 0]  # each for its neighbour
    assert "because of it" in browser.text(".pairs")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_of_a_run_is_not_wider_than_the_window(browser, drawn, width):
    browser.set_up(width, 844, dark=width == 390)
    show(browser, drawn(4), f"#call=2&at=60&lang={'zh' if width == 390 else 'en'}")
    assert browser.cut_off() == []


def test_a_run_with_a_rank_without_a_trace_is_drawn_with_the_other_ranks(browser, recorded, tmp_path):
    found = read_run(recorded(3))
    whole = max(found.communicators, key=lambda one: one.size)
    for call in whole.calls:
        call.ranks.pop(1)
    whole.job_ranks.pop(1)
    page = tmp_path / "missing.html"
    page.write_text(write_run_page(found).html, encoding="utf-8")
    show(browser, page)
    assert "There is no trace of rank 1" in browser.text(".run-notes")
    assert "not all ranks recorded it" in browser.text(".why-not")
    browser.press(" ", RIGHT, END, "n", "k")
    assert browser.complaints() == []


def test_a_run_without_collectives_shows_arrows_and_no_calls(browser, tmp_path):
    sent, got = Transfer(0, 2, True, 0, 8, 1, 500, 600), Transfer(2, 0, False, 0, 8, 1, 450, 900)
    page = tmp_path / "run.html"
    page.write_text(write_run_page(story(dataclasses.replace(group(3), transfers=[sent, got]))).html)
    show(browser, page)
    assert browser.run("unisono.open.group().transferPairs") == [[0, 1]]
    browser.press("n", "p", "c", "k", "a", " ", RIGHT)
    assert browser.complaints() == []


def test_names_in_a_trace_are_shown_as_plain_text(browser, tmp_path):
    name = "</script><b id=in>\u2028<!--<img src=x onerror=alert(1)>\ud800\"'&amp;"
    calls = [dataclasses.replace(ring_of_three(number=one, at=1000 * one), algorithm=name) for one in (1, 2)]
    page = tmp_path / "run.html"
    page.write_text(write_run_page(story(group(3, *calls))).html, encoding="utf-8")
    show(browser, page)
    assert browser.run("document.getElementById('in')") is None
    assert "</script><b id=in>" in browser.text("#page")
    assert browser.complaints() == []
