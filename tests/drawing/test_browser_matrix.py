"""The matrix: a row for each rank, a column for each chunk, coloured by the number of ranks that are summed."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

CASES = [
    ("ring", 7, {}),
    ("rabenseifner", 13, {}),
    ("hierarchical", 6, {"node": 2}),
    ("all_to_all/bruck", 5, {}),
    ("reduce_scatter/pat", 8, {}),
    ("broadcast/scatter_all_gather", 3, {}),
    ("gather/tree", 8, {}),
    ("barrier/dissemination", 6, {}),
    ("ring", 1, {}),
    ("tree", 2, {}),
]
# What the matrix counts against the expressions of the stage, on every level forwards and then backwards.
COMPARED = """(() => {
    const { scene } = unisono;
    const { holdings } = unisono.painter();
    const { reduces, carries_data } = scene.collective;
    const wrong = [];
    const levels = Array.from({ length: scene.levels + 1 }, (_, level) => level);
    for (const level of [...levels, ...levels.toReversed()]) {
        const held = Array.from(holdings.at(level));
        const expected = scene.steps.flatMap((steps, rank) => {
            const done = steps.filter((step) => step.level <= level).length;
            return scene.rows[rank][done].map((cell) => {
                if (!cell) return 0;
                const ranks = cell.ranks.toString(2);
                return reduces || !carries_data ? ranks.replaceAll("0", "").length : ranks.length;
            });
        });
        if (held.join() !== expected.join()) wrong.push([level, held.join(), expected.join()]);
    }
    return wrong;
})()"""
# The texts that a redrawing of the matrix writes: [text, left, top, right, bottom].
WRITTEN = """(() => {
    const pen = document.querySelector("#stage").getContext("2d");
    const found = [];
    pen.fillText = function (text, x, y) {
        const { actualBoundingBoxLeft, actualBoundingBoxRight, actualBoundingBoxAscent, actualBoundingBoxDescent } =
            this.measureText(text);
        found.push([text, x - actualBoundingBoxLeft, y - actualBoundingBoxAscent,
                    x + actualBoundingBoxRight, y + actualBoundingBoxDescent]);
    };
    unisono.painter().draw(null, unisono.state.get("step"));
    delete pen.fillText;
    return found;
})()"""


def overlapping(boxes):
    """Return the pairs of texts whose boxes overlap."""
    return [
        (one[0], other[0])
        for at, one in enumerate(boxes)
        for other in boxes[at + 1 :]
        if one[1] < other[3] and other[1] < one[3] and one[2] < other[4] and other[2] < one[4]
    ]


@pytest.mark.parametrize(("name", "size", "options"), CASES, ids=[f"{name}-{size}" for name, size, _ in CASES])
def test_the_matrix_counts_what_the_stage_shows(browser, written_page, name, size, options):
    browser.open(written_page(name, size=size, **options), "#layout=matrix")
    assert browser.run(COMPARED) == []


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
@pytest.mark.parametrize(("name", "size"), [("ring", 64), ("tree", 64), ("ring", 100), ("all_to_all/pairwise", 64)])
def test_every_rank_has_its_number_and_no_names_overlap(browser, written_page, name, size, width, height):
    browser.set_up(width, height)
    browser.open(written_page(name, size=size), "#layout=matrix&step=3")
    written = browser.run(WRITTEN)
    numbers = [text for text, *_ in written if text.isdecimal()]
    assert {f"{rank}" for rank in range(size)} <= set(numbers)
    assert overlapping(written) == []
    room = browser.run("unisono.painter().room")
    for text, left, top, right, bottom in written:
        assert 0 <= left < right <= room["width"], text
        assert 0 <= top < bottom <= room["height"], text


def test_darker_cells_hold_more_addends_and_the_legend_says_so(browser, written_page):
    browser.open(written_page("ring", size=64), "#layout=matrix&step=40&lang=en")
    legend = browser.text(".legend")
    assert "64 ranks summed in the chunk" in legend
    assert "all ranks summed" in legend
    assert "one column for each chunk" in legend
    shades = browser.run(
        "(() => { const it = document.querySelector('#stage'); const pen = it.getContext('2d');"
        "const matrix = unisono.painter(); const held = matrix.holdings.at(40);"
        "return [...new Set(held)].map((count) => { const cell = held.indexOf(count);"
        "const { x, y } = matrix.middle(Math.floor(cell / 64), cell % 64);"
        "const [r, g, b] = pen.getImageData(Math.round(x), Math.round(y), 1, 1).data;"
        "return [count, r + g + b]; }); })()"
    )
    shades = [brightness for _, brightness in sorted(shades)]
    assert len(shades) == 41  # sums of 1 to 41 ranks
    assert shades == sorted(shades, reverse=True)
    assert shades[0] - shades[-1] > 150
    browser.run("unisono.state.set({ lang: 'zh' })")
    assert "64 个 rank 已累加到该块" in browser.text(".legend")


@pytest.mark.parametrize(
    ("name", "step", "language", "said"),
    [
        # Chunk 27 starts on rank 28 and has made twelve hops.
        ("ring", 12, "en", ["rank 40 · chunk ab", "the sum over 13 of 100 ranks"]),
        ("ring", 12, "zh", ["rank 40 · 块 ab", "100 个 rank 中 13 个之和"]),
        ("ring", 11, "en", ["rank 40 · chunk ab", "the sum over 1 of 100 ranks"]),
        ("all_gather/ring", 13, "en", ["rank 40 · chunk ab", "from rank 27"]),
        ("all_gather/ring", 12, "en", ["rank 40 · chunk ab", "nothing"]),
        ("barrier/dissemination", 4, "en", ["rank 40 · chunk a", "knows of 16 of 100 ranks"]),
    ],
)
def test_hovering_over_a_cell_tells_what_it_holds(browser, written_page, name, step, language, said):
    from selenium.webdriver.common.action_chains import ActionChains

    browser.open(written_page(name, size=100), f"#step={step}&lang={language}")
    slot = browser.run(
        "(({ parts }) => (parts.at(-1).count > 27 ? parts.at(-1).first + 27 : parts.at(-1).first))(unisono.scene)"
    )
    x, y = browser.run(
        "(() => { const box = document.querySelector('#stage').getBoundingClientRect();"
        "const { x, y } = unisono.painter().middle(40, arguments[0]); return [box.left + x, box.top + y]; })()",
        slot,
    )
    pointer = ActionChains(browser.driver, duration=0)
    pointer.w3c_actions.pointer_action.move_to_location(int(x), int(y))
    pointer.perform()
    assert browser.run("[...document.querySelector('.tip').children].map((one) => one.textContent)") == said
