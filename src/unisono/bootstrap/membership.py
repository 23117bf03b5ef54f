"""The membership of a rank in a communicator: the shared memory, the rank's endpoint, and what all ranks agreed on.

Each rank has a staging area for the messages of its collectives, so the shared memory grows with the number of ranks
and not with its square. Send and recv have a few small slots for each pair of ranks that uses them. Pages are
allocated when they are first touched.
"""

from __future__ import annotations

import atexit
import itertools
import os
import secrets
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from unisono import _engine
from unisono.bootstrap import messages
from unisono.bootstrap.environment import JobTrace, RankIdentity, identity_in_job
from unisono.bootstrap.fault_log import open_fault_log
from unisono.bootstrap.rendezvous import RendezvousHooks, meet
from unisono.bootstrap.rendezvous_address import Address, DirectoryAddress
from unisono.bootstrap.uncaught_errors import install_excepthook
from unisono.errors import CommError, UnisonoError, UsageError

# A few times the private cache of a core: see the comment in engine/include/unisono/memory.hpp.
STAGING_BYTES = 2 * 1024 * 1024
SMALLEST_STAGING_BYTES = 64 * 1024
TRANSFER_BYTES = 32 * 1024
DEPTH = 8  # messages in a channel; docs/adr/0008 says why it must be 4 at least
# A rank with its own core spins, and then sleeps: a thread that only yields may get the core back after milliseconds,
# while a sleeping thread that is woken runs first. Ranks that share cores yield at once.
SPIN_S = 1e-3
OVERSUBSCRIBED_YIELD_S = 2e-3
# The background thread works while the main thread of the rank computes. Without two cores for each rank, it must not
# occupy the core for long.
SHORT_SPIN_S = 50e-6

# The measured table of algorithms, in the form in which it is stored (comm/tables.py):
# {"all_reduce": {"4": [[0, "naive"], [16384, "direct"]]}}
Table = dict[str, dict[str, list[list[Any]]]]


@dataclass
class JobConfig:
    """The configuration of a job, which rank 0 determines."""

    staging_bytes: int
    oversubscribed: bool  # more ranks than cores
    spare_cores: bool = False  # two cores for each rank
    table: Table = field(default_factory=dict)
    token: str = ""  # different for every rendezvous
    met_ns: int = 0  # the time of the rendezvous


class Geometry(NamedTuple):
    """The sizes of the shared memory, on which all ranks must agree."""

    depth: int
    staging_bytes: int
    transfer_bytes: int


def geometry_for(staging_bytes: int) -> Geometry:
    """Return the geometry of a communicator with ``staging_bytes`` for each rank."""
    if staging_bytes < SMALLEST_STAGING_BYTES:
        raise UsageError(messages.STAGING_TOO_SMALL(staging_bytes=staging_bytes, least=SMALLEST_STAGING_BYTES))
    return Geometry(DEPTH, staging_bytes, TRANSFER_BYTES)


def shared_bytes(size: int, geometry: Geometry) -> int:
    """Return the bytes that a communicator occupies in the shared file."""
    return _engine.shared_bytes(size, *geometry)


class SharedFile:
    """The anonymous file that holds all communicators of a job; the first communicator allocates the others."""

    def __init__(self, descriptor: int, fault_log: int | None = None) -> None:
        self.memory = _engine.File(descriptor)
        self.fault_log = None if fault_log is None else _engine.File(fault_log)
        self.first: _engine.Endpoint | None = None

    @property
    def descriptor(self) -> int:
        """The descriptor of the shared memory."""
        return self.memory.descriptor


