from __future__ import annotations

from pathlib import Path

import pytest

from leaks import nothing_is_left_behind  # noqa: F401 (for every test here)
from slow_folders import mark_slow

pytest.importorskip("torch")

# What `make check` runs of this folder; the rest takes minutes.
FAST = (
    "test_buckets.py", "test_docstrings.py", "test_functions.py", "test_mesh.py", "test_parallel_group.py",
    "test_routing.py", "test_shares.py", "test_tensor.py", "test_zero_collectives.py",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    mark_slow(items, Path(__file__).parent, but=FAST)
