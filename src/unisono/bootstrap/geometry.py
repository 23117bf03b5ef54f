"""How much shared memory a communicator has.

Each rank has a staging area for the messages of its collectives, so memory grows with the number of ranks and not
with their square. Send and recv have a few small slots for each pair of ranks that uses them. Everything gets its
memory when it is first used.
"""

from __future__ import annotations

from typing import NamedTuple

from unisono import _engine
from unisono.errors import UsageError

# A few times the cache that a core has of its own: see the comment in engine/include/unisono/memory.hpp.
STAGING_BYTES = 2 * 1024 * 1024
SMALLEST_STAGING_BYTES = 64 * 1024
TRANSFER_BYTES = 32 * 1024
DEPTH = 8  # messages in a channel; docs/adr/0008 says why it must be 4 at least


class Geometry(NamedTuple):
    """What all ranks must agree on."""

    depth: int
    staging_bytes: int
    transfer_bytes: int


def geometry_for(staging_bytes: int) -> Geometry:
    """Return the geometry of a communicator whose ranks stage so many bytes each."""
    if staging_bytes < SMALLEST_STAGING_BYTES:
        raise UsageError(f"staging_bytes={staging_bytes}; expected at least {SMALLEST_STAGING_BYTES}")
    return Geometry(DEPTH, staging_bytes, TRANSFER_BYTES)


def shared_bytes(size: int, geometry: Geometry) -> int:
    """Return the address space that a communicator takes in the shared file."""
    return _engine.shared_bytes(size, *geometry)
