"""Tests of the PyTorch backend; without torch there is nothing to test."""

from __future__ import annotations

from pathlib import Path

import pytest
from fault_ranks import the_nursery

from leaks import nothing_is_left_behind  # noqa: F401 (for every test here)
from slow_folders import mark_slow

pytest.importorskip("torch")


@pytest.fixture(scope="session")
def nursery():
    """The process that ranks of tests of faults come from: there before such a test begins, and after it."""
    yield the_nursery()
    the_nursery().close()


QUICK = ("test_works.py", "test_groups.py")  # what `make check` runs of this folder; the rest takes minutes


def pytest_collection_modifyitems(items):
    mark_slow(items, Path(__file__).parent, but=QUICK)
