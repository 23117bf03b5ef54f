"""The plan of a rendezvous between hosts: the address of rank 0, the token, the interface and the ports.

The arguments of ``connect()`` come first, then the variables of the launcher (environment.py).
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass

from unisono.bootstrap import network_messages as network
from unisono.bootstrap.environment import JobNetwork, RankIdentity
from unisono.bootstrap.network_handshake import digest
from unisono.bootstrap.tls import Tls
from unisono.errors import UsageError

TCP, UCX = "tcp", "ucx"
UCX_PATH = "ucx:"  # and the path of its library
SHORTEST_TOKEN = 16
LONGEST_TOKEN_FILE = 4096
# Where no port is stated, it follows from the name of the job, so that jobs on one host rarely choose the same.
# Linux gives ports from 32768 on to outgoing connections, which could take one of ours.
DEFAULT_PORTS = range(20000, 30000)
ADDRESS = re.compile(r"(?:\[([0-9a-fA-F:.%\w]+)\]|([^\[\]:/\s]+)):([0-9]{1,5})")


@dataclass(frozen=True)
class NetworkOptions:
    """The arguments of ``connect()`` that concern the network."""

    rendezvous: str | None = None
    token: str | None = None
    token_file: str | os.PathLike[str] | None = None
    interface: str | None = None
    ports: range | None = None
    transport: str | None = None
    tls: Tls | None = None


@dataclass(frozen=True)
class NetworkPlan:
    """The rendezvous of a job on several hosts, as this rank knows it before it begins."""

    host: str  # of rank 0
    port: int  # of rank 0; 0 on rank 0 itself: any that is free, of ``ports`` if that is given
    token: str
    job: str  # the same on every rank of the job
    interface: str | None = None
    ports: range | None = None
    transport: str = TCP  # or UCX, or UCX with the path of its library
    tls: Tls | None = None  # None: nothing is encrypted

    @property
    def settings(self) -> tuple[object, ...]:
        """What determines how a courier listens and sends."""
        return self.interface, self.ports, self.transport, self.tls

    @property
    def address(self) -> str:
        """The address of rank 0, for messages."""
        return join_port(self.host, self.port)


def meets_over_network(identity: RankIdentity, options: NetworkOptions) -> bool:
    """Return whether the ranks of a job meet over the network; ranks on one host do not need it.

    A launcher that does not state the number of ranks on this host is believed to have started all of them here,
    unless the program names an address.
    """
    is_assumed = identity.local_size_is_assumed and identity.size > 1 and options.rendezvous is not None
    return identity.local_size < identity.size or is_assumed


def plan_network(identity: RankIdentity, options: NetworkOptions, launcher: JobNetwork) -> NetworkPlan:
    """Return the plan of a rendezvous between hosts; UsageError if the address or the token is not known."""
    ports = options.ports
    transport = transport_of(options.transport, launcher)
    tls = options.tls or launcher.tls
    check_tls(tls, transport)
    check_ports(ports)
    if options.rendezvous is not None:
        host, port = split_address(options.rendezvous)
    elif launcher.address:
        host, port = split_address(launcher.address)
    elif launcher.host:
        candidates = ports or DEFAULT_PORTS
        host = launcher.host
        port = candidates[int.from_bytes(digest(launcher.job)[:8]) % len(candidates)]
    else:
        raise UsageError(
            network.NO_RENDEZVOUS(launcher=identity.launcher, size=identity.size, local_size=identity.local_size)
        )
    token = _token(options, launcher)
    return NetworkPlan(host, port, token, launcher.job, options.interface, ports, transport, tls)


def transport_of(requested: str | None, launcher: JobNetwork) -> str:
    """Return the transport that the program requests, or that of its launcher; UsageError if there is no such one."""
    transport = (launcher.transport or TCP) if requested is None else requested
    check_transport(transport)
    return transport


def check_transport(transport: str) -> None:
    """Raise UsageError unless there is such a transport."""
    is_path = isinstance(transport, str) and transport.startswith(UCX_PATH) and len(transport) > len(UCX_PATH)
    if transport not in (TCP, UCX) and not is_path:
        raise UsageError(network.BAD_TRANSPORT(transport=repr(transport)))


def check_tls(tls: Tls | None, transport: str) -> None:
    """Raise UsageError if these are not the files of TLS, or the transport cannot encrypt."""
    if tls is not None and not isinstance(tls, Tls):
        raise UsageError(network.BAD_TLS(tls=repr(tls)))
    if tls is not None and transport != TCP:
        raise UsageError(network.TLS_OVER_UCX(transport=transport))


def check_ports(ports: range | None) -> None:
    """Raise UsageError if this is not a range of ports."""
    if ports is not None and (
        not isinstance(ports, range) or ports.step != 1 or not 0 < ports.start < ports.stop <= 65536
    ):
        raise UsageError(network.BAD_PORTS(ports=repr(ports)))


def join_port(host: str, port: int) -> str:
    """Return HOST:PORT; an IPv6 address is put in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_address(text: str) -> tuple[str, int]:
    """Return the host and the port of ``HOST:PORT``."""
    match = ADDRESS.fullmatch(text) if isinstance(text, str) else None
    if match is None or not 0 < int(match[3]) < 65536:
        raise UsageError(network.BAD_RENDEZVOUS(text=text))
    return match[1] or match[2], int(match[3])


def _token(options: NetworkOptions, launcher: JobNetwork) -> str:
    if options.token is not None and options.token_file is not None:
        raise UsageError(network.TWO_TOKENS())
    token = options.token
    if options.token_file is not None:
        token = _read_token(os.fspath(options.token_file))
    token = launcher.token if token is None else token
    if not token:
        raise UsageError(network.NO_TOKEN())
    if len(token) < SHORTEST_TOKEN:
        raise UsageError(network.SHORT_TOKEN(length=len(token), least=SHORTEST_TOKEN))
    return token


def _read_token(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            status = os.fstat(file.fileno())
            is_private = status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o077
            if not is_private:
                raise UsageError(
                    network.TOKEN_FILE_NOT_PRIVATE(
                        path=path, user=os.getuid(), owner=status.st_uid, mode=f"{stat.S_IMODE(status.st_mode):04o}"
                    )
                )
            return file.read(LONGEST_TOKEN_FILE).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(network.BAD_TOKEN_FILE(path=path, reason=error)) from error
