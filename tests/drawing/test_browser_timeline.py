"""The timeline of a real run, in a real browser: zooming and panning with keys, wheel, mouse and fingers."""

from __future__ import annotations

import dataclasses

import pytest

from browser import RIGHT
from stories import group, ring_of_three
from stories import run as story
from unisono.drawing.runs import write_run_page
from unisono.tracing.run import Transfer
from watching import show, wait_for_call

pytestmark = pytest.mark.slow


def test_keys_and_buttons_zoom_and_pan(browser, drawn):
    show(browser, drawn(4), "#call=2")
    span = "(() => { const { from, to } = unisono.timeline.look().range; return to - from; })()"
    whole = browser.run(span)
    browser.press("+")
    near = browser.run(span)
    assert near == pytest.approx(whole / 1.5)
    before = browser.run("unisono.state.get('from')")
    browser.press_with_shift(RIGHT)
    assert browser.run("unisono.state.get('from')") == pytest.approx(before + 0.2 * near)
    browser.press("-", "-")
    assert browser.run("unisono.state.get('from')") is None
    browser.click("#fit-call")
    call = browser.run("unisono.open.call().end - unisono.open.call().begin")
    assert call < browser.run(span) < 1.1 * call
    browser.press("n")
    wait_for_call(browser, 3)
    assert browser.run("unisono.state.get('from') < unisono.open.call().begin")  # the window follows the call
    browser.press("a")
    assert browser.run(span) == whole


def test_a_path_fills_the_window_without_the_wait_for_the_late_rank(browser, tmp_path):
    page = tmp_path / "late.html"
    page.write_text(write_run_page(story(group(3, ring_of_three(late=1, late_ns=50_000)))).html, encoding="utf-8")
    show(browser, page)
    browser.press("k")
    shown = browser.run("unisono.timeline.look().range")
    assert 49_800 < shown["from"] < 50_000  # when it enters
    assert 50_030 < shown["to"] < 50_230  # after three ops


def test_the_wheel_zooms_towards_the_pointer_and_dragging_pans(browser, drawn):
    from selenium.webdriver.common.action_chains import ActionChains

    show(browser, drawn(4))
    x, y = browser.run(
        "(() => { const { timeline } = unisono; const box = timeline.canvas.getBoundingClientRect();"
        "return [box.left + timeline.left + timeline.width / 4, box.top + timeline.y(1)].map(Math.round); })()"
    )
    under = (
        "(() => { const { timeline } = unisono;"
        "return timeline.momentAt(arguments[0] - timeline.canvas.getBoundingClientRect().left); })()"
    )
    before = browser.run(under, x)
    for turned in (100, -100):  # zoom out, which has no effect at first, and in
        browser.run(
            "unisono.timeline.canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: arguments[0], "
            "clientX: arguments[1], clientY: arguments[2], cancelable: true }))",
            turned, x, y,
        )  # fmt: skip
        # Turns in one frame are added up, and these two would cancel each other.
        browser.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    browser.wait_for("unisono.state.get('from') !== null")  # at the next frame
    span = browser.run("unisono.timeline.look().range.to - unisono.timeline.look().range.from")
    assert browser.run(under, x) == pytest.approx(before, abs=1e-3 * span)
    pointer = ActionChains(browser.driver, duration=0)
    finger = pointer.w3c_actions.pointer_action
    finger.move_to_location(x, y).pointer_down().move_to_location(x + 40, y).pointer_up()
    pointer.perform()
    assert browser.run(under, x + 40) == pytest.approx(before, abs=1e-3 * span)
    assert browser.run("unisono.open.call().number") == 1  # this was not a click


def test_two_fingers_zoom_and_the_moments_under_them_stay_in_place(browser, drawn):
    show(browser, drawn(4))
    left, y, width = browser.run(
        "(() => { const { timeline } = unisono; const box = timeline.canvas.getBoundingClientRect();"
        "return [box.left + timeline.left, box.top + timeline.y(1) + 5, timeline.width]; })()"
    )
    shown = "[unisono.timeline.look().range.from, unisono.timeline.look().range.to]"
    (begin, end), number = browser.run(shown), browser.run("unisono.open.call().number")

    def touch(kind, *parts):
        points = [{"x": left + part * width, "y": y, "id": finger} for finger, part in enumerate(parts)]
        browser.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 0.4)
    touch("touchStart", 0.4, 0.6)
    for apart in (0.15, 0.2, 0.25):
        touch("touchMove", 0.5 - apart, 0.5 + apart)
    touch("touchEnd")
    wanted = (end - begin) * 0.2 / 0.5
    browser.wait_for(f"Math.abs({shown}[1] - {shown}[0] - {wanted}) < {0.02 * wanted}")
    first, last = browser.run(shown)
    assert (first + last) / 2 == pytest.approx((begin + end) / 2, abs=0.02 * (end - begin))
    assert browser.run("unisono.open.call().number") == number  # this was not a click
    assert browser.complaints() == []


def test_the_page_states_that_there_are_too_many_transfers_for_arrows(browser, tmp_path):
    pairs = [
        one
        for number in range(1, 701)
        for one in (
            Transfer(0, 2, True, 0, 8, number, 100 * number, 100 * number + 20),
            Transfer(2, 0, False, 0, 8, number, 100 * number, 100 * number + 50),
        )
    ]
    made = dataclasses.replace(group(3, ring_of_three(late=1)), transfers=pairs)
    page = tmp_path / "pairs.html"
    page.write_text(write_run_page(story(made)).html, encoding="utf-8")
    show(browser, page)
    assert "700 pairs of send and recv are too many for arrows" in browser.text(".timeline-bar .note")
    show(browser, page, "#lang=zh")
    assert browser.text(".timeline-bar .note") == "共有 700 对 send 与 recv，太多而无法画出箭头。放大后可看到。"
    browser.press("+")
    browser.wait_for("document.querySelector('.timeline-bar .note').textContent === ''")
    assert 100 < browser.run("unisono.timeline.transfers.shown") < 500


def test_many_wheel_events_cause_one_repaint(browser, drawn):
    show(browser, drawn(3))
    painted = browser.driver.execute_async_script("""
        const done = arguments[0];
        const { timeline } = unisono;
        const paint = timeline.paintBase.bind(timeline);
        let count = 0;
        timeline.paintBase = (look) => { count += 1; paint(look); };
        const box = timeline.canvas.getBoundingClientRect();
        const at = { clientX: box.left + 500, clientY: box.top + 60, deltaY: -100, bubbles: true, cancelable: true };
        for (let turn = 0; turn < 8; turn++) timeline.canvas.dispatchEvent(new WheelEvent("wheel", at));
        requestAnimationFrame(() => requestAnimationFrame(() => {
          const { from, to } = timeline.look().range;
          done([count, (to - from) / unisono.open.group().end]);
        }));
    """)
    assert painted[0] == 1
    assert painted[1] < 0.1  # all of them count: e^(-8/3)
