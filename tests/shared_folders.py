"""Folders that one process of the tests fills and all of them read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

LIMIT_S = 900


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that ``make`` has filled, in this process or in another one of the same session."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    done, failed = folder / ".done", folder / ".failed"
    try:
        folder.mkdir()
    except FileExistsError:
        end = time.monotonic() + LIMIT_S
        while not done.exists():
            assert not failed.exists(), f"another process could not fill {folder}; its test has the reason"
            assert time.monotonic() < end, f"another process has not filled {folder}"
            time.sleep(0.05)
        return folder
    try:
        make(folder)
    except BaseException:
        failed.touch()
        raise
    done.touch()
    return folder
