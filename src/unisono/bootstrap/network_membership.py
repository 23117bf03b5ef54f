"""The membership of a rank in a job on several hosts: its courier, and the memory that it shares on its host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from unisono import _engine
from unisono.bootstrap import network_messages, ucx_search
from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.hosts import HostMap
from unisono.bootstrap.job_config import JobConfig, Tuning, job_config, own_resources
from unisono.bootstrap.job_resources import CourierOffer, create_memory, geometry_for
from unisono.bootstrap.membership import Link, join_memory
from unisono.bootstrap.network_client import Resolve, resolve
from unisono.bootstrap.network_options import TCP, UCX_PATH, NetworkPlan, join_port
from unisono.bootstrap.network_rendezvous import NetworkRendezvous, OpenCourier, Participant
from unisono.bootstrap.network_star import Star
from unisono.bootstrap.rendezvous import meet
from unisono.bootstrap.rendezvous_server import RendezvousHooks
from unisono.bootstrap.tls import BYTES_PER_KEY, Tls
from unisono.bootstrap.uncaught_errors import install_excepthook
from unisono.errors import CommError


class StarHooks(RendezvousHooks):
    """Ends the rendezvous on a host when another rank of the job has failed."""

    def __init__(self, star: Star) -> None:
        self.star = star

    def poll(self) -> None:
        """Raise if another rank has reported a problem."""
        self.star.poll()


def connect_link_over_network(
    identity: RankIdentity, plan: NetworkPlan, timeout_s: float, connect_timeout_s: float, staging_bytes: int,
    tuning: Callable[[], Tuning], *, hooks: RendezvousHooks | None = None, host: dict[str, str] | None = None,
    resolve: Resolve = resolve, offers: Sequence[CourierOffer] = (), link_rate: float = 0.0,
) -> Link:  # fmt: skip
    """Connect to the other ranks of a job on several hosts, and map the memory of this host.

    ``host`` is the identity of this host, by default that of ``locality.host_info()``; ``resolve`` returns the
    addresses of rank 0. ``offers`` are couriers that this process has already: if all ranks have one in common, no
    other one is opened. ``link_rate`` is in bytes per second; that of rank 0 applies to all.
    """

    def configure(resources: list[dict[str, Any]], hosts: HostMap) -> dict[str, Any]:
        by_host = [[resources[rank] for rank in hosts.ranks_on(number)] for number in range(hosts.count)]
        return job_config(by_host, staging_bytes, tuning(), link_rate)

    participant = Participant(identity, plan, own_resources(), connect_timeout_s, hooks, host, resolve, offers)
    try:
        network = participant.meet(configure, _open_courier(identity, plan))
        try:
            link = _join_host(identity, network, timeout_s, connect_timeout_s)
        except BaseException as error:
            network.star.fail(error)
            raise
    finally:
        participant.leave_couriers()
    try:
        network.star.allow_time()
        network.star.exchange({}, lambda received: [{}] * len(received))
    except BaseException:
        link.close()
        raise
    finally:
        network.star.close()
    install_excepthook(link.rank, link.processes, link.config.token)
    return link


def _open_courier(identity: RankIdentity, plan: NetworkPlan) -> OpenCourier:
    transport = plan.transport

    def open_courier(address: str, ports: range | None) -> _engine.Courier:
        courier = listen(address, ports)
        if plan.tls is not None:
            return with_tls(courier, plan.tls)
        if transport == TCP:
            return courier
        path = transport.removeprefix(UCX_PATH) if transport.startswith(UCX_PATH) else None
        try:
            courier.use_ucx(ucx_search.candidates(path), ucx_search.settings(address, ports))
        except RuntimeError as error:
            courier.close()
            reason = network_messages.UCX_NOT_USABLE(rank=identity.rank, reason=error)
            raise CommError(reason, rank=identity.rank) from error
        return courier

    def with_tls(courier: _engine.Courier, tls: Tls) -> _engine.Courier:
        try:
            courier.use_tls(*tls.paths, BYTES_PER_KEY)
        except RuntimeError as error:
            courier.close()
            reason = network_messages.TLS_NOT_USABLE(rank=identity.rank, reason=error)
            raise CommError(reason, rank=identity.rank) from error
        return courier

    def listen(address: str, ports: range | None) -> _engine.Courier:
        first, last = (ports[0], ports[-1]) if ports else (0, 0)
        try:
            return _engine.Courier(identity.rank, identity.size, address, first, last)
        except OSError as error:
            name = f"{join_port(address, first)}-{last}" if ports else address
            reason = network_messages.COURIER_CANNOT_LISTEN(
                rank=identity.rank, address=name, reason=error.strerror or error
            )
            raise CommError(reason, rank=identity.rank) from error

    return open_courier


def _join_host(
    identity: RankIdentity, network: NetworkRendezvous, timeout_s: float, connect_timeout_s: float
) -> Link:
    """Meet the other ranks of this host, and return the link of this rank."""
    config = JobConfig(**network.config)

    def configure(_: list[dict[str, Any]]) -> tuple[int, dict[str, Any]]:
        geometry = geometry_for(config.staging_bytes, network.hosts.count > 1)
        return create_memory(identity.size, geometry, identity.rank), {}

    rendezvous = meet(
        identity, network.near_address, own_resources(), configure, connect_timeout_s, StarHooks(network.star),
        network.hosts.near(identity.rank),
    )  # fmt: skip
    return join_memory(
        identity, rendezvous, config, timeout_s, network.hosts, network.courier, network.number, network.courier_ranks
    )
