"""One browser for all tests of the page."""

from __future__ import annotations

import pytest

import browser as driving
from unisono import find
from unisono.drawing.page import Settings, write_page
from unisono.drawing.scene import scene_of


@pytest.fixture(scope="session")
def one_browser(tmp_path_factory):
    if not driving.is_there():
        pytest.skip(driving.MISSING)
    with driving.running(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def browser(one_browser):
    one_browser.set_up()
    return one_browser


@pytest.fixture
def written_page(tmp_path):
    """Write the page of some algorithms to a file."""

    def write(*names, size=5, root=None, numbers=False, **options):
        found = [find(name) for name in names]
        scenes = [scene_of(algorithm.schedule(size, root, **options), algorithm) for algorithm in found]
        path = tmp_path / "page.html"
        path.write_text(write_page(scenes, "page", Settings(numbers=numbers)), encoding="utf-8")
        return path

    return write
