"""The rendezvous of the ranks on one host: their leader listens, and the other ranks connect to it.

The leader is the lowest rank: rank 0, or, in a job on several hosts (network_rendezvous.py), the lowest rank of its
host.

The address is that of a Unix socket (rendezvous_address.py). A rank must belong to the same user and know the secret
of the job (handshake.py). When all ranks are connected (rendezvous_server.py), the leader sends each of them a
**payload**: the descriptor of the shared memory, the process numbers of all ranks, and the configuration. Every rank
then confirms that it has mapped the memory. If anything fails on the way, the leader tells the other ranks, and all
of them raise the same error.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from unisono.bootstrap import messages
from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.framing import Connection
from unisono.bootstrap.handshake import Hello, error_from_dict, error_to_dict, preamble
from unisono.bootstrap.job_identity import process_fingerprint
from unisono.bootstrap.locality import process_namespace
from unisono.bootstrap.private_directory import DirectoryTaken
from unisono.bootstrap.rendezvous_address import Address
from unisono.bootstrap.rendezvous_server import (
    BACKLOG,
    POLL_EVERY_S,
    RendezvousHooks,
    RendezvousServer,
    hint_on_hosts,
    hint_on_names,
)
from unisono.errors import CollectiveTimeout, CommError, PeerLost, UnisonoError, UsageError
from unisono.message import listed

__all__ = ["Rendezvous", "RendezvousHooks", "listening_process", "meet", "send_hello", "try_dial"]

DIAL_EVERY_S = 0.01
POLL_EVERY = round(POLL_EVERY_S / DIAL_EVERY_S)  # attempts
GRACE_S = 2.0  # the time that the leader has to report a problem, after its own time has ended

# Called on the leader with the resources of all ranks; returns the descriptor of the memory and the configuration.
Configure = Callable[[list[dict[str, Any]]], tuple[int, dict[str, Any]]]


@dataclass
class Rendezvous:
    """The result of a rendezvous, the same on all ranks."""

    rank: int
    file: int  # descriptor of the shared memory
    processes: list[int]  # of the members, in their order
    config: dict[str, Any]  # determined by the leader
    connections: dict[int, Connection] = field(default_factory=dict)  # by rank; on other ranks, only to the leader
    timeout_s: float = 0.0
    ends_s: float = 0.0  # the leader waits until then for the others to confirm
    leader: int = 0

    def confirm(self, problem: BaseException | None) -> None:
        """Tell the other ranks whether this rank is ready, and wait for them; raise if one of them is not."""
        try:
            if self.leader in self.connections:
                self._confirm_to_leader(problem)
            else:
                self._confirm_to_all(problem)
        finally:
            self.leave()

    def leave(self) -> None:
        """Close the connections."""
        for connection in self.connections.values():
            connection.close()
        self.connections = {}

    def _confirm_to_leader(self, problem: BaseException | None) -> None:
        connection = self.connections[self.leader]
        with suppress(OSError):  # the leader may have closed the connection after it has reported a problem
            connection.send({} if problem is None else error_to_dict(problem, self.rank))
        answer = _receive(connection, self.ends_s + GRACE_S, self.timeout_s, self.leader)
        if answer is None:
            message = messages.ENDED_BEFORE_READY(rank=self.leader, process=connection.process)
            raise PeerLost(message, rank=self.leader)
        if "problem" in answer and problem is None:
            raise error_from_dict(answer)

    def _confirm_to_all(self, problem: BaseException | None) -> None:
        first = problem
        for rank, connection in self.connections.items():
            first = first or self._confirmation(rank, connection)
        for connection in self.connections.values():
            with suppress(OSError):  # the engine detects that this rank has ended, and reports its rank
                connection.send({} if first is None else error_to_dict(first, self.rank))
        if first is not None and problem is None:
            raise first

    def _confirmation(self, rank: int, connection: Connection) -> UnisonoError | None:
        """Return the problem of a rank, or None if it is ready."""
        peer = {"rank": rank, "process": connection.process}
        try:
            message = connection.wait_for_message(self.ends_s)
        except TimeoutError:
            return CollectiveTimeout(messages.NOT_READY(**peer, seconds=self.timeout_s), rank=rank)
        except (OSError, ValueError) as error:
            return CommError(messages.BAD_MESSAGE(**peer, reason=error), rank=rank)
        if message is None:
            return PeerLost(messages.ENDED_BEFORE_READY(**peer), rank=rank)
        return error_from_dict(message) if "problem" in message else None


def meet(
    identity: RankIdentity, address: Address, resources: dict[str, Any], configure: Configure, timeout_s: float,
    hooks: RendezvousHooks | None = None, members: Sequence[int] | None = None,
) -> Rendezvous:  # fmt: skip
    """Wait until all ranks are connected, and return what all of them know then.

    ``resources`` are those of this rank; ``configure`` is called on the leader. ``members`` are the ranks on this
    host, by default all ranks of the job.
    """
    members = members or range(identity.size)
    if len(members) == 1:
        file, config = configure([resources])
        return Rendezvous(identity.rank, file, [os.getpid()], config, leader=identity.rank)
    fingerprint = process_fingerprint() if identity.by_hand else {}
    own = Hello(identity.rank, identity.size, resources, timeout_s, timeout_s, process_namespace(), fingerprint)
    try:
        if identity.rank == members[0]:
            return _serve(identity, address, own, configure, hooks or RendezvousHooks(), members)
        return _join(identity, address, own, hooks or RendezvousHooks(), members)
    except OSError as error:
        if isinstance(error, UnisonoError):
            raise
        raise system_error(identity, error) from error


def system_error(identity: RankIdentity, error: OSError) -> UnisonoError:
    """Return the error of this package for an error of the system."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return CommError(messages.NO_DESCRIPTOR(rank=identity.rank, reason=error.strerror), rank=identity.rank)
    return CommError(messages.ERROR_ON_RANK(rank=identity.rank, reason=error), rank=identity.rank)


