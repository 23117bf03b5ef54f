"""Ranks of a rendezvous over TCP, in processes of this machine that pretend to be on different hosts.

Two ranks are on different hosts if the identities of their hosts differ; loopback addresses reach all of them. The
courier is a stand-in, which listens as the real one does and keeps what it is told.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import unisono
from rendezvous_faults import LIMIT_S, Started
from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.hosts import HostMap
from unisono.bootstrap.job_resources import CourierOffer, SharedCourier
from unisono.bootstrap.locality import host_info
from unisono.bootstrap.network_client import resolve
from unisono.bootstrap.network_options import NetworkPlan
from unisono.bootstrap.network_rendezvous import NetworkRendezvous, Participant
from unisono.bootstrap.network_star import Star
from unisono.bootstrap.rendezvous import meet
from unisono.bootstrap.rendezvous_server import RendezvousHooks
from unisono.bootstrap.tls import Tls
from unisono.errors import UnisonoError

TOKEN = "a token of these tests"
RESOURCES = {"cores": [0]}
ANOTHER_GROUP = threading.Event()  # any object


def free_port(address: str = "127.0.0.1") -> int:
    """Return a port that is free now."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as sock:
        sock.bind((address, 0))
        return int(sock.getsockname()[1])


def pretend_host(name: str) -> dict[str, str]:
    """Return the identity of another host on this machine: of a container with another PID namespace."""
    return {**host_info(), "host": name, "processes": f"pid:[{name}]"}


class FakeCourier:
    """Listens at an address, and keeps what it is told about the far ranks."""

    def __init__(self, address: str, ports: range | None) -> None:
        self.socket = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        self.address, self.known, self.closed = address, None, False
        for port in ports or [0]:
            try:
                self.socket.bind((address, port))
            except OSError:
                continue
            break
        else:
            raise OSError(f"no free port at {address}")
        self.socket.listen()
        self.port = int(self.socket.getsockname()[1])

    def know_peers(self, *known: Any) -> None:
        self.known = known

    def close(self) -> None:
        self.closed = True
        self.socket.close()


@dataclass
class Seen:
    """What a rank knows after the rendezvous, or its error."""

    hosts: HostMap | None = None
    config: dict[str, Any] = field(default_factory=dict)
    address: str = ""
    port: int = 0
    known: Any = None
    processes: list[int] = field(default_factory=list)
    kind: str = ""
    id: str = ""
    text: str = ""
    about: int | None = None
    seconds: float = 0.0
    descriptors: int = 0  # left open, beside those that a successful rank keeps
    courier: str = ""  # its name
    number: int = 0
    courier_ranks: tuple[int, ...] | None = None
    offers_left: list[str] = field(default_factory=list)  # offered couriers that are still open


class PollStar(RendezvousHooks):
    def __init__(self, star: Star) -> None:
        self.star = star

    def poll(self) -> None:
        self.star.poll()


@dataclass
class Job:
    """A job whose rank r is on the host named ``hosts[r]``."""

    hosts: Sequence[str]
    port: int = field(default_factory=free_port)
    address: str = "127.0.0.1"
    token: str = TOKEN
    name: str = "a job"
    timeout_s: float = 20.0
    interface: str | None = None
    ports: range | None = None
    tls: Tls | None = None

    @property
    def size(self) -> int:
        return len(self.hosts)

    def identity(self, rank: int, size: int | None = None) -> RankIdentity:
        return RankIdentity(rank, size or self.size, 0, 1, "alone", "")

    def plan(self, **changed: Any) -> NetworkPlan:
        return NetworkPlan(
            **{
                "host": self.address, "port": self.port, "token": self.token, "job": self.name,
                "interface": self.interface, "ports": self.ports, "tls": self.tls, **changed,
            }
        )  # fmt: skip


def offer_courier(name: str, size: int, settings: tuple[Any, ...]) -> CourierOffer:
    """Return a courier that has a user, and knows rank r of a job as rank r + 10."""
    courier = SharedCourier(FakeCourier("127.0.0.1", None), settings)  # type: ignore[arg-type]
    courier.name = name
    courier.add_user(ANOTHER_GROUP)
    return CourierOffer(courier, tuple(range(10, 10 + size)))


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def configure(resources: list[dict[str, Any]], hosts: HostMap) -> dict[str, Any]:
    return {"ranks": len(resources), "hosts": hosts.count}


def create_memory(_: Any) -> tuple[int, dict[str, Any]]:
    return os.memfd_create("test"), {}


def meet_near(network: NetworkRendezvous, identity: RankIdentity, timeout_s: float) -> list[int]:
    """Meet the ranks of this host, as a rank does when it has met those of other hosts; return their processes."""
    rendezvous = meet(
        identity, network.near_address, RESOURCES, create_memory, timeout_s, PollStar(network.star),
        network.hosts.near(identity.rank),
    )  # fmt: skip
    os.close(rendezvous.file)
    rendezvous.confirm(None)
    return rendezvous.processes


@dataclass
class Rank:
    """A rank of a job, with what distinguishes it from the other ranks."""

    rank: int
    size: int | None = None
    plan: dict[str, Any] = field(default_factory=dict)
    host: dict[str, str] = field(default_factory=dict)
    version: str = ""
    delay_s: float = 0.0
    timeout_s: float = 0.0
    resolve: Any = resolve
    step: Callable[[str], None] | None = None  # called before each step, with its name; may raise
    offers: Sequence[str] = ()  # the names of couriers that the process has already
    changed: dict[str, Any] = field(default_factory=dict)  # the part of the plan in which theirs differed


def be_rank(job: Job, rank: Rank) -> Seen:
    """Take part in a rendezvous as a rank; return what it knows then."""
    time.sleep(rank.delay_s)
    began_s, descriptors = time.monotonic(), open_descriptors()
    identity = job.identity(rank.rank, rank.size)
    step = rank.step or (lambda _: None)
    couriers: list[FakeCourier] = []
    offers = [offer_courier(name, job.size, job.plan(**rank.changed).settings) for name in rank.offers]

    def open_courier(address: str, ports: range | None) -> FakeCourier:
        step("courier")
        couriers.append(FakeCourier(address, ports))
        return couriers[0]

    try:
        host = {**pretend_host(job.hosts[rank.rank % job.size]), **rank.host}
        participant = Participant(
            identity, job.plan(**rank.plan), RESOURCES, rank.timeout_s or job.timeout_s, None, host, rank.resolve,
            offers,
        )  # fmt: skip
        if rank.version:
            object.__setattr__(participant.own, "version", rank.version)
        network = participant.meet(configure, open_courier)
        try:
            step("near")
            processes = meet_near(network, identity, job.timeout_s)
            step("confirm")
        except BaseException as error:
            network.star.fail(error)
            raise
        try:
            network.star.exchange({}, lambda received: [{}] * len(received))
        finally:
            network.star.close()
    except Exception as error:
        for courier in couriers:
            courier.close()
        ours = isinstance(error, UnisonoError)
        return Seen(
            kind=type(error).__name__, id=error.id if ours else "", text=str(error),
            about=getattr(error, "rank", None), seconds=time.monotonic() - began_s,
            descriptors=open_descriptors() - descriptors,
        )  # fmt: skip
    seen = Seen(
        network.hosts, network.config, processes=processes, seconds=time.monotonic() - began_s,
        descriptors=open_descriptors() - descriptors - len(couriers) - len(offers),
        courier="" if network.courier is None else network.courier.name, number=network.number,
        courier_ranks=network.courier_ranks,
    )  # fmt: skip
    participant.leave_couriers()
    seen.offers_left = [offer.courier.name for offer in offers if not offer.courier.engine.closed]
    for courier in couriers:
        seen.address, seen.port, seen.known = courier.address, courier.port, courier.known
        courier.close()
    return seen


def run_ranks(job: Job, *ranks: Rank, beside: Sequence[tuple[Any, ...]] = ()) -> list[Seen]:
    """Run ranks, each in a process, by default all of the job; return what they have seen, in this order.

    ``beside`` are functions, with their arguments, that run in further processes meanwhile.
    """
    others = [Started(*each) for each in beside]
    started = [Started(be_rank, job, rank) for rank in ranks or [Rank(rank) for rank in range(job.size)]]
    ends_s = time.monotonic() + LIMIT_S
    try:
        return [each.result(ends_s) for each in started]
    finally:
        for each in [*started, *others]:
            each.end()


def outcome_of_call(connect: Callable[[Job, int], Any], function: Callable[[Any], Any], job: Job, rank: int) -> Any:
    """Return what a function returns for the communicator of a rank, or the error with its id."""
    try:
        with connect(job, rank) as comm:
            return function(comm)
    except UnisonoError as error:
        return type(error).__name__, error.id, str(error)


def call_on_ranks(job: Job, function: Callable[[Any], Any], connect: Callable[[Job, int], Any]) -> list[Any]:
    """Call a function, in processes, with the communicator that ``connect`` makes; return all results."""
    started = [Started(outcome_of_call, connect, function, job, rank) for rank in range(job.size)]
    try:
        ends_s = time.monotonic() + LIMIT_S
        return [each.result(ends_s) for each in started]
    finally:
        for each in started:
            each.end()


# ---- programs of ranks, for every transport ------------------------------------------------------------------------


def fork_a_child(comm: Any) -> tuple[int, float]:
    """Return the exit code of a forked child that makes a call, 7 if that was refused; and an element of a sum."""
    child = os.fork()
    if child == 0:
        try:
            comm.barrier()
        except unisono.UsageError:
            os._exit(7)
        os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    x = np.ones(300_000)
    comm.all_reduce(x)
    return code, float(x[0])


def die_in_a_call(comm: Any) -> tuple[int | None, str, float] | None:
    """Kill rank 1 before a call; return on the others the rank at fault, the error and the seconds until it came."""
    x = np.ones(400_000)
    for _ in range(3):
        comm.all_reduce(x)
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began_s = time.monotonic()
    try:
        comm.all_reduce(x)
    except unisono.PeerLost as error:
        return error.rank, str(error), time.monotonic() - began_s
    return None
