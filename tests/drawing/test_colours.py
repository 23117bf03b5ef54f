"""The colours of pages have the contrasts of WCAG AA, light and dark; the browser measures texts (tools/in_page)."""

from __future__ import annotations

import re

import pytest

from unisono.drawing.page import asset

GROUNDS = ("surface", "paper", "cell", "empty", "node")
# Marks that carry meaning, with what they are drawn on. The colours of ranks are not among them: the position of a
# segment says the same, and the table of contents says it in words.
MARKS = {
    "faint": ("surface", "paper"),  # edges of controls, marks in the legend
    "reduce": GROUNDS,
    "copy": GROUNDS,
    "wrong": (*GROUNDS, "wrong-paper"),
    "done-line": (*GROUNDS, "done"),
    "accent": (*GROUNDS, "here", "on-the-way"),
    "ink": (*GROUNDS, "done", "here", "on-the-way"),
    **{f"series-{name}": ("surface", "paper") for name in ("blue", "orange", "green", "purple", "brown", "pink")},
}
TEXTS = {
    "ink": (*GROUNDS, "done", "here", "on-the-way", "wrong-paper"),
    "muted": (*GROUNDS, "done", "here", "on-the-way"),
    **dict.fromkeys(("code-string", "code-keyword", "code-op"), ("surface", "on-the-way")),
}


def themes():
    """Return the colours of each theme by name."""
    text = asset("common/colours.css")
    parts = re.split(r':root\[data-theme="dark"\]', text)
    found = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", part)) for part in parts]
    return dict(zip(("light", "dark"), found, strict=True))


def luminance(colour):
    """Return the relative luminance of a colour, as WCAG defines it."""
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def too_weak(colours, pairs, needed):
    """Return the pairs of colours with less contrast than needed."""
    measured = {(front, back): contrast(colours[front], colours[back]) for front, on in pairs.items() for back in on}
    return {pair: round(ratio, 2) for pair, ratio in measured.items() if ratio < needed}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("pairs", "needed"), [(MARKS, 3), (TEXTS, 4.5)], ids=["marks", "texts"])
def test_marks_and_texts_can_be_seen_on_what_they_are_drawn_on(theme, pairs, needed):
    assert too_weak(themes()[theme], pairs, needed) == {}


def test_every_colour_has_a_light_and_a_dark_value():
    light, dark = themes().values()
    assert light.keys() == dark.keys()


def test_the_contrast_of_black_and_white_is_21_and_a_weak_colour_is_found():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # the well-known grey just below 4.5
    assert too_weak({"grey": "#777777", "white": "#ffffff"}, {"grey": ("white",)}, 4.5) == {("grey", "white"): 4.48}
