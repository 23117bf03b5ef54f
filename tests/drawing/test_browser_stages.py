"""The geometry of the stage in a real browser: arcs go around cards, and every rank has its number."""

from __future__ import annotations

import pytest

from page_checks import View, checking, report

pytestmark = pytest.mark.slow

# The messages whose arcs enter a card, by more than a pixel, sampled along the path as the browser measures it.
CROSSING = """(() => {
    const stage = unisono.painter();
    const { places, form } = stage.plan;
    const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    const found = [];
    for (const message of unisono.scene.messages) {
        const { pieces } = stage.pathOf(message);
        const curves = pieces.map(({ bend, to }) => `Q${bend.x} ${bend.y} ${to.x} ${to.y}`);
        path.setAttribute('d', `M${pieces[0].from.x} ${pieces[0].from.y}${curves.join('')}`);
        const length = path.getTotalLength();
        for (let at = 0; at <= length; at += 2) {
            const { x, y } = path.getPointAtLength(at);
            const card = places.findIndex((place) =>
                Math.abs(x - place.x) < form.width / 2 - 1 && Math.abs(y - place.y) < form.height / 2 - 1);
            if (card >= 0) { found.push([message.src, message.dst, card]); break; }
        }
    }
    return found;
})()"""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("layout", ["nodes", "line", "grid", "tree"])
@pytest.mark.parametrize(("name", "options"), [("hierarchical", {"node": 4}), ("rabenseifner", {})])
def test_no_arc_crosses_the_card_of_a_rank(browser, written_page, name, options, layout, width):
    browser.set_up(width, 800)
    browser.open(written_page(name, size=8, **options), f"#layout={layout}")
    assert browser.run("unisono.scene.messages.length") > 0
    assert browser.run(CROSSING) == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("layout", ["ring", "grid", "nodes"])
def test_each_of_64_ranks_has_its_number(browser, written_page, layout, width):
    with checking(browser) as checker:
        checker.open(written_page("ring", size=64), View("en", width), link=f"#step=20&layout={layout}")
        texts = browser.run("pageChecks.marksOf(document.querySelector('#stage')).map(({ text }) => text)")
        assert [rank for rank in range(64) if not {str(rank), f"rank {rank}"} & set(texts)] == []
        if layout == "ring":
            assert report(checker.here()) == ""  # no number is cut off or covers another


def test_the_numbers_of_a_ring_of_many_ranks_are_outside_of_its_cells_and_messages(browser, written_page):
    browser.open(written_page("ring", size=64))
    far = "unisono.painter().plan.places.map(({ x, y, name: at = { x, y } }) => Math.hypot(at.x - %s, at.y - %s))"
    middle = browser.run("[unisono.painter().plan.middle.x, unisono.painter().plan.middle.y]")
    outside = browser.run("unisono.painter().plan.inner + unisono.painter().plan.form.height")
    assert min(browser.run(far % tuple(middle))) > outside
