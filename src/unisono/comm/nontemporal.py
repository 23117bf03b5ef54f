"""Non-temporal stores: the rule for writing results past the caches of the processor."""

from __future__ import annotations

import functools
from pathlib import Path

from unisono.collectives import Collective

MOST_IN_CACHE = 2  # ranks
ASSUMED_CACHE_BYTES = 16 * 1024 * 1024  # where the system does not report it
LAST_CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")


@functools.cache
def shared_cache_bytes() -> int:
    """Return the size of the last-level cache, which cores share."""
    try:
        size = LAST_CACHE.read_text().strip()  # such as 32768K
        return int(size.removesuffix("K")) * 1024
    except (OSError, ValueError):
        return ASSUMED_CACHE_BYTES


def writes_past_caches(collective: Collective, output_bytes: int, size: int) -> bool:
    """Return whether a rank writes its result past the caches.

    It does if the results of all ranks together do not fit into the cache that they share. Where a rank has just read
    the memory that it writes, as in an all-reduce, it does so only with many ranks: with two, the memory is still in
    the cache of the core (measured with 64 MiB: 6.5 against 7.4 ms with two ranks on an AMD EPYC, 28 against 22 ms
    with eight on an Intel Xeon; there 5.0 against 5.9 ms with 16 MiB, which fit).
    """
    just_read = collective.single_array and collective.reduces and size <= MOST_IN_CACHE
    return output_bytes * size > shared_cache_bytes() // 2 and not just_read
