"""Tests of the PyTorch backend; without torch there is nothing to test."""

from __future__ import annotations

from pathlib import Path

import pytest
from fault_ranks import the_fork_server

from leaks import nothing_is_left_behind  # noqa: F401 (for every test here)
from slow_folders import mark_slow

pytest.importorskip("torch")


@pytest.fixture(scope="session")
def fork_server():
    """The process that forks the ranks of fault tests; it starts before the first such test and outlives each."""
    yield the_fork_server()
    the_fork_server().close()


FAST = ("test_works.py", "test_groups.py")  # what `make check` runs of this folder; the rest takes minutes


def pytest_collection_modifyitems(items):
    mark_slow(items, Path(__file__).parent, but=FAST)
