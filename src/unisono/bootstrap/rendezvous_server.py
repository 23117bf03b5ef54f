"""Rank 0's side of a meeting, until all ranks have come.

One loop serves all connections, and none of them can hold up the others: a connection of another user is closed
before a byte of it is read; any other one has a few seconds, in all, to prove that it belongs to the job and to say
which rank it is; and only a bounded number of them is open at a time.

A **peer** is a rank that has come. A **candidate** says that it is a rank, but does not look like a rank of this job
(job_identity.py): it becomes a peer only if no better one comes soon. A **rival** says that it is rank 0, too.
"""

from __future__ import annotations

import errno
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from os import getpid, getuid
from selectors import EVENT_READ, PollSelector
from typing import Any

from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.framing import Connection
from unisono.bootstrap.handshake import (
    LONGEST_HELLO,
    PREAMBLE_BYTES,
    PROTOCOL,
    Hello,
    error_to_dict,
    hello_from,
    protocol_of,
)
from unisono.bootstrap.job_identity import differences
from unisono.bootstrap.locality import namespace_problem
from unisono.errors import CollectiveTimeout, CommError, MismatchError, PeerLost, UnisonoError, UsageError

GREETING_S = 5.0  # for a connection to say everything
SETTLING_S = 1.0  # for a better candidate to come
LOOK_EVERY_S = 0.2
MOST_UNKNOWN = 64  # connections that have not said yet which rank they are, beside one for each rank
MOST_AT_ONCE = 32  # connections accepted before others are served
BACKLOG = 4096


class RendezvousHooks:
    """What somebody may want to do while rank 0 waits for the others, or the others wait for rank 0."""

    timeout_hint = "give connect() a longer connect_timeout"  # what to do where ranks are late

    def on_listening(self) -> None:
        """Be told that the others can come now."""

    def poll(self) -> None:
        """Be asked now and then; may raise, and so end the rendezvous."""

    def on_complete(self) -> None:
        """Be told that all have come, before they are told it themselves."""


@dataclass(eq=False)
class Peer:
    """A rank that has come, or says so."""

    connection: Connection
    hello: Hello


def advice_on_names(identity: RankIdentity) -> str:
    """Return what to do where two jobs have the same name."""
    if identity.by_hand:
        return "give every job a MASTER_PORT of its own"
    return "one process may have inherited the environment of the other: only one of them can be a rank"


