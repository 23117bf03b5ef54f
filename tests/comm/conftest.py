"""Real ranks for the tests of the communicator."""

from __future__ import annotations

import pytest

from leaks import nothing_is_left_behind  # noqa: F401 (for every test here)
from rank_pool import RankPools


@pytest.fixture(scope="session")
def all_pools():
    """Start the ranks once: for each file, this would take minutes in all."""
    made = RankPools(1, 2, 3, 4, 5, 8)
    yield made
    made.close()


@pytest.fixture(scope="module")
def pools(all_pools):
    """Return pools of ranks, by size."""
    all_pools.replace_failed()
    return all_pools
