"""The page of a plan in a browser: it fits a phone, in both languages, light and dark."""

from __future__ import annotations

import pytest

from unisono import plan
from unisono.planner import what_would_change
from unisono.planner.page import save_page


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = plan("layers=4,hidden=256,heads=8,vocabulary=1000,sequence=512,experts=4", gpus=16, tokens="64K")
    return save_page(tmp_path_factory.mktemp("plan") / "plan.html", found, what_would_change(found))


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_nothing_is_wider_than_the_window(browser, path, width, language):
    browser.set_up(width, 900, dark=language == "zh-CN")
    browser.open(path)
    browser.click(f'[data-language="{language}"]')
    assert browser.run("document.documentElement.lang") == language
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []
