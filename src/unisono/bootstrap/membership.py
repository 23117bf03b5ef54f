"""The membership of a rank in a communicator: its endpoint in the shared memory, and what all ranks agreed on."""

from __future__ import annotations

import atexit
import itertools
import os
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from unisono import _engine
from unisono.bootstrap import messages
from unisono.bootstrap.environment import JobTrace, RankIdentity
from unisono.bootstrap.fault_log import open_fault_log
from unisono.bootstrap.host_clock import HostClock
from unisono.bootstrap.hosts import HostMap, single_host
from unisono.bootstrap.job_config import JobConfig, Tuning, job_config, own_resources
from unisono.bootstrap.job_resources import (
    SPARE_NUMBER,
    CourierOffer,
    Geometry,
    JobResources,
    SharedCourier,
    create_memory,
    geometry_for,
    shared_bytes,
)
from unisono.bootstrap.rendezvous import Rendezvous, RendezvousHooks, meet
from unisono.bootstrap.rendezvous_address import Address, DirectoryAddress
from unisono.bootstrap.uncaught_errors import install_excepthook
from unisono.errors import CommError, UnisonoError, UsageError

# A rank with its own core spins, and then sleeps: a thread that only yields may get the core back after milliseconds,
# while a sleeping thread that is woken runs first. Ranks that share cores yield at once.
SPIN_S = 1e-3
OVERSUBSCRIBED_YIELD_S = 2e-3
# The background thread works while the main thread of the rank computes. Without two cores for each rank, it must not
# occupy the core for long.
SHORT_SPIN_S = 50e-6


class Link:
    """The membership of one rank in a communicator.

    ``job_ranks[r]`` is the rank in the job of rank r of the communicator; by default, both are the same. ``hosts``
    says which ranks are far; by default, none is. ``processes`` has 0 for ranks that are far. ``number`` is the same
    on all ranks of the communicator. ``courier_ranks[r]`` is the rank by which the courier knows rank r; unlike
    ``job_ranks``, it never changes. ``first_ranks[r]`` is the rank of r in the first communicator in this memory,
    whose boards show what each process waits for.
    """

    def __init__(
        self, resources: JobResources, offset: int, rank: int, processes: list[int], config: JobConfig,
        timeout_s: float, trace: JobTrace | None = None, job_ranks: list[int] | None = None,
        hosts: HostMap | None = None, number: int = 0, courier_ranks: list[int] | None = None,
        first_ranks: list[int] | None = None,
    ) -> None:  # fmt: skip
        self.index = next(_indices)
        self.resources = resources
        self.offset = offset
        self.trace = trace
        self.before_close: list[Callable[[], None]] = []
        self.after_close: list[Callable[[], None]] = []  # the courier still answers other hosts meanwhile
        self.in_forked_child: list[Callable[[], None]] = []
        self.rank = rank
        self.size = len(processes)
        self.processes = processes
        self.job_ranks = list(range(self.size)) if job_ranks is None else job_ranks
        self.courier_ranks = list(range(self.size)) if courier_ranks is None else courier_ranks
        self.first_ranks = list(range(self.size)) if first_ranks is None else first_ranks
        self.hosts = single_host(self.size, os.uname().nodename) if hosts is None else hosts
        self.far = self.hosts.far(rank)
        self.number = number
        self.config = config
        self.geometry: Geometry = geometry_for(config.staging_bytes, any(self.far))
        self.closed = False
        self.has_spare_duplicate = False
        self.endpoint = _engine.Endpoint(
            file=resources.memory, offset=offset, rank=rank, size=self.size, depth=self.geometry.depth,
            staging_bytes=self.geometry.staging_bytes, transfer_bytes=self.geometry.transfer_bytes,
            tracks=self.geometry.tracks, processes=processes, spin_s=0.0 if config.oversubscribed else SPIN_S,
            yield_s=OVERSUBSCRIBED_YIELD_S if config.oversubscribed else 0.0,
            background_spin_s=SPIN_S if config.spare_cores else 0.0 if config.oversubscribed else SHORT_SPIN_S,
            job_ranks=self.job_ranks, fault_log=resources.fault_log,
            courier=resources.courier_engine if any(self.far) else None, number=number,
            far=self.far if any(self.far) else [], courier_ranks=self.courier_ranks if any(self.far) else [],
            first_ranks=self.first_ranks,
        )  # fmt: skip
        self.endpoint.timeout_s = timeout_s
        if resources.first is None:
            resources.first = self.endpoint
            references = self.hosts.near(0) if self.far[0] else []
            resources.clock = HostClock(resources.courier_engine, [self.courier_ranks[each] for each in references])
        resources.add_link()
        _open_links.add(self)

    def close(self) -> None:
        """Complete the calls that were started, and leave the communicator."""
        if not self.closed:
            self.closed = True
            try:
                self._act(self.before_close)
            finally:  # also if the user interrupts it
                self._leave()

    def _leave(self) -> None:
        self.endpoint.forget()
        self.endpoint.close()
        try:
            self._act(self.after_close)
        finally:
            self.resources.remove_link()

    @staticmethod
    def _act(actions: list[Callable[[], None]]) -> None:
        while actions:  # they refer to this link, which would never be freed
            actions.pop(0)()

    def check_open(self, name: str) -> None:
        """Raise UsageError if the communicator is closed, or if this process was forked from a rank."""
        if self.closed:
            self.endpoint.check_process()
            raise UsageError(messages.COMMUNICATOR_CLOSED(call=name))

    def name_ranks(self, job_ranks: list[int]) -> None:
        """Set the ranks in the job, if they were not known when the link was made."""
        self.job_ranks = job_ranks
        self.endpoint.name_ranks(job_ranks)

    def courier_for(self, job_ranks: Sequence[int]) -> CourierOffer | None:
        """Return the courier of this process, if it has one that knows these ranks of the job."""
        courier, known = self.resources.courier, dict(zip(self.job_ranks, self.courier_ranks, strict=True))
        if courier is None or not known.keys() >= set(job_ranks):
            return None
        return CourierOffer(courier, tuple(known[rank] for rank in job_ranks))

    def reserve_spare_duplicate(self) -> None:
        """Reserve the space behind this communicator for a duplicate; on the first rank of each host, before other
        space is taken.
        """
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
            self.resources, offset, self.rank, self.processes, self.config, self.endpoint.timeout_s, self.trace,
            self.job_ranks, self.hosts, self.number + SPARE_NUMBER, self.courier_ranks, self.first_ranks,
        )  # fmt: skip

    def split(self, communicator: Any, color: int | None, key: int) -> Link | None:
        """Return the link of the group that this rank joins, or None. The ranks agree through ``communicator``."""
        if not (color is None or isinstance(color, int)) or not isinstance(key, int):
            raise UsageError(messages.BAD_SPLIT(color=repr(color), key=repr(key)))
        number, requests, offsets = self._agree(communicator, color, key)
        members = _members(requests, color)
        if not members:
            return None
        hosts = self.hosts.of(members)
        rank = members.index(self.rank)
        first = members[hosts.near(rank)[0]]  # of the group, on this host
        return Link(
            self.resources, int(offsets[first]), rank, [self.processes[each] for each in members], self.config,
            self.endpoint.timeout_s, self.trace, [self.job_ranks[each] for each in members], hosts, number,
            [self.courier_ranks[each] for each in members], [self.first_ranks[each] for each in members],
        )  # fmt: skip

    def _agree(self, communicator: Any, color: int | None, key: int) -> tuple[int, Any, Any]:
        """Return what all ranks agree on: the number of the new communicators, the requests and the offsets, by rank.

        The first rank of a group on each host reserves memory there. Threads may split several communicators at once,
        so a number may be taken before all ranks have agreed on it; then they agree again.
        """
        requests = np.zeros((self.size, 4), dtype=np.int64)
        offers = np.zeros((self.size, 2), dtype=np.int64)
        numbers, offset = self.resources.numbers, 0
        while True:
            communicator.all_gather(
                requests, np.array([color is not None, color or 0, key, numbers.next], dtype=np.int64)
            )
            number = int(requests[:, 3].max())
            members = _members(requests, color)
            is_first = bool(members) and next(rank for rank in members if not self.far[rank]) == self.rank
            if is_first and not offset:
                assert self.resources.first is not None
                several_hosts = self.hosts.of(members).count > 1
                geometry = geometry_for(self.config.staging_bytes, several_hosts)
                offset = self.resources.first.reserve_space(shared_bytes(len(members), geometry))
            communicator.all_gather(offers, np.array([offset, numbers.claim(number)], dtype=np.int64))
            if offers[:, 1].all():
                return number, requests, offers[:, 0]


