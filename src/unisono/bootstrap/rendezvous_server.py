"""The leader's side of a rendezvous on one host, until all ranks are connected.

The **leader** is the lowest rank of its host; in a job on one host, rank 0. One loop serves all connections, and none
of them can delay the others (intake.py). A connection of another user is closed before a byte of it is read.

A **peer** is a process that has sent a hello. It is **admitted** as a rank if its fingerprint is that of the leader
(job_identity.py). Otherwise it is a **candidate**, which is admitted only if no better one connects soon. A **rival**
claims to be the leader as well.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import getpid, getuid
from selectors import EVENT_READ

from unisono.bootstrap import messages
from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.framing import Connection
from unisono.bootstrap.handshake import Hello, check_names, error_to_dict, hello_from
from unisono.bootstrap.intake import Intake
from unisono.bootstrap.job_identity import differences
from unisono.bootstrap.locality import other_namespace
from unisono.errors import CollectiveTimeout, CommError, MismatchError, PeerLost, UnisonoError, UsageError
from unisono.message import Message, join, listed

SETTLING_S = 1.0  # the time in which a better candidate may connect
POLL_EVERY_S = 0.2
MOST_REFUSALS = 3  # named in an error message
BACKLOG = 4096


class RendezvousHooks:
    """Callbacks while the leader waits for the other ranks, or another rank waits for the leader."""

    timeout_hint: str = messages.HINT_CONNECT_TIMEOUT()  # the hint for ranks that are late
    poll_every_s: float = POLL_EVERY_S

    def on_listening(self) -> None:
        """Called on the leader when the other ranks can connect."""

    def on_port(self, port: int) -> None:
        """Called on rank 0 when ranks of other hosts can connect to this TCP port."""

    def poll(self) -> None:
        """Called regularly; may raise, and so end the rendezvous."""

    def on_complete(self) -> None:
        """Called on the leader when all ranks are connected, before they are told."""


@dataclass(eq=False)
class Peer:
    """A process that has sent a hello."""

    connection: Connection
    hello: Hello


def hint_on_names(identity: RankIdentity) -> Message:
    """Return the hint for two jobs with the same name."""
    return messages.HINT_PORT() if identity.by_hand else messages.HINT_INHERITED()


def hint_on_hosts(identity: RankIdentity, hint: str) -> str:
    """Return a hint for ranks that are missing; where it is not known that all are on this host, it says so."""
    return messages.HINT_OTHER_HOSTS(hint=hint) if identity.local_size_is_assumed else hint


class RendezvousServer:
    """Accepts the connections of all other ranks.

    ``own`` is the hello of the leader, which is the first of ``members``. Its fingerprint is empty if only ranks of
    this job can find the address.
    """

    def __init__(self, identity: RankIdentity, own: Hello, hooks: RendezvousHooks, members: Sequence[int]) -> None:
        self.identity, self.own, self.hooks, self.members = identity, own, hooks, members
        self.leader = members[0]
        self.ends_s = time.monotonic() + own.timeout_s
        self.timeout_s = own.timeout_s  # of the rank whose time ends first
        self.peers: dict[int, Peer] = {}  # admitted, by rank
        self.candidates: dict[Peer, float] = {}  # with the time of their hello
        self.rivals: list[Hello] = []
        self.refusals: list[Message] = []  # of processes of this user, for the message if ranks are late
        self._intake = Intake(self.leader, len(members), lambda connection: connection.user == getuid())

    def accept_all(self, listener: socket.socket, secret: str) -> None:
        """Return when all ranks are admitted."""
        listener.setblocking(False)
        self._intake.selector.register(listener, EVENT_READ)
        try:
            self._serve(listener, secret)
        except BaseException as error:
            self.fail_all(error, listener)
            raise
        finally:
            self._intake.close()
            for candidate in self.candidates:
                candidate.connection.close()

    def fail_all(self, error: BaseException, listener: socket.socket | None = None) -> None:
        """Send the error to every process that is connected, and close the connections."""
        message = error_to_dict(error, self.leader)
        peers = [*self.peers.values(), *self.candidates]
        self._intake.dismiss([*self._intake.unknown, *(peer.connection for peer in peers)], message)
        if listener is None:
            return
        with suppress(OSError, UnisonoError):  # also to those that are just connecting
            listener.shutdown(socket.SHUT_RDWR)  # no process connects after them
            while self._intake.accept(listener):
                self._intake.dismiss(self._intake.unknown, message)
        self._intake.dismiss(self._intake.unknown, message)

    def _serve(self, listener: socket.socket, secret: str) -> None:
        poll_s = time.monotonic() + self.hooks.poll_every_s
        while len(self.peers) < len(self.members) - 1:
            now_s = time.monotonic()
            if now_s >= self.ends_s:
                raise self._timed_out()
            if now_s >= poll_s:
                poll_s = now_s + self.hooks.poll_every_s
                self.hooks.poll()
            self._intake.drop_slow(now_s)
            settled_s = self._settled_s()
            if now_s >= settled_s:
                self._admit_candidates()
                continue
            wake_s = min(self.ends_s, poll_s, settled_s, *self._intake.unknown.values())
            for key, _ in self._intake.selector.select(wake_s - now_s):
                if key.fileobj is listener:
                    self._intake.accept(listener)
                elif isinstance(key.data, Peer):
                    self._on_data(key.data)
                elif key.data in self._intake.unknown:
                    self._read_hello(key.data, secret)

    def _timed_out(self) -> CollectiveTimeout:
        missing = listed(str(rank) for rank in self.members[1:] if rank not in self.peers)
        refused = messages.REFUSALS(refusals=join(self.refusals[:MOST_REFUSALS])) if self.refusals else ""
        return CollectiveTimeout(
            messages.RANKS_MISSING(
                seconds=self.timeout_s, size=self.identity.size, missing=missing, refused=refused,
                hint=hint_on_hosts(self.identity, self.hooks.timeout_hint),
            )
        )  # fmt: skip

    def _refuse(self, connection: Connection, error: UnisonoError) -> None:
        """Close a connection with an error; the rendezvous goes on."""
        self.refusals.append(messages.PROCESS_REFUSED(process=connection.process, reason=error.message))
        self._intake.dismiss([connection], error_to_dict(error, self.leader))

    def _read_hello(self, connection: Connection, secret: str) -> None:
        """Continue to read: first the proof that the connection belongs to the job, then its hello."""
        try:
            message = self._intake.read_hello(connection, lambda: self._intake.prove(connection, secret))
            if message is None:
                return
            hello = hello_from(message)
            check_names(hello.resources, self.own.resources)
        except ValueError as error:
            self._refuse(connection, CommError(messages.BAD_HELLO(process=connection.process, reason=error)))
        except OSError:
            self._intake.drop(connection)
        else:
            self._intake.admit(connection, peer := Peer(connection, hello))
            self._consider(peer)

    def _consider(self, peer: Peer) -> None:
        """Admit a peer, keep it as a candidate, or refuse it."""
        hello = peer.hello
        is_of_this_job = not self.own.fingerprint or hello.fingerprint == self.own.fingerprint
        if hello.rank == self.leader:
            self._refuse_rival(peer)
            return
        problem = self._problem(hello)
        if problem is None and hello.rank in self.peers:
            self._refuse(peer.connection, self._other_job(peer))
        elif problem is None and is_of_this_job:
            self._admit(peer)
        elif problem is None:
            self.candidates[peer] = time.monotonic()
            self._refuse_ranks_of_rivals()
        elif is_of_this_job:
            self._intake.dismiss([peer.connection], error_to_dict(problem, self.leader))
            raise problem
        else:
            self._refuse(peer.connection, problem)

    def _problem(self, hello: Hello) -> UnisonoError | None:
        """Return why a process cannot be a rank of this job."""
        size = self.identity.size
        if hello.size != size:
            return MismatchError(messages.OTHER_SIZE(rank=hello.rank, theirs=hello.size, size=size))
        if hello.rank not in self.members or (hello.rank in self.peers and not self.own.fingerprint):
            return MismatchError(messages.RANK_TWICE(rank=hello.rank, last=size - 1))
        if hello.process_namespace != self.own.process_namespace:
            reason = other_namespace(hello.rank, "PID", hello.process_namespace, self.own.process_namespace)
            return UsageError(messages.CONNECT(reason=reason))
        return None

    def _admit(self, peer: Peer) -> None:
        hello = peer.hello
        self.peers[hello.rank] = peer
        if peer.connection.received:
            raise self._unexpected_data(peer)
        ends_s = time.monotonic() + max(0.0, hello.left_s)
        if ends_s < self.ends_s:  # so that its error, too, names the ranks that are missing
            self.ends_s, self.timeout_s = ends_s, hello.timeout_s
        for candidate in [other for other in self.candidates if other.hello.rank == hello.rank]:
            self._refuse_candidate(candidate)

    def _refuse_candidate(self, candidate: Peer) -> None:
        del self.candidates[candidate]
        self._refuse(candidate.connection, self._other_job(candidate))

    def _other_job(self, peer: Peer) -> MismatchError:
        rank = peer.hello.rank
        admitted = self.peers.get(rank)
        differing = differences(peer.hello.fingerprint, self.own.fingerprint)
        taken = messages.RANK_TAKEN(rank=rank, process=admitted.connection.process) if admitted else ""
        return MismatchError(
            messages.OTHER_JOB(
                process=peer.connection.process, other=getpid(), job=self.identity.job, taken=taken,
                differences=messages.JOBS_DIFFER(differences=differing) if differing else "",
                hint=hint_on_names(self.identity),
            ),
            rank=rank,
        )  # fmt: skip

    def _refuse_rival(self, rival: Peer) -> None:
        self.rivals.append(rival.hello)
        process, job = rival.connection.process, self.identity.job
        message = messages.OTHER_RANK_0(process=process, job=job, other=getpid(), hint=hint_on_names(self.identity))
        self._refuse(rival.connection, UsageError(message))
        self._refuse_ranks_of_rivals()

    def _refuse_ranks_of_rivals(self) -> None:
        for candidate in list(self.candidates):
            if any(candidate.hello.fingerprint == rival.fingerprint for rival in self.rivals):
                self._refuse_candidate(candidate)

    def _settled_s(self) -> float:
        """Return when candidates are admitted: a while after there is one for every rank that is missing."""
        ranks = {candidate.hello.rank for candidate in self.candidates}
        if len(ranks) + len(self.peers) < len(self.members) - 1:
            return float("inf")
        return max(self.candidates.values()) + SETTLING_S

    def _admit_candidates(self) -> None:
        ranks = [candidate.hello.rank for candidate in self.candidates]
        twice = {rank for rank in ranks if ranks.count(rank) > 1}
        if twice:
            processes = [
                messages.PROCESS_AS_RANK(process=candidate.connection.process, rank=candidate.hello.rank)
                for candidate in self.candidates
                if candidate.hello.rank in twice
            ]
            raise MismatchError(
                messages.SEVERAL_JOBS(
                    job=self.identity.job, processes=join(processes, ", ", "、"), hint=hint_on_names(self.identity)
                )
            )
        for candidate in list(self.candidates):
            del self.candidates[candidate]
            self._admit(candidate)

    def _on_data(self, peer: Peer) -> None:
        """Handle data of a peer, or the end of its connection, while it should be waiting."""
        rank, connection = peer.hello.rank, peer.connection
        if peer in self.candidates:
            if not connection.read():
                del self.candidates[peer]
                self._intake.drop(connection)
            return
        if self.peers.get(rank) is not peer:
            return  # it was refused meanwhile
        if not connection.read():
            raise PeerLost(messages.ENDED_BEFORE_CONNECTED(rank=rank, process=connection.process), rank=rank)
        raise self._unexpected_data(peer)

    def _unexpected_data(self, peer: Peer) -> CommError:
        rank = peer.hello.rank
        return CommError(messages.UNEXPECTED_DATA(rank=rank, process=peer.connection.process), rank=rank)