class RendezvousServer:
    """Receives all ranks but rank 0. ``own`` is what rank 0 would say of itself; its looks are empty where nothing
    but a rank of this job can find us.
    """

    def __init__(self, identity: RankIdentity, own: Hello, hooks: RendezvousHooks) -> None:
        self.identity, self.own, self.hooks = identity, own, hooks
        self.ends_s = time.monotonic() + own.timeout_s
        self.patience_s = own.timeout_s  # of the rank whose time ends first
        self.peers: dict[int, Peer] = {}
        self.candidates: dict[Peer, float] = {}  # since when
        self.rivals: list[Hello] = []
        self.refused: list[str] = []  # what was wrong with processes of this user, for the message if ranks are late
        self._unknown: dict[Connection, float] = {}  # until when
        self._proved: set[Connection] = set()  # of these, that know the secret
        self._selector = PollSelector()  # needs no descriptor

    def accept_all(self, listener: socket.socket, secret: str) -> None:
        """Return when all ranks have come."""
        listener.setblocking(False)
        self._selector.register(listener, EVENT_READ)
        try:
            self._serve(listener, secret)
        except BaseException as error:
            self.fail_all(error, listener)
            raise
        finally:
            self._selector.close()
            for connection in [*self._unknown, *(candidate.connection for candidate in self.candidates)]:
                connection.close()

    def fail_all(self, error: BaseException, listener: socket.socket | None = None) -> None:
        """Tell every rank why the meeting has failed, and close the connections."""
        message = error_to_dict(error, 0)
        peers = [*self.peers.values(), *self.candidates]
        self._part_from([*self._unknown, *(peer.connection for peer in peers)], message)
        if listener is None:
            return
        with suppress(OSError, UnisonoError):  # those that have just come are told, too
            listener.shutdown(socket.SHUT_RDWR)  # and nobody comes after them
            while self._accept(listener):
                self._part_from(list(self._unknown), message)
        self._part_from(list(self._unknown), message)

    def _part_from(self, connections: list[Connection], message: dict[str, Any]) -> None:
        for connection in connections:
            with suppress(OSError):
                connection.send(message)
            self._drop(connection)

    def _serve(self, listener: socket.socket, secret: str) -> None:
        look_s = time.monotonic() + LOOK_EVERY_S
        while len(self.peers) < self.identity.size - 1:
            now_s = time.monotonic()
            if now_s >= self.ends_s:
                raise self._too_late()
            if now_s >= look_s:
                look_s = now_s + LOOK_EVERY_S
                self.hooks.poll()
            self._drop_slow(now_s)
            settled_s = self._settled_s()
            if now_s >= settled_s:
                self._admit_claimants()
                continue
            wake_s = min(self.ends_s, look_s, settled_s, *self._unknown.values())
            for key, _ in self._selector.select(wake_s - now_s):
                if key.fileobj is listener:
                    self._accept(listener)
                elif isinstance(key.data, Peer):
                    self._hear(key.data)
                elif key.data in self._unknown:
                    self._greet(key.data, secret)

    def _too_late(self) -> CollectiveTimeout:
        missing = ", ".join(str(rank) for rank in range(1, self.identity.size) if rank not in self.peers)
        refused = f" ({'; '.join(self.refused[:3])})" if self.refused else ""
        return CollectiveTimeout(
            f"connect: after {self.patience_s:g} s these ranks of {self.identity.size} have not arrived: {missing}"
            f"{refused}; see whether they were started, or {self.hooks.timeout_hint}"
        )

    def _accept(self, listener: socket.socket) -> bool:
        """Accept connections; return whether there may be more."""
        for _ in range(MOST_AT_ONCE):
            try:
                sock, _ = listener.accept()
            except BlockingIOError:
                return False
            except ConnectionAbortedError:
                continue
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    raise CommError(
                        f"connect: rank 0 has no file descriptor left for the connections of {self.identity.size} "
                        f"ranks ({error.strerror}); raise the limit (ulimit -n)",
                        rank=0,
                    ) from error
                raise
            connection = Connection(sock)
            if connection.user != getuid():
                connection.close()
                continue
            if len(self._unknown) >= MOST_UNKNOWN + self.identity.size:
                self._drop(next(iter(self._unknown)))
            self._unknown[connection] = time.monotonic() + GREETING_S
            self._selector.register(connection, EVENT_READ, connection)
        return True

    def _drop_slow(self, now_s: float) -> None:
        for connection in [connection for connection, until_s in self._unknown.items() if now_s >= until_s]:
            self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        """Close a connection."""
        self._unknown.pop(connection, None)
        with suppress(KeyError):  # not watched any more
            self._selector.unregister(connection)
        connection.close()

    def _refuse(self, connection: Connection, error: UnisonoError) -> None:
        """Close a connection of this job and say why; the meeting goes on."""
        self.refused.append(f"process {connection.process} was refused: {error}")
        with suppress(OSError):
            connection.send(error_to_dict(error, 0))
        self._drop(connection)

    def _greet(self, connection: Connection, secret: str) -> None:
        """Read on: first the proof that the connection belongs to the job, then which rank it is."""
        try:
            is_open = connection.read()
            if not self._is_known(connection, secret):
                if not is_open:
                    self._drop(connection)
                return
            message = connection.take(LONGEST_HELLO)
            if message is None:
                if not is_open:
                    self._drop(connection)
                return
            hello = hello_from(message)
            if hello.mine.keys() != self.own.mine.keys():
                raise ValueError(f"facts named {sorted(hello.mine)}")
        except ValueError as error:
            self._refuse(
                connection, CommError(f"connect: rank 0 does not understand process {connection.process}: {error}")
            )
        except OSError:
            self._drop(connection)
        else:
            self._unknown.pop(connection)
            self._selector.modify(connection, EVENT_READ, peer := Peer(connection, hello))
            self._consider(peer)

    def _is_known(self, connection: Connection, secret: str) -> bool:
        """Whether the connection has proved that it belongs to the job; one that cannot is closed."""
        if connection in self._proved:
            return True
        if len(connection.received) < PREAMBLE_BYTES:
            return False
        protocol = protocol_of(bytes(connection.received[:PREAMBLE_BYTES]), secret)
        if protocol is None:
            self._drop(connection)
            return False
        if protocol != PROTOCOL:
            raise MismatchError(f"connect: process {connection.process} runs another version of Unisono than rank 0")
        del connection.received[:PREAMBLE_BYTES]
        self._proved.add(connection)
        return True

    def _consider(self, peer: Peer) -> None:
        """Decide about a process that says which rank it is."""
        hello, size = peer.hello, self.identity.size
        ours = not self.own.fingerprint or hello.fingerprint == self.own.fingerprint
        if hello.rank == 0:
            self._refuse_rival(peer)
            return
        problem: UnisonoError | None = None
        if hello.size != size:
            problem = MismatchError(
                f"connect: rank {hello.rank} was told that there are {hello.size} ranks, rank 0 that there are {size}"
            )
        elif not 0 < hello.rank < size or (hello.rank in self.peers and not self.own.fingerprint):
            problem = MismatchError(f"connect: there are two of rank {hello.rank}, or it is none of 0 to {size - 1}")
        elif hello.process_namespace != self.own.process_namespace:
            problem = UsageError(
                "connect: "
                + namespace_problem(hello.rank, "PID", hello.process_namespace, self.own.process_namespace)
            )
        if problem is None and hello.rank in self.peers:
            self._refuse(peer.connection, self._two_jobs(peer))
        elif problem is None and ours:
            self._admit(peer)
        elif problem is None:
            self.candidates[peer] = time.monotonic()
            self._refuse_ranks_of_rivals()
        elif ours:
            self._part_from([peer.connection], error_to_dict(problem, 0))
            raise problem
        else:
            self._refuse(peer.connection, problem)

    def _admit(self, peer: Peer) -> None:
        hello = peer.hello
        self.peers[hello.rank] = peer
        if peer.connection.received:
            raise self._speaks_unasked(peer)
        ends_s = time.monotonic() + max(0.0, hello.left_s)
        if ends_s < self.ends_s:  # its error, too, is to name the ranks that are missing
            self.ends_s, self.patience_s = ends_s, hello.timeout_s
        for candidate in [other for other in self.candidates if other.hello.rank == hello.rank]:
            self._dismiss(candidate, self._two_jobs(candidate))

    def _dismiss(self, candidate: Peer, error: UnisonoError) -> None:
        del self.candidates[candidate]
        self._refuse(candidate.connection, error)

    def _two_jobs(self, late: Peer) -> MismatchError:
        rank = late.hello.rank
        taken = self.peers.get(rank)
        differs = differences(late.hello.fingerprint, self.own.fingerprint)
        return MismatchError(
            f"connect: process {late.connection.process} is not a rank of the job of process {getpid()}, which has "
            f"the same name ({self.identity.job})"
            + (f" and whose rank {rank} is process {taken.connection.process}" if taken else "")
            + (f"; they differ in {differs}" if differs else "")
            + f"; {advice_on_names(self.identity)}",
            rank=rank,
        )

    def _refuse_rival(self, rival: Peer) -> None:
        self.rivals.append(rival.hello)
        self._refuse(
            rival.connection,
            UsageError(
                f"connect: process {rival.connection.process} is rank 0 of a job with the name "
                f"{self.identity.job!r}, but so is process {getpid()}, which waits for its ranks; "
                f"{advice_on_names(self.identity)}"
            ),
        )
        self._refuse_ranks_of_rivals()

    def _refuse_ranks_of_rivals(self) -> None:
        for candidate in list(self.candidates):
            if any(candidate.hello.fingerprint == rival.fingerprint for rival in self.rivals):
                self._dismiss(candidate, self._two_jobs(candidate))

    def _settled_s(self) -> float:
        """Return when candidates become peers: a while after there is one for every rank that has not come."""
        candidate_ranks = {candidate.hello.rank for candidate in self.candidates}
        if len(candidate_ranks) + len(self.peers) < self.identity.size - 1:
            return float("inf")
        return max(self.candidates.values()) + SETTLING_S

    def _admit_claimants(self) -> None:
        ranks = [candidate.hello.rank for candidate in self.candidates]
        twice = {rank for rank in ranks if ranks.count(rank) > 1}
        if twice:
            who = ", ".join(
                f"{candidate.connection.process} as rank {candidate.hello.rank}"
                for candidate in self.candidates
                if candidate.hello.rank in twice
            )
            raise MismatchError(
                f"connect: several jobs have the same name ({self.identity.job}), and rank 0 cannot tell which of "
                f"these processes are its ranks: {who}; {advice_on_names(self.identity)}"
            )
        for candidate in list(self.candidates):
            del self.candidates[candidate]
            self._admit(candidate)

    def _hear(self, peer: Peer) -> None:
        """A rank that waits has something to say, or has gone."""
        rank, process = peer.hello.rank, peer.connection.process
        if peer in self.candidates:
            if not peer.connection.read():
                del self.candidates[peer]
                self._drop(peer.connection)
            return
        if self.peers.get(rank) is not peer:
            return  # refused meanwhile
        if not peer.connection.read():
            raise PeerLost(
                f"connect: rank {rank} (process {process}) has gone away before all ranks had arrived", rank=rank
            )
        raise self._speaks_unasked(peer)

    def _speaks_unasked(self, peer: Peer) -> CommError:
        rank = peer.hello.rank
        return CommError(
            f"connect: rank {rank} (process {peer.connection.process}) speaks before it is asked", rank=rank
        )