def _members(requests: Any, color: int | None) -> list[int]:
    """Return the ranks that have asked for this color, in the order of their keys, then ranks."""
    ranks = sorted(range(len(requests)), key=lambda rank: (requests[rank, 2], rank))
    return [rank for rank in ranks if color is not None and requests[rank, 0] and requests[rank, 1] == color]


_indices = itertools.count()  # of the links of this process
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
        for action in link.in_forked_child:
            action()
        link.endpoint.abandon()
        if link.resources.courier is not None:
            link.resources.courier.engine.abandon()


os.register_at_fork(after_in_child=_leave_in_child)


_rendezvous_count = 0  # of this process; the same on all ranks of a job


def connect_link(
    timeout_s: float,
    connect_timeout_s: float,
    staging_bytes: int,
    tuning: Callable[[], Tuning],
    identity: RankIdentity,
    address: Address | None = None,
    hooks: RendezvousHooks | None = None,
) -> Link:
    """Connect to the other ranks of a job on one host and map the shared memory.

    ``address`` is that of the rendezvous, by default in the directory of the job.
    """
    global _rendezvous_count
    if address is None:
        _rendezvous_count += 1
        address = DirectoryAddress(identity, _rendezvous_count)

    def configure(resources: list[dict[str, Any]]) -> tuple[int, dict[str, Any]]:
        config = job_config([resources], staging_bytes, tuning())
        return create_memory(identity.size, geometry_for(staging_bytes, several_hosts=False), identity.rank), config

    rendezvous = meet(identity, address, own_resources(), configure, connect_timeout_s, hooks)
    link = join_memory(identity, rendezvous, JobConfig(**rendezvous.config), timeout_s)
    install_excepthook(link.rank, link.processes, link.config.token)
    return link


def join_memory(
    identity: RankIdentity, rendezvous: Rendezvous, config: JobConfig, timeout_s: float,
    hosts: HostMap | None = None, courier: SharedCourier | None = None, number: int = 0,
    courier_ranks: Sequence[int] | None = None,
) -> Link:  # fmt: skip
    """Map the memory of this host, and return when all ranks of the host have done so.

    If one of them fails, all of them raise an error. ``number`` and ``courier_ranks`` are those of the link.
    """
    members = range(identity.size) if hosts is None else hosts.near(identity.rank)
    near = dict(zip(members, rendezvous.processes, strict=True))
    processes = [near.get(rank, 0) for rank in range(identity.size)]
    resources = JobResources(rendezvous.file, open_fault_log(identity), courier)
    try:
        link = Link(
            resources, 0, identity.rank, processes, config, timeout_s, identity.trace, hosts=hosts, number=number,
            courier_ranks=None if courier_ranks is None else list(courier_ranks),
        )  # fmt: skip
        link.has_spare_duplicate = True
        if identity.rank == members[0]:
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
    return link
