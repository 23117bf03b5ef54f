"""The rendezvous of the ranks of a job on one machine: rank 0 listens, and the other ranks connect to it.

The address is that of a Unix socket (rendezvous_address.py). A rank must belong to the same user and know the secret
of the job (handshake.py). When all ranks are connected (rendezvous_server.py), rank 0 sends each of them a
**payload**: the descriptor of the shared memory, the process numbers of all ranks, and the configuration. Every rank
then confirms that it has mapped the memory. If anything fails on the way, rank 0 tells the other ranks, and all of
them raise the same error.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.framing import Connection
from unisono.bootstrap.handshake import Hello, error_from_dict, error_to_dict, preamble
from unisono.bootstrap.job_identity import process_fingerprint
from unisono.bootstrap.locality import process_namespace
from unisono.bootstrap.private_directory import DirectoryTaken
from unisono.bootstrap.rendezvous_address import Address
from unisono.bootstrap.rendezvous_server import (
    BACKLOG,
    LOOK_EVERY_S,
    RendezvousHooks,
    RendezvousServer,
    advice_on_names,
)
from unisono.errors import CollectiveTimeout, CommError, PeerLost, UnisonoError, UsageError

__all__ = ["Rendezvous", "RendezvousHooks", "listening_process", "meet"]

DIAL_EVERY_S = 0.01
LOOK_EVERY = round(LOOK_EVERY_S / DIAL_EVERY_S)  # knocks
GRACE_S = 2.0  # for rank 0 to say what has gone wrong, after its own time has ended

Decide = Callable[[list[dict[str, Any]]], tuple[int, dict[str, Any]]]


@dataclass
class Rendezvous:
    """What everyone knows after all have met."""

    rank: int
    file: int  # descriptor of the shared memory
    processes: list[int]
    config: dict[str, Any]  # what rank 0 decided for all
    connections: dict[int, Connection] = field(default_factory=dict)  # to the ranks; on the others, to rank 0
    timeout_s: float = 0.0
    ends_s: float = 0.0  # when rank 0 waits no longer for the others to confirm

    def confirm(self, problem: BaseException | None) -> None:
        """Tell the others whether this rank is ready, and wait for them; raise if one is not."""
        try:
            if 0 in self.connections:
                self._confirm_to_rank_0(problem)
            else:
                self._confirm_to_all(problem)
        finally:
            self.leave()

    def leave(self) -> None:
        """Close the connections."""
        for connection in self.connections.values():
            connection.close()
        self.connections = {}

    def _confirm_to_rank_0(self, problem: BaseException | None) -> None:
        connection = self.connections[0]
        with suppress(OSError):  # it may have closed the connection, and said why
            connection.send({} if problem is None else error_to_dict(problem, self.rank))
        verdict = _receive(connection, self.ends_s + GRACE_S, self.timeout_s)
        if verdict is None:
            raise _rank_0_lost(connection, "all ranks were ready")
        if "problem" in verdict and problem is None:
            raise error_from_dict(verdict)

    def _confirm_to_all(self, problem: BaseException | None) -> None:
        found = problem
        for rank, connection in self.connections.items():
            found = found or self._confirmation(rank, connection)
        for connection in self.connections.values():
            with suppress(OSError):  # the engine finds that this rank has ended, and says which
                connection.send({} if found is None else error_to_dict(found, 0))
        if found is not None and problem is None:
            raise found

    def _confirmation(self, rank: int, connection: Connection) -> UnisonoError | None:
        """Return what is wrong on a rank."""
        who = f"rank {rank} (process {connection.process})"
        try:
            message = connection.wait_for_message(self.ends_s)
        except TimeoutError:
            return CollectiveTimeout(
                f"connect: {who} has not set up its shared memory within {self.timeout_s:g} s", rank=rank
            )
        except (OSError, ValueError) as error:
            return CommError(f"connect: {who}: {error}", rank=rank)
        if message is None:
            return PeerLost(f"connect: {who} has gone away before all ranks were ready", rank=rank)
        return error_from_dict(message) if "problem" in message else None


def meet(
    identity: RankIdentity,
    address: Address,
    mine: dict[str, Any],
    decide: Decide,
    timeout_s: float,
    hooks: RendezvousHooks | None = None,
) -> Rendezvous:
    """Wait until all ranks of the job are there.

    ``mine`` is what this rank tells rank 0, and ``decide`` is called there with what all have told; it returns the
    descriptor of the shared memory and the config for all.
    """
    if identity.size == 1:
        file, config = decide([mine])
        return Rendezvous(0, file, [os.getpid()], config)
    fingerprint = process_fingerprint() if identity.by_hand else {}
    own = Hello(identity.rank, identity.size, mine, timeout_s, timeout_s, process_namespace(), fingerprint)
    try:
        if identity.rank == 0:
            return _serve(identity, address, own, decide, hooks or RendezvousHooks())
        return _join(identity, address, own, hooks or RendezvousHooks())
    except OSError as error:
        if isinstance(error, UnisonoError):
            raise
        raise _no_socket(identity, error) from error


def _no_socket(identity: RankIdentity, error: OSError) -> UnisonoError:
    """Return our error for one of the system."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return CommError(
            f"connect: rank {identity.rank} has no file descriptor left ({error.strerror}); raise the limit "
            "(ulimit -n)",
            rank=identity.rank,
        )
    return CommError(f"connect: rank {identity.rank}: {error}", rank=identity.rank)


