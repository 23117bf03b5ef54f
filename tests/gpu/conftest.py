"""Ranks with fake GPUs for the tests of GPU jobs."""

from __future__ import annotations

import pytest

from gpu.gpu_ranks import GpuPools


@pytest.fixture(scope="session")
def gpu_pools():
    """Return ranks with fake GPUs, by number and mode; they start at first use."""
    made = GpuPools()
    yield made
    made.close()