class Link:
    """The membership of one rank in a communicator.

    ``job_ranks[r]`` is the rank in the job of rank r of the communicator; by default, both are the same.
    """

    def __init__(
        self, file: SharedFile, offset: int, rank: int, processes: list[int], config: JobConfig, timeout_s: float,
        trace: JobTrace | None = None, job_ranks: list[int] | None = None,
    ) -> None:  # fmt: skip
        self.number = next(_numbers)
        self.file = file
        self.offset = offset
        self.trace = trace
        self.after_close: list[Callable[[], None]] = []
        self.rank = rank
        self.size = len(processes)
        self.processes = processes
        self.job_ranks = list(range(self.size)) if job_ranks is None else job_ranks
        self.config = config
        self.geometry: Geometry = geometry_for(config.staging_bytes)
        self.closed = False
        self.has_spare_duplicate = False
        self.endpoint = _engine.Endpoint(
            file=file.memory, offset=offset, rank=rank, size=self.size, depth=self.geometry.depth,
            staging_bytes=self.geometry.staging_bytes, transfer_bytes=self.geometry.transfer_bytes,
            processes=processes, spin_s=0.0 if config.oversubscribed else SPIN_S,
            yield_s=OVERSUBSCRIBED_YIELD_S if config.oversubscribed else 0.0,
            background_spin_s=SPIN_S if config.spare_cores else 0.0 if config.oversubscribed else SHORT_SPIN_S,
            job_ranks=self.job_ranks, fault_log=file.fault_log, courier=None, number=0, far=[], courier_ranks=[],
        )  # fmt: skip
        self.endpoint.timeout_s = timeout_s
        if file.first is None:
            file.first = self.endpoint
        _open_links.add(self)

    def close(self) -> None:
        """Complete the calls that were started, and leave the communicator."""
        if not self.closed:
            self.closed = True
            self.endpoint.forget()
            self.endpoint.close()
            actions, self.after_close = self.after_close, []  # they refer to this link, which would never be freed
            for action in actions:
                action()

    def check_open(self, name: str) -> None:
        """Raise UsageError if the communicator is closed, or if this process was forked from a rank."""
        if self.closed:
            self.endpoint.check_process()
            raise UsageError(messages.COMMUNICATOR_CLOSED(call=name))

    def name_ranks(self, job_ranks: list[int]) -> None:
        """Set the ranks in the job, if they were not known when the link was made."""
        self.job_ranks = job_ranks
        self.endpoint.name_ranks(job_ranks)

    def reserve_spare_duplicate(self) -> None:
        """Reserve the space behind this communicator for a duplicate; on rank 0, before other space is taken."""
        self.endpoint.reserve_space(shared_bytes(self.size, self.geometry))
        self.has_spare_duplicate = True

    def spare_duplicate(self) -> Link | None:
        """Return the link of a duplicate without communication, if its space was reserved; otherwise None."""
        self.check_open("duplicate")
        if not self.has_spare_duplicate:
            return None
        self.has_spare_duplicate = False
        offset = shared_bytes(self.size, self.geometry)
        return Link(
            self.file, offset, self.rank, self.processes, self.config, self.endpoint.timeout_s, self.trace,
            self.job_ranks,
        )  # fmt: skip

    def split(self, communicator: Any, color: int | None, key: int) -> Link | None:
        """Return the link of the group that this rank joins, or None. The ranks agree through ``communicator``."""
        if not (color is None or isinstance(color, int)) or not isinstance(key, int):
            raise UsageError(messages.BAD_SPLIT(color=repr(color), key=repr(key)))
        requests = np.zeros((self.size, 3), dtype=np.int64)
        communicator.all_gather(requests, np.array([color is not None, color or 0, key], dtype=np.int64))
        members = [
            rank for rank in sorted(range(self.size), key=lambda rank: (requests[rank, 2], rank))
            if color is not None and requests[rank, 0] and requests[rank, 1] == color
        ]  # fmt: skip
        offsets = np.zeros(self.size, dtype=np.int64)
        mine = np.zeros(1, dtype=np.int64)
        if members and members[0] == self.rank:
            assert self.file.first is not None
            mine[0] = self.file.first.reserve_space(shared_bytes(len(members), self.geometry))
        communicator.all_gather(offsets, mine)
        if not members:
            return None
        return Link(
            self.file, int(offsets[members[0]]), members.index(self.rank), [self.processes[rank] for rank in members],
            self.config, self.endpoint.timeout_s, self.trace, [self.job_ranks[rank] for rank in members],
        )  # fmt: skip


_numbers = itertools.count()  # of the links of this process
_open_links: weakref.WeakSet[Link] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # A thread of the engine must not outlive the interpreter, and the other ranks must learn that this rank has left.
    for link in list(_open_links):
        link.close()


def _leave_in_child() -> None:
    """Abandon all links in a forked child: it is not a rank, and has neither the shared memory nor the threads.

    Calls on its communicators raise UsageError (Endpoint.check_process); closing one does nothing.
    """
    for link in list(_open_links):
        link.closed = True
        link.endpoint.abandon()


os.register_at_fork(after_in_child=_leave_in_child)

_rendezvous_count = 0  # of this process; the same on all ranks of a job


def connect_link(
    timeout_s: float,
    connect_timeout_s: float,
    staging_bytes: int,
    table: Callable[[], Table],
    identity: RankIdentity | None = None,
    address: Address | None = None,
    hooks: RendezvousHooks | None = None,
) -> Link:
    """Connect to the other ranks of the job and map the shared memory.

    ``address`` is that of the rendezvous, by default in the directory of the job.
    """
    global _rendezvous_count
    identity = identity or identity_in_job()
    if address is None:
        _rendezvous_count += 1
        address = DirectoryAddress(identity, _rendezvous_count)

    def configure(resources: list[dict[str, Any]]) -> tuple[int, dict[str, Any]]:
        cores = {core for rank in resources for core in rank["cores"]}
        oversubscribed, spare_cores = identity.size > len(cores), 2 * identity.size <= len(cores)
        config = JobConfig(
            staging_bytes, oversubscribed, spare_cores, table(), secrets.token_hex(8), time.monotonic_ns()
        )
        space = shared_bytes(identity.size, geometry_for(staging_bytes))
        try:
            descriptor = os.memfd_create("unisono", os.MFD_CLOEXEC)
        except OSError as error:
            raise CommError(messages.NO_MEMORY_FILE(reason=error.strerror), rank=0) from error
        try:
            os.ftruncate(descriptor, space)
        except OSError as error:
            os.close(descriptor)
            raise UsageError(messages.NO_SHARED_MEMORY(bytes=space, reason=error.strerror)) from error
        return descriptor, asdict(config)

    rendezvous = meet(
        identity, address, {"cores": sorted(os.sched_getaffinity(0))}, configure, connect_timeout_s, hooks
    )
    file = SharedFile(rendezvous.file, open_fault_log(identity))
    try:
        link = Link(
            file, 0, identity.rank, rendezvous.processes, JobConfig(**rendezvous.config), timeout_s, identity.trace
        )
        link.has_spare_duplicate = True
        if identity.rank == 0:
            link.reserve_spare_duplicate()
    except Exception as error:
        reason = error.message if isinstance(error, UnisonoError) else str(error)
        problem = CommError(messages.ERROR_ON_RANK(rank=identity.rank, reason=reason), rank=identity.rank)
        with suppress(UnisonoError):  # the problem of this rank is raised
            rendezvous.confirm(problem)
        if isinstance(error, UnisonoError | MemoryError):
            raise
        raise problem from error
    except BaseException:
        rendezvous.leave()
        raise
    try:
        rendezvous.confirm(None)
    except BaseException:
        link.close()
        raise
    install_excepthook(link.rank, link.processes, link.config.token)
    return link