def _serve(
    identity: RankIdentity, address: Address, own: Hello, configure: Configure, hooks: RendezvousHooks,
    members: Sequence[int],
) -> Rendezvous:  # fmt: skip
    ends_s = time.monotonic() + GRACE_S
    while True:
        try:
            return _accept_ranks(identity, address, own, configure, hooks, members)
        except DirectoryTaken:
            _ask_other_rank_0(address, own)
        if time.monotonic() > ends_s:
            raise UsageError(messages.OTHER_RANK_0_SILENT(job=identity.job, hint=hint_on_names(identity)))
        time.sleep(DIAL_EVERY_S)


def _accept_ranks(
    identity: RankIdentity, address: Address, own: Hello, configure: Configure, hooks: RendezvousHooks,
    members: Sequence[int],
) -> Rendezvous:  # fmt: skip
    server = RendezvousServer(identity, own, hooks, members)
    with address.reserve() as socket_address, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(socket_address.socket)
        listener.listen(BACKLOG)
        hooks.on_listening()
        server.accept_all(listener, socket_address.secret())
    file = None
    try:
        hooks.on_complete()
        peers = [server.peers[rank] for rank in members[1:]]
        file, config = configure([own.resources, *(peer.hello.resources for peer in peers)])
        processes = [os.getpid(), *(peer.connection.process for peer in peers)]
        connections = {peer.hello.rank: peer.connection for peer in peers}
        for rank, connection in connections.items():
            _send_payload(rank, connection, {"processes": processes, "config": config}, file)
        ready_s = time.monotonic() + own.timeout_s
        return Rendezvous(identity.rank, file, processes, config, connections, own.timeout_s, ready_s, identity.rank)
    except BaseException as error:
        if isinstance(error, UsageError):  # of the leader only: the calls of the other ranks were right
            message = messages.RANK_0_FAILED(leader=identity.rank, reason=error.message)
            server.fail_all(CommError(message, rank=identity.rank))
        else:
            server.fail_all(error)
        if file is not None:
            os.close(file)
        raise


def _send_payload(rank: int, connection: Connection, payload: dict[str, Any], file: int) -> None:
    try:
        connection.send(payload, [file])
    except (BrokenPipeError, ConnectionResetError):
        raise PeerLost(messages.ENDED_BEFORE_READY(rank=rank, process=connection.process), rank=rank) from None


def _ask_other_rank_0(address: Address, own: Hello) -> None:
    """Raise the error with which the process that is rank 0 already answers; return if it does not answer."""
    if (dialed := try_dial(address)) is None:
        return
    connection, secret = dialed
    answer = None
    with closing(connection), suppress(OSError, ValueError):
        send_hello(connection, secret, own)
        answer = connection.wait_for_message(time.monotonic() + GRACE_S)
    if answer is not None:
        raise error_from_dict(answer)


