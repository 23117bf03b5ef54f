"""Arrays whose lengths do not fit into 31 bits."""

from __future__ import annotations

import os

import numpy as np
import pytest

import unisono
from unisono.launch import spawn as local_ranks

ELEMENTS = (1 << 31) + 5
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")


def sum_huge(comm):
    x = np.ones(ELEMENTS, np.int8)
    x[-3:] = comm.rank
    comm.all_reduce(x)
    return [int(x[0]), int(x[1 << 30]), int(x[-4]), int(x[-3]), int(x[-1])]


@pytest.mark.long
@pytest.mark.skipif(MEMORY < 8 << 30, reason="needs 8 GiB of free memory")
def test_more_than_two_to_the_31_elements_are_supported():
    assert unisono.spawn(sum_huge, 2) == [[2, 2, 2, 1, 1]] * 2


def small_staging(comm):
    """Many passes have large offsets too, without the memory: 300 passes here."""
    x = np.arange(10_000_000, dtype=np.int32)
    comm.all_reduce(x, algorithm="ring")
    return bool((x == comm.size * np.arange(10_000_000, dtype=np.int32)).all())


def test_the_smallest_staging_area_is_enough(monkeypatch):
    monkeypatch.setattr(local_ranks, "STAGING_BYTES", 64 * 1024)
    assert unisono.spawn(small_staging, 3) == [True] * 3
