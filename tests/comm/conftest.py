"""Real ranks for the tests of the communicator."""

from __future__ import annotations

import pytest

from leaks import nothing_is_left_behind  # noqa: F401 (for every test here)
from rank_pool import RankPool


@pytest.fixture(scope="module")
def pools():
    """Return pools of ranks, by size."""
    made = {size: RankPool(size) for size in (1, 2, 3, 5, 8)}
    yield made
    for pool in made.values():
        pool.close()
