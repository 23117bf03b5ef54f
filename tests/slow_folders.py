"""Folders of slow tests: `make check` runs a few of their files, `make test` all of them."""

from __future__ import annotations

from collections.abc import Container, Iterable
from pathlib import Path

import pytest


def mark_slow(items: Iterable[pytest.Item], folder: Path, but: Container[str]) -> None:
    """Mark the tests of a folder as slow, except those in some files."""
    for item in items:
        if item.path.parent == folder and item.path.name not in but:
            item.add_marker(pytest.mark.slow)