def _serve(
    identity: RankIdentity, address: Address, own: Hello, decide: Decide, hooks: RendezvousHooks
) -> Rendezvous:
    ends_s = time.monotonic() + GRACE_S
    while True:
        try:
            return _accept_ranks(identity, address, own, decide, hooks)
        except DirectoryTaken:
            _ask_other_rank_0(address, own)
        if time.monotonic() > ends_s:
            raise UsageError(
                f"connect: another process is rank 0 of a job with the name {identity.job!r} and does not answer; "
                f"{advice_on_names(identity)}"
            )
        time.sleep(DIAL_EVERY_S)


def _accept_ranks(
    identity: RankIdentity, address: Address, own: Hello, decide: Decide, hooks: RendezvousHooks
) -> Rendezvous:
    server = RendezvousServer(identity, own, hooks)
    with address.reserve() as socket_address, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(socket_address.socket)
        listener.listen(BACKLOG)
        hooks.on_listening()
        server.accept_all(listener, socket_address.secret())
    file = None
    try:
        hooks.on_complete()
        peers = [server.peers[rank] for rank in range(1, identity.size)]
        file, config = decide([own.mine, *(peer.hello.mine for peer in peers)])
        processes = [os.getpid(), *(peer.connection.process for peer in peers)]
        connections = {peer.hello.rank: peer.connection for peer in peers}
        for rank, connection in connections.items():
            _send_payload(rank, connection, {"processes": processes, "config": config}, file)
        return Rendezvous(0, file, processes, config, connections, own.timeout_s, time.monotonic() + own.timeout_s)
    except BaseException as error:
        failed = isinstance(error, UsageError)  # here; the calls of the other ranks were right
        server.fail_all(CommError(f"connect: rank 0 has failed: {error}", rank=0) if failed else error)
        if file is not None:
            os.close(file)
        raise


def _send_payload(rank: int, connection: Connection, payload: dict[str, Any], file: int) -> None:
    try:
        connection.send(payload, [file])
    except (BrokenPipeError, ConnectionResetError):
        raise PeerLost(
            f"connect: rank {rank} (process {connection.process}) has gone away before all ranks were ready",
            rank=rank,
        ) from None


def _ask_other_rank_0(address: Address, own: Hello) -> None:
    """Raise what the process that is rank 0 already has to say; return if it says nothing."""
    if (found := _try_dial(address)) is None:
        return
    connection, secret = found
    answer = None
    with closing(connection), suppress(OSError, ValueError):
        _send_hello(connection, secret, own)
        answer = connection.wait_for_message(time.monotonic() + GRACE_S)
    if answer is not None:
        raise error_from_dict(answer)


def _join(identity: RankIdentity, address: Address, own: Hello, hooks: RendezvousHooks) -> Rendezvous:
    ends_s = time.monotonic() + own.timeout_s
    connection, secret = _dial(identity, address, ends_s, own.timeout_s, hooks)
    try:
        while (payload := _exchange(connection, secret, own, ends_s)) is None:
            # Rank 0 is gone, or has dropped us in a crowd of other connections.
            found = _try_dial(address)
            if found is None:
                raise _rank_0_lost(connection, "all ranks had arrived")
            connection.close()
            connection, secret = found
        if "problem" in payload:
            raise error_from_dict(payload)
        if not connection.descriptors:  # the kernel leaves out what there is no room for
            error = _no_socket(identity, OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
            with suppress(OSError):
                connection.send(error_to_dict(error, identity.rank))
            raise error
        file, processes, config = connection.descriptors[0], payload.get("processes"), payload.get("config")
        if not isinstance(config, dict) or not isinstance(processes, list) or len(processes) != identity.size:
            raise CommError(f"connect: rank 0 (process {connection.process}) has sent {sorted(payload)}", rank=0)
        ready_s = time.monotonic() + own.timeout_s
        return Rendezvous(identity.rank, file, processes, config, {0: connection}, own.timeout_s, ready_s)
    except BaseException:
        connection.close()
        for descriptor in connection.descriptors:
            os.close(descriptor)
        raise


def _exchange(connection: Connection, secret: str, own: Hello, ends_s: float) -> dict[str, Any] | None:
    """Say which rank this is and return the payload of rank 0, or None if it has closed the connection."""
    with suppress(BrokenPipeError, ConnectionResetError):  # rank 0 has closed it, and perhaps said why
        _send_hello(connection, secret, replace(own, left_s=max(0.0, ends_s - time.monotonic())))
    return _receive(connection, ends_s + GRACE_S, own.timeout_s, descriptors=1)


def _send_hello(connection: Connection, secret: str, hello: Hello) -> None:
    connection.send_bytes(preamble(secret))
    connection.send(hello.as_message())


def _receive(
    connection: Connection, ends_s: float, timeout_s: float, *, descriptors: int = 0
) -> dict[str, Any] | None:
    """Return the next message of rank 0, or None if it has closed the connection."""
    try:
        return connection.wait_for_message(ends_s, descriptors=descriptors)
    except TimeoutError:
        raise CollectiveTimeout(
            f"connect: rank 0 (process {connection.process}) has not answered within {timeout_s:g} s", rank=0
        ) from None
    except (OSError, ValueError) as error:
        raise CommError(f"connect: rank 0 (process {connection.process}): {error}", rank=0) from error


def _dial(
    identity: RankIdentity, address: Address, ends_s: float, timeout_s: float, hooks: RendezvousHooks
) -> tuple[Connection, str]:
    """Try the address until somebody opens; return the connection and the secret to say."""
    attempts = 0
    while (found := _try_dial(address)) is None:
        if time.monotonic() >= ends_s:
            raise CollectiveTimeout(
                f"connect: rank {identity.rank} has waited {timeout_s:g} s for rank 0 of {identity.size}; see "
                "whether it was started",
                rank=0,
            )
        attempts += 1
        if attempts % LOOK_EVERY == 0:
            hooks.poll()
        time.sleep(DIAL_EVERY_S)
    return found


def listening_process(address: Address) -> int | None:
    """Return the process of this user that is rank 0 at a address now, if there is one."""
    try:
        found = _try_dial(address)
    except CommError:  # another user's
        return None
    if found is None:
        return None
    found[0].close()
    return found[0].process


def _rank_0_lost(connection: Connection, before: str) -> PeerLost:
    return PeerLost(f"connect: rank 0 (process {connection.process}) has gone away before {before}", rank=0)


def _try_dial(address: Address) -> tuple[Connection, str] | None:
    """Return a connection to rank 0 and the secret to say, or None if it cannot be had yet."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        with address.resolve() as socket_address:
            sock.connect(socket_address.socket)
            connection = Connection(sock)
            if connection.user != os.getuid():  # it gets our secret only if it is one of us
                raise CommError(
                    f"connect: the socket of rank 0 belongs to user {connection.user}, not to user "
                    f"{os.getuid()}: refused",
                    rank=0,
                )
            return connection, socket_address.secret()
    except (FileNotFoundError, ConnectionRefusedError, BlockingIOError):
        sock.close()  # nobody is there yet, or too many are
        return None
    except BaseException:
        sock.close()
        raise
