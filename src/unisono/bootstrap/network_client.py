"""The side of all ranks but rank 0 of a rendezvous between hosts, until rank 0 has admitted them.

A rank dials until its time ends: rank 0 may start later, its name may not resolve yet (Kubernetes publishes names
with a delay), and rank 0 closes the oldest connections if too many processes connect. Each attempt resolves the name
anew and tries all of its addresses, IPv4 and IPv6.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from select import POLLIN, POLLOUT, poll

from unisono.bootstrap import network_messages as network
from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.framing import Connection, TlsFailure
from unisono.bootstrap.interfaces import plain_address
from unisono.bootstrap.network_handshake import (
    ANSWER,
    FROM_RANK,
    FROM_RANK_0,
    OTHER_JOB,
    PROOF_BYTES,
    PROTOCOL,
    REFUSED,
    NetworkHello,
    is_proved,
    make_greeting,
    prove,
    read_answer,
)
from unisono.bootstrap.network_options import NetworkPlan, join_port
from unisono.bootstrap.rendezvous_server import POLL_EVERY_S, RendezvousHooks
from unisono.errors import CollectiveTimeout, CommError, MismatchError, UnisonoError, UsageError
from unisono.message import Message, join

DIAL_EVERY_S = 0.02  # at first; doubled with each attempt
SLOWEST_DIAL_S = 0.5
CONNECT_S = 3.0  # for one address: packets to it may be lost silently
HANDSHAKE_S = 10.0
TLS_ALERT = b"\x15\x03"  # the first bytes with which a server of TLS refuses a client without TLS

Resolve = Callable[[str, int], list[tuple[int, tuple[object, ...]]]]


def resolve(host: str, port: int) -> list[tuple[int, tuple[object, ...]]]:
    """Return the families and addresses of a host name; socket.gaierror if it does not resolve."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((int(family), address) for family, _, _, _, address in found))