def _join(
    identity: RankIdentity, address: Address, own: Hello, hooks: RendezvousHooks, members: Sequence[int]
) -> Rendezvous:
    leader = members[0]
    ends_s = time.monotonic() + own.timeout_s
    connection, secret = _dial(identity, address, ends_s, own.timeout_s, hooks, leader)
    try:
        while (payload := _handshake(connection, secret, own, ends_s, leader)) is None:
            # The leader has ended, or has dropped this connection because too many others were open.
            dialed = try_dial(address)
            if dialed is None:
                message = messages.ENDED_BEFORE_CONNECTED(rank=leader, process=connection.process)
                raise PeerLost(message, rank=leader)
            connection.close()
            connection, secret = dialed
        if "problem" in payload:
            raise error_from_dict(payload)
        if not connection.descriptors:  # the kernel drops a descriptor if the process has none left
            error = system_error(identity, OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
            with suppress(OSError):
                connection.send(error_to_dict(error, identity.rank))
            raise error
        file, processes, config = connection.descriptors[0], payload.get("processes"), payload.get("config")
        if not isinstance(config, dict) or not isinstance(processes, list) or len(processes) != len(members):
            parts = listed(sorted(payload))
            message = messages.BAD_PAYLOAD(leader=leader, process=connection.process, parts=parts)
            raise CommError(message, rank=leader)
        ready_s = time.monotonic() + own.timeout_s
        connections = {leader: connection}
        return Rendezvous(identity.rank, file, processes, config, connections, own.timeout_s, ready_s, leader)
    except BaseException:
        connection.close()
        for descriptor in connection.descriptors:
            os.close(descriptor)
        raise


def _handshake(connection: Connection, secret: str, own: Hello, ends_s: float, leader: int) -> dict[str, Any] | None:
    """Send the hello of this rank and return the leader's payload, or None if it has closed the connection."""
    with suppress(
        BrokenPipeError, ConnectionResetError
    ):  # the leader has closed it, perhaps after reporting a problem
        send_hello(connection, secret, replace(own, left_s=max(0.0, ends_s - time.monotonic())))
    return _receive(connection, ends_s + GRACE_S, own.timeout_s, leader, descriptors=1)


def send_hello(connection: Connection, secret: str, hello: Hello) -> None:
    """Send the proof that this process belongs to the job, and its hello."""
    connection.send_bytes(preamble(secret))
    connection.send(hello.as_message())


def _receive(
    connection: Connection, ends_s: float, timeout_s: float, leader: int, *, descriptors: int = 0
) -> dict[str, Any] | None:
    """Return the next message of the leader, or None if it has closed the connection."""
    process = connection.process
    try:
        return connection.wait_for_message(ends_s, descriptors=descriptors)
    except TimeoutError:
        message = messages.RANK_0_SILENT(leader=leader, process=process, seconds=timeout_s)
        raise CollectiveTimeout(message, rank=leader) from None
    except (OSError, ValueError) as error:
        raise CommError(messages.BAD_MESSAGE(rank=leader, process=process, reason=error), rank=leader) from error


def _dial(
    identity: RankIdentity, address: Address, ends_s: float, timeout_s: float, hooks: RendezvousHooks, leader: int
) -> tuple[Connection, str]:
    """Dial until the leader accepts; return the connection and the secret to send."""
    attempts = 0
    while (dialed := try_dial(address)) is None:
        if time.monotonic() >= ends_s:
            message = messages.NO_RANK_0(
                rank=identity.rank, seconds=timeout_s, leader=leader, size=identity.size,
                hint=hint_on_hosts(identity, messages.HINT_STARTED(rank=leader)),
            )  # fmt: skip
            raise CollectiveTimeout(message, rank=leader)
        attempts += 1
        if attempts % POLL_EVERY == 0:
            hooks.poll()
        time.sleep(DIAL_EVERY_S)
    return dialed


def listening_process(address: Address) -> int | None:
    """Return the process of this user that listens at an address as rank 0, if there is one."""
    try:
        dialed = try_dial(address)
    except CommError:  # of another user
        return None
    if dialed is None:
        return None
    dialed[0].close()
    return dialed[0].process


def try_dial(address: Address) -> tuple[Connection, str] | None:
    """Return a connection to the leader and the secret to send, or None if it does not accept one yet."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        with address.resolve() as socket_address:
            sock.connect(socket_address.socket)
            connection = Connection(sock)
            if connection.user != os.getuid():  # another user must not get the secret
                raise CommError(messages.FOREIGN_SOCKET(user=connection.user, expected=os.getuid()), rank=0)
            return connection, socket_address.secret()
    except (FileNotFoundError, ConnectionRefusedError, BlockingIOError):
        sock.close()  # no process listens yet, or too many are connecting
        return None
    except BaseException:
        sock.close()
        raise
