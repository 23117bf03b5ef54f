"""Rank 0's side of a rendezvous between hosts, until all other ranks are connected.

Any process that reaches the port can connect. One loop serves all connections, and none can delay the others
(intake.py). A connection proves that it belongs to the job (network_handshake.py) before a message of it is read. A
connection that cannot prove it is closed, and the rendezvous goes on; if ranks are missing at the end, the error
mentions such connections, because a rank with a wrong token is one of them.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import strerror
from selectors import EVENT_READ

from unisono.bootstrap import messages
from unisono.bootstrap import network_messages as network
from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.error_report import spans
from unisono.bootstrap.framing import Connection, TlsFailure
from unisono.bootstrap.handshake import check_names, error_to_dict
from unisono.bootstrap.hosts import hosts_of
from unisono.bootstrap.intake import GREETED, PROVED, Intake
from unisono.bootstrap.interfaces import plain_address
from unisono.bootstrap.network_handshake import (
    FROM_RANK,
    FROM_RANK_0,
    GO_ON,
    GREETING,
    OTHER_JOB,
    PROOF_BYTES,
    PROTOCOL,
    REFUSED,
    Greeting,
    NetworkHello,
    digest,
    is_proved,
    make_answer,
    network_hello_from,
    prove,
    read_greeting,
)
from unisono.bootstrap.network_options import NetworkPlan, join_port
from unisono.bootstrap.network_star import FarPeer
from unisono.bootstrap.rendezvous_server import BACKLOG, MOST_REFUSALS, POLL_EVERY_S, RendezvousHooks
from unisono.errors import CollectiveTimeout, CommError, MismatchError, PeerLost, UnisonoError
from unisono.message import Message, join

LINGER_S = 2.0  # when the rendezvous fails, the time in which ranks that start later are told why
SHORT_LINGER_S = 1.0  # if a rank could no longer be reached: to notice that has taken seconds
BIND_S = 5.0  # the time that the rank 0 of an earlier job, or of an earlier start of this one, has to end
BIND_EVERY_S = 0.05
MOST_KEPT_REFUSALS = 64
TLS_HANDSHAKE = b"\x16\x03"  # the first bytes of a client of TLS


@dataclass(eq=False)
class _Stranger:
    """A connection that has not sent its hello yet; the parts of its handshake so far."""

    greeting: bytes = b""
    answer: bytes = b""
    claim: Greeting | None = None


def listen(plan: NetworkPlan, ends_s: float) -> socket.socket:
    """Return a socket that listens at the port of the rendezvous; port 0 stands for any free port of ``plan.ports``.

    It is bound to the address of the plan if that is a numeric address of this host. Otherwise it is bound to all
    addresses: the name of a host often resolves to another address on this host than on the others.
    """
    ends_s = min(ends_s, time.monotonic() + BIND_S)
    candidates: Sequence[int] = [plan.port] if plan.port else plan.ports or [0]
    while True:
        for port in candidates:
            try:
                return _bound(plan.host, port)
            except OSError as error:
                if error.errno != errno.EADDRINUSE or (port == candidates[-1] and time.monotonic() >= ends_s):
                    address = join_port(plan.host, port)
                    reason = error.strerror or str(error)
                    raise CommError(network.CANNOT_LISTEN(address=address, reason=reason), rank=0) from error
        time.sleep(BIND_EVERY_S)


def _bound(host: str, port: int) -> socket.socket:
    addresses = ["::", "0.0.0.0"]  # the second where the kernel has no IPv6
    with suppress(ValueError):
        addresses = [str(ipaddress.ip_address(host)), *addresses]
    for address in addresses:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            if error.errno == errno.EAFNOSUPPORT:
                continue
            raise
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address != "::"))
            sock.bind((address, port))
            sock.listen(BACKLOG)
            sock.setblocking(False)
            return sock
        except OSError as error:
            sock.close()
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise
    raise OSError(errno.EADDRNOTAVAIL, strerror(errno.EADDRNOTAVAIL))


class NetworkServer:
    """Accepts the connections of all other ranks.

    ``own`` is the hello of rank 0; ``secure`` returns the connection over a new socket.
    """

    def __init__(
        self, identity: RankIdentity, plan: NetworkPlan, own: NetworkHello, hooks: RendezvousHooks,
        secure: Callable[[socket.socket], Connection] = Connection,
    ) -> None:  # fmt: skip
        self.identity, self.plan, self.own, self.hooks = identity, plan, own, hooks
        self.ends_s = time.monotonic() + own.timeout_s
        self.timeout_s = own.timeout_s  # of the rank whose time ends first
        self.peers: dict[int, FarPeer] = {}  # by rank
        self.refusals: list[Message] = []
        self._problem: UnisonoError | None = None
        self._told: set[int] = set()  # the ranks that know of it
        self._strangers: dict[Connection, _Stranger] = {}
        self._intake = Intake(0, identity.size, self._prepare, secure)

    def accept_all(self, listener: socket.socket) -> None:
        """Return when all ranks are connected; on failure, tell those that are, and raise."""
        self._intake.selector.register(listener, EVENT_READ)
        try:
            self._serve(listener)
        except BaseException as error:
            self._fail(error, listener)
            raise
        finally:
            self._intake.close()

    def _prepare(self, connection: Connection) -> bool:
        with suppress(OSError):  # the peer may have closed the connection already
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.watch_peer()
        return True

    def _serve(self, listener: socket.socket) -> None:
        poll_s = time.monotonic() + POLL_EVERY_S
        while len(self.peers) < self.identity.size - 1:
            now_s = time.monotonic()
            if now_s >= self.ends_s:
                raise self._timed_out()
            if now_s >= poll_s:
                poll_s = now_s + POLL_EVERY_S
                self.hooks.poll()
            self._serve_once(listener, min(self.ends_s, poll_s))
            if self._problem is not None:
                raise self._problem

    def _serve_once(self, listener: socket.socket, wake_s: float) -> None:
        now_s = time.monotonic()
        self._intake.drop_slow(now_s)
        wake_s = min(wake_s, *self._intake.unknown.values(), wake_s)
        for key, _ in self._intake.selector.select(max(0.0, wake_s - now_s)):
            if key.fileobj is listener:
                self._intake.accept(listener)
            elif isinstance(key.data, FarPeer):
                self._on_data(key.data)
            elif key.data in self._intake.unknown:
                self._read(key.data)
        self._strangers = {each: state for each, state in self._strangers.items() if each in self._intake.unknown}

    def _fail(self, error: BaseException, listener: socket.socket) -> None:
        """Tell all ranks about an error, for a while also those that connect now."""
        message = error_to_dict(error, 0)
        is_early = isinstance(error, MismatchError | PeerLost)
        linger_s = SHORT_LINGER_S if getattr(error, "id", "") == network.FAR_UNREACHABLE.id else LINGER_S
        ends_s = time.monotonic() + (linger_s if is_early else 0.0)
        with suppress(OSError, UnisonoError):
            while True:
                self._told |= self.peers.keys()
                self._intake.dismiss([peer.connection for peer in self.peers.values()], message)
                self.peers = {}
                if time.monotonic() >= ends_s or len(self._told) >= self.identity.size - 1:
                    return
                self._problem = None
                self._serve_once(listener, ends_s)

    def _timed_out(self) -> CollectiveTimeout:
        missing = [rank for rank in range(1, self.identity.size) if rank not in self.peers]
        ranks = [0, *sorted(self.peers)]
        hosts = hosts_of([self.own.host, *(self.peers[rank].hello.host for rank in ranks[1:])])
        connected = [
            network.RANKS_ON_HOST(ranks=spans([ranks[index] for index in hosts.ranks_on(host)]), host=name)
            for host, name in enumerate(hosts.names)
        ]
        refused = messages.REFUSALS(refusals=join(self.refusals[:MOST_REFUSALS])) if self.refusals else ""
        return CollectiveTimeout(
            network.FAR_RANKS_MISSING(
                seconds=self.timeout_s, size=self.identity.size, address=self.plan.address, missing=spans(missing),
                connected=join(connected, ", ", "、"), refused=refused, hint=self.hooks.timeout_hint,
            ),
            rank=missing[0],
        )  # fmt: skip

    def _refuse(self, connection: Connection, rank: int, reason: Message) -> None:
        """Close a connection; the rendezvous goes on."""
        if len(self.refusals) < MOST_KEPT_REFUSALS:
            self.refusals.append(network.PEER_REFUSED(address=peer_address(connection), rank=rank, reason=reason))
        self._intake.drop(connection)

    def _refuse_stranger(self, connection: Connection, reason: Message) -> None:
        """Close a connection whose rank is not known; the rendezvous goes on."""
        if len(self.refusals) < MOST_KEPT_REFUSALS:
            self.refusals.append(network.TLS_REFUSED(address=peer_address(connection), reason=reason))
        self._intake.drop(connection)

    def _read(self, connection: Connection) -> None:
        """Continue the handshake of a connection: its greeting, its proof, its hello."""
        stranger = self._strangers.setdefault(connection, _Stranger())
        rank = stranger.claim.rank if stranger.claim is not None else -1
        try:
            message = self._intake.read_hello(connection, lambda: self._is_proved(connection, stranger))
            if message is None or stranger.claim is None:
                return
            hello = network_hello_from(message)
            check_names(hello.resources, self.own.resources)
        except ValueError as error:
            self._refuse(connection, rank, network.REASON_HELLO(reason=error))
        except TlsFailure as failure:
            self._refuse_stranger(connection, failure.reason)
        except OSError:
            self._intake.drop(connection)
        else:
            connection.process = hello.process
            self._admit(FarPeer(connection, stranger.claim.rank, hello), stranger.claim.size)

    def _is_proved(self, connection: Connection, stranger: _Stranger) -> bool:
        """Return whether the connection has proved that it belongs to the job; one that cannot is closed."""
        received = connection.received
        if stranger.claim is None and len(received) >= GREETING.size:
            stranger.greeting = bytes(received[: GREETING.size])
            del received[: GREETING.size]
            stranger.claim = self._answer(connection, stranger)
        if self._intake.has_proved(connection):
            return True
        if stranger.claim is None or len(received) < PROOF_BYTES:
            return False
        proof = bytes(received[:PROOF_BYTES])
        del received[:PROOF_BYTES]
        if is_proved(proof, self.plan.token, FROM_RANK, stranger.greeting, stranger.answer, connection.binding):
            self._intake.achieved[connection] = PROVED
            proof = prove(self.plan.token, FROM_RANK_0, stranger.greeting, stranger.answer, connection.binding)
            connection.send_bytes(proof)
            return True
        connection.send_bytes(REFUSED)
        self._refuse(connection, stranger.claim.rank, network.REASON_TOKEN())
        return False

    def _answer(self, connection: Connection, stranger: _Stranger) -> Greeting | None:
        """Answer the greeting of a connection and return it; a connection that cannot be a rank is closed."""
        greeting = read_greeting(stranger.greeting)
        if greeting is None:
            if stranger.greeting.startswith(TLS_HANDSHAKE):
                self._refuse_stranger(connection, network.ONLY_IT_USES_TLS())
            else:
                self._intake.drop(connection)
            return None
        is_of_this_job = greeting.job == digest(self.plan.job)
        stranger.answer = make_answer(GO_ON if is_of_this_job else OTHER_JOB)
        connection.send_bytes(stranger.answer)
        if greeting.protocol != PROTOCOL:
            self._refuse(connection, greeting.rank, network.REASON_PROTOCOL())
            return None
        if not is_of_this_job:
            self._refuse(connection, greeting.rank, network.REASON_JOB())
            return None
        self._intake.achieved[connection] = GREETED
        return greeting

    def _admit(self, peer: FarPeer, size: int) -> None:
        """Admit a peer as a rank; if it cannot be one, all ranks fail, since it belongs to the job."""
        problem = self._problem_of(peer, size)
        if problem is not None:
            self._intake.dismiss([peer.connection], error_to_dict(problem, 0))
            self._told.add(peer.rank)
            self._problem = self._problem or problem
            return
        self._intake.admit(peer.connection, peer)
        self.peers[peer.rank] = peer
        ends_s = time.monotonic() + max(0.0, peer.hello.left_s)
        if ends_s < self.ends_s:  # so that its error, too, names the ranks that are missing
            self.ends_s, self.timeout_s = ends_s, peer.hello.timeout_s

    def _problem_of(self, peer: FarPeer, size: int) -> UnisonoError | None:
        hello, rank = peer.hello, peer.rank
        host, host_0 = hello.host["host"], self.own.host["host"]
        if hello.version != self.own.version:
            return MismatchError(
                network.OTHER_UNISONO(
                    rank=rank, host=host, theirs=hello.version, host_0=host_0, ours=self.own.version
                )
            )
        if size != self.identity.size:
            return MismatchError(messages.OTHER_SIZE(rank=rank, theirs=size, size=self.identity.size))
        if not 0 < rank < size:
            return MismatchError(network.NO_SUCH_FAR_RANK(process=hello.process, host=host, rank=rank, last=size - 1))
        if rank in self.peers:
            other = self.peers[rank].hello
            return MismatchError(
                network.FAR_RANK_TWICE(
                    rank=rank, process=other.process, host=other.host["host"], other=hello.process, other_host=host
                )
            )
        return None

    def _on_data(self, peer: FarPeer) -> None:
        """Handle data of a rank, or the end of its connection, while it should be waiting."""
        if self.peers.get(peer.rank) is not peer:
            return
        try:
            is_open = peer.connection.read()
        except OSError:
            is_open = False
        self._problem = self._problem or (unexpected(peer) if is_open else peer.ended())


def unexpected(peer: FarPeer) -> CommError:
    """Return the error for a rank that has sent a message too early."""
    message = messages.UNEXPECTED_DATA(rank=peer.rank, process=peer.hello.process)
    return CommError(message, rank=peer.rank)


def peer_address(connection: Connection) -> str:
    """Return the address of the process at the other end, for messages."""
    try:
        host, port = connection.socket.getpeername()[:2]
    except OSError:  # it has closed the connection
        return "?"
    return join_port(plain_address(host), port)