class Dialer:
    """Connects a rank to rank 0 and proves to each of them that the other belongs to the job."""

    def __init__(
        self, identity: RankIdentity, plan: NetworkPlan, own: NetworkHello, hooks: RendezvousHooks,
        resolve: Resolve = resolve, secure: Callable[[socket.socket], Connection] = Connection,
    ) -> None:  # fmt: skip
        self.identity, self.plan, self.own, self.hooks, self.resolve = identity, plan, own, hooks, resolve
        self.secure = secure  # returns the connection over a socket
        self.ends_s = time.monotonic() + own.timeout_s
        self.reasons: list[Message] = []  # why the last attempt failed, for each address

    def dial(self) -> Connection:
        """Return a connection to rank 0, over which the hello of this rank was sent."""
        wait_s, poll_s = DIAL_EVERY_S, time.monotonic() + POLL_EVERY_S
        while (connection := self._try_all()) is None:
            now_s = time.monotonic()
            if now_s >= poll_s:
                poll_s = now_s + POLL_EVERY_S
                self.hooks.poll()
            time.sleep(max(0.0, min(wait_s, self.ends_s - now_s)))
            if time.monotonic() >= self.ends_s:  # another attempt would replace the reason by a timeout
                raise self._unreachable()
            wait_s = min(2 * wait_s, SLOWEST_DIAL_S)
        with suppress(BrokenPipeError, ConnectionResetError):  # rank 0 has failed; the caller finds that out
            connection.send(replace(self.own, left_s=max(0.0, self.ends_s - time.monotonic())).as_message())
        return connection

    def _unreachable(self) -> CollectiveTimeout:
        message = network.RANK_0_UNREACHABLE(
            rank=self.identity.rank, host=self.own.host["host"], seconds=self.own.timeout_s,
            address=self.plan.address, reason=join(self.reasons),
        )  # fmt: skip
        return CollectiveTimeout(message, rank=0)

    def _try_all(self) -> Connection | None:
        """Try all addresses of rank 0; return the first connection on which both sides have proved themselves."""
        self.reasons = []
        try:
            addresses = self.resolve(self.plan.host, self.plan.port)
        except (OSError, UnicodeError) as error:
            self.reasons.append(network.NOT_RESOLVED(reason=getattr(error, "strerror", None) or error))
            return None
        for family, address in addresses:
            name = join_port(plain_address(str(address[0])), self.plan.port)
            connection = self._try(family, address, name)
            if connection is not None:
                return connection
        return None

    def _try(self, family: int, address: tuple[object, ...], name: str) -> Connection | None:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            ends_s = min(self.ends_s, time.monotonic() + CONNECT_S)
            _connect(sock, address, ends_s)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = self.secure(sock)
            connection.watch_peer()
            problem = self._prove(connection, name)
            if problem is None:
                return connection
            self.reasons.append(problem)
        except TlsFailure as failure:
            if failure.is_final:
                sock.close()
                raise CommError(
                    network.NO_TLS_TO_RANK_0(**self._names(name), reason=failure.reason), rank=0
                ) from None
            self.reasons.append(network.ADDRESS_FAILED(address=name, reason=failure.reason))
        except UnisonoError:
            sock.close()
            raise
        except OSError as error:
            reason = error.strerror or os.strerror(errno.ETIMEDOUT)
            self.reasons.append(network.ADDRESS_FAILED(address=name, reason=reason))
        except BaseException:
            sock.close()
            raise
        sock.close()
        return None

    def _names(self, address: str) -> dict[str, object]:
        return {"address": address, "rank": self.identity.rank, "host": self.own.host["host"]}

    def _prove(self, connection: Connection, name: str) -> Message | None:
        """Prove to rank 0 that this rank belongs to the job, and let it prove the same.

        Return why another attempt may succeed; raise if none can.
        """
        identity, token = self.identity, self.plan.token
        names = self._names(name)
        ends_s = min(self.ends_s, time.monotonic() + HANDSHAKE_S)
        greeting = make_greeting(identity.rank, identity.size, self.plan.job)
        connection.send_bytes(greeting)
        answer = _receive(connection, ANSWER.size, ends_s)
        if answer is None:
            if connection.received.startswith(TLS_ALERT):
                raise UsageError(network.RANK_0_USES_TLS(**names))
            return network.CLOSED_BY_PEER(address=name)
        if (parts := read_answer(answer)) is None:
            return network.NOT_UNISONO(address=name)
        protocol, verdict = parts
        if protocol != PROTOCOL:
            raise MismatchError(network.OTHER_PROTOCOL(**names))
        if verdict == OTHER_JOB:
            return network.OTHER_JOB_THERE(address=name)
        connection.send_bytes(prove(token, FROM_RANK, greeting, answer, connection.binding))
        proof = _receive(connection, PROOF_BYTES, ends_s)
        if proof is None:
            return network.CLOSED_BY_PEER(address=name)
        if proof == REFUSED:
            raise UsageError(network.WRONG_TOKEN(**names))
        if not is_proved(proof, token, FROM_RANK_0, greeting, answer, connection.binding):
            raise CommError(network.FALSE_RANK_0(address=name), rank=0)
        return None


def _connect(sock: socket.socket, address: tuple[object, ...], ends_s: float) -> None:
    """Connect a socket that does not block; OSError if it cannot."""
    code = sock.connect_ex(address)
    if code == errno.EINPROGRESS:
        watch = poll()
        watch.register(sock, POLLOUT)
        if not watch.poll(max(0.0, ends_s - time.monotonic()) * 1000):
            code = errno.ETIMEDOUT
        else:
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))


def _receive(connection: Connection, length: int, ends_s: float) -> bytes | None:
    """Return the next bytes, or None if the peer closes the connection before; TimeoutError at ``ends_s``."""
    watch = poll()
    watch.register(connection, POLLIN)
    while len(connection.received) < length:
        left_s = ends_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        if watch.poll(left_s * 1000) and not connection.read():
            return None
    data = bytes(connection.received[:length])
    del connection.received[:length]
    return data
