"""Real ranks for the tests of the communicator."""

from __future__ import annotations

import tempfile

import pytest

from leaks import Leaks
from rank_pool import RankPool


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(tmp_path_factory, monkeypatch):
    """Every test here: no process, descriptor, shared memory or temporary file is left."""
    own = str(tmp_path_factory.mktemp("temporary"))
    monkeypatch.setenv("TMPDIR", own)
    monkeypatch.setattr(tempfile, "tempdir", own)
    leaks = Leaks()
    yield
    leaks.check()


@pytest.fixture(scope="module")
def pools():
    """Pools of ranks, by size."""
    made = {size: RankPool(size) for size in (1, 2, 3, 5, 8)}
    yield made
    for pool in made.values():
        pool.close()
