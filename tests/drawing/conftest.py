"""Fixtures that write and record pages."""

from __future__ import annotations

import subprocess
import sys

import pytest

from launching import LIMIT_S
from shared_folders import made_once
from unisono import find
from unisono.cli.main import main
from unisono.drawing.gallery import INDEX, write_gallery
from unisono.drawing.page import Settings, write_page
from unisono.drawing.scene import scene_of

SLOW_RANK = """
import time, numpy as np, unisono
with unisono.connect() as comm:
    for step in range(5):
        time.sleep(0.040 if comm.rank == 2 else 0.002)
        comm.all_reduce(np.ones(1000 * comm.size, np.float32), algorithm="ring")
    comm.broadcast(np.ones(64), root=comm.size - 1, algorithm="tree")
    half = comm.split(comm.rank % 2)
    half.all_gather(np.ones(5 * half.size), np.ones(5), algorithm="ring")
"""


@pytest.fixture(scope="session")
def gallery(tmp_path_factory):
    """Write the gallery of three ranks once and return its index."""
    return made_once(tmp_path_factory, "gallery", lambda folder: write_gallery(folder, size=3)) / INDEX


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


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """Record a run with the given number of ranks, one of which is slow, and return its folder."""

    def record(size):
        def run(folder):
            (folder / "script.py").write_text(SLOW_RANK)
            words = ["run", "-n", str(size), "--trace", "run", "script.py"]
            done = subprocess.run(
                [sys.executable, "-m", "unisono", *words], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S
            )
            assert done.returncode == 0, done.stderr

        return made_once(tmp_path_factory, f"job{size}", run) / "run"

    return record


@pytest.fixture
def drawn(recorded, tmp_path):
    """Draw a recorded run like a user and return the page."""

    def draw(size, *words):
        page = tmp_path / "run.html"
        assert main(["draw", str(recorded(size)), "-o", str(page), "--no-open", *words]) == 0
        return page

    return draw
