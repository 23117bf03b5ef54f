"""The memory of a job on one host, and its other resources.

Each rank has a staging area (between hosts, one per track) for the messages of its collectives, so the shared memory
grows with the number of ranks and not with its square. Send and recv have a few small slots for each pair of ranks
that uses them. Pages are allocated when they are first touched.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, NamedTuple

from unisono import _engine
from unisono.bootstrap import messages
from unisono.bootstrap.host_clock import HostClock
from unisono.bootstrap.job_config import TRANSFER_BYTES
from unisono.compiler.geometry import DEPTH, TRACKS_BETWEEN_HOSTS
from unisono.errors import CommError, UsageError

SMALLEST_STAGING_BYTES = 64 * 1024
SPARE_NUMBER = 1  # of the spare duplicate of a first communicator, counted from the number of that communicator


class Geometry(NamedTuple):
    """The sizes of the shared memory, on which all ranks must agree."""

    depth: int
    staging_bytes: int
    transfer_bytes: int
    tracks: int  # see engine/include/unisono/track.hpp


def geometry_for(staging_bytes: int, several_hosts: bool) -> Geometry:
    """Return the geometry of a communicator with ``staging_bytes`` for each rank and track."""
    if staging_bytes < SMALLEST_STAGING_BYTES:
        raise UsageError(messages.STAGING_TOO_SMALL(staging_bytes=staging_bytes, least=SMALLEST_STAGING_BYTES))
    return Geometry(DEPTH, staging_bytes, TRANSFER_BYTES, TRACKS_BETWEEN_HOSTS if several_hosts else 1)


def shared_bytes(size: int, geometry: Geometry) -> int:
    """Return the bytes that a communicator occupies in the shared file."""
    return _engine.shared_bytes(size, *geometry)


class Numbers:
    """The numbers of communicators: a communicator has the same one on all of its ranks, and no other one has it.

    Number 0 is that of the first communicator, and 1 that of its spare duplicate. Numbers from FIRST_RANDOM on belong
    to groups that use the courier of another one.
    """

    def __init__(self) -> None:
        self.next = 2
        self._lock = threading.Lock()

    def claim(self, number: int) -> bool:
        """Take a number on which the ranks agree; return whether no other communicator of this process has it."""
        with self._lock:
            is_free = number >= self.next
            self.next = max(self.next, number + 1)
            return is_free


FIRST_RANDOM = 1 << 62


def random_number(generation: str) -> int:
    """Return the number of the first communicator of a group, which follows from the random name of its rendezvous.

    The next number is that of its spare duplicate.
    """
    return FIRST_RANDOM + 2 * int(generation[:15], 16)


class SharedCourier:
    """The courier of this process, for all communicators whose ranks it knows.

    ``name`` is the same on all ranks that it connects, and no other courier has it. ``settings`` are the options from
    which it was made. It is closed when its last user leaves or is freed.
    """

    def __init__(self, engine: _engine.Courier, settings: tuple[Any, ...] = ()) -> None:
        self.engine = engine
        self.name = ""
        self.address = ""  # at which it listens
        self.settings = settings
        self.numbers = Numbers()
        # A communicator without any reference is freed, and not closed: then its part here disappears.
        self._users: weakref.WeakSet[object] = weakref.WeakSet()
        self._closed = False
        self._lock = threading.RLock()  # garbage collection may close a communicator at any time

    def add_user(self, user: object) -> bool:
        """Keep the courier open until ``remove_user``; return False if it is closed already."""
        with self._lock:
            if not self._closed:
                self._users.add(user)
            return not self._closed

    def remove_user(self, user: object) -> None:
        """Close the courier if it has no other user."""
        with self._lock:
            self._users.discard(user)
            is_last = not self._users and not self._closed
            self._closed |= is_last
        if is_last:
            self.engine.close()


class CourierOffer(NamedTuple):
    """A courier that a new group may use; it knows rank r of the group as rank ``ranks[r]``."""

    courier: SharedCourier
    ranks: tuple[int, ...]


class JobResources:
    """The resources that the communicators of one ``connect()`` share: memory, courier and numbers.

    The memory is an anonymous file, one on each host; the first communicator allocates the parts of the others. The
    courier carries messages between hosts; a job on one host has none. The process groups of torch have separate
    memories, and share a courier.
    """

    def __init__(self, descriptor: int, fault_log: int | None = None, courier: SharedCourier | None = None) -> None:
        self.memory = _engine.File(descriptor)
        self.fault_log = None if fault_log is None else _engine.File(fault_log)
        self.courier = courier
        self.numbers = Numbers() if courier is None else courier.numbers
        self.first: _engine.Endpoint | None = None
        self.clock = HostClock(None, [])
        self._open_links = 0

    def add_link(self) -> None:
        """Count a link that uses the resources."""
        self._open_links += 1
        if self.courier is not None:
            self.courier.add_user(self)

    def remove_link(self) -> None:
        """Leave the courier with the last link."""
        self._open_links -= 1
        if self._open_links == 0 and self.courier is not None:
            self.courier.remove_user(self)

    @property
    def courier_engine(self) -> _engine.Courier | None:
        """The courier, as the engine knows it."""
        return None if self.courier is None else self.courier.engine

    @property
    def descriptor(self) -> int:
        """The descriptor of the shared memory."""
        return self.memory.descriptor


def create_memory(size: int, geometry: Geometry, rank: int) -> int:
    """Return the descriptor of new shared memory for the first communicator, which ``rank`` creates."""
    space = shared_bytes(size, geometry)
    try:
        descriptor = os.memfd_create("unisono", os.MFD_CLOEXEC)
    except OSError as error:
        raise CommError(messages.NO_MEMORY_FILE(rank=rank, reason=error.strerror), rank=rank) from error
    try:
        os.ftruncate(descriptor, space)
    except OSError as error:
        os.close(descriptor)
        raise UsageError(messages.NO_SHARED_MEMORY(bytes=space, reason=error.strerror)) from error
    return descriptor
