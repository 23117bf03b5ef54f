"""Rank 0's side of a meeting, until all ranks have come.

One loop serves all connections, and none of them can hold up the others: a connection of another user is closed
before a byte of it is read; any other one has a few seconds, in all, to prove that it belongs to the job and to say
which rank it is; and only a bounded number of them is open at a time.

A **guest** is a rank that has come. A **claimant** says that it is a rank, but does not look like a rank of this job
(looks.py): it becomes a guest only if no better one comes soon. A **rival** says that it is rank 0, too.
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

from unisono.bootstrap.environment import Place
from unisono.bootstrap.framing import Line
from unisono.bootstrap.handshake import (
    LONGEST_HELLO,
    PREAMBLE_BYTES,
    PROTOCOL,
    Hello,
    hello_from,
    message_of,
    protocol_of,
)
from unisono.bootstrap.job_identity import differences
from unisono.bootstrap.locality import namespace_problem
from unisono.errors import CollectiveTimeout, CommError, MismatchError, PeerLost, UnisonoError, UsageError

GREETING_S = 5.0  # for a connection to say everything
SETTLING_S = 1.0  # for a better claimant to come
LOOK_EVERY_S = 0.2
MOST_UNKNOWN = 64  # connections that have not said yet which rank they are, beside one for each rank
MOST_AT_ONCE = 32  # connections accepted before others are served
BACKLOG = 4096


class Host:
    """What somebody may want to do while rank 0 waits for the others, or the others wait for rank 0."""

    more_time = "give connect() a longer connect_timeout"  # what to do where ranks are late

    def opened(self) -> None:
        """Be told that the others can come now."""

    def look(self) -> None:
        """Be asked now and then; may raise, and so end the meeting."""

    def all_here(self) -> None:
        """Be told that all have come, before they are told it themselves."""


@dataclass(eq=False)
class Guest:
    """A rank that has come, or says so."""

    line: Line
    hello: Hello


def advice_on_names(place: Place) -> str:
    """Return what to do where two jobs have the same name."""
    if place.by_hand:
        return "give every job a MASTER_PORT of its own"
    return "one process may have inherited the environment of the other: only one of them can be a rank"


class Reception:
    """Receives all ranks but rank 0. ``own`` is what rank 0 would say of itself; its looks are empty where nothing
    but a rank of this job can find us.
    """

    def __init__(self, place: Place, own: Hello, host: Host) -> None:
        self.place, self.own, self.host = place, own, host
        self.ends_s = time.monotonic() + own.timeout_s
        self.patience_s = own.timeout_s  # of the rank whose time ends first
        self.guests: dict[int, Guest] = {}
        self.claimants: dict[Guest, float] = {}  # since when
        self.rivals: list[Hello] = []
        self.refused: list[str] = []  # what was wrong with processes of this user, for the message if ranks are late
        self._unknown: dict[Line, float] = {}  # until when
        self._proved: set[Line] = set()  # of these, that know the secret
        self._selector = PollSelector()  # needs no descriptor

    def receive_all(self, listener: socket.socket, secret: str) -> None:
        """Return when all ranks have come."""
        listener.setblocking(False)
        self._selector.register(listener, EVENT_READ)
        try:
            self._serve(listener, secret)
        except BaseException as error:
            self.tell_all(error, listener)
            raise
        finally:
            self._selector.close()
            for line in [*self._unknown, *(claimant.line for claimant in self.claimants)]:
                line.close()

    def tell_all(self, error: BaseException, listener: socket.socket | None = None) -> None:
        """Tell every rank why the meeting has failed, and close the connections."""
        message = message_of(error, 0)
        guests = [*self.guests.values(), *self.claimants]
        self._part_from([*self._unknown, *(guest.line for guest in guests)], message)
        if listener is None:
            return
        with suppress(OSError, UnisonoError):  # those that have just come are told, too
            listener.shutdown(socket.SHUT_RDWR)  # and nobody comes after them
            while self._accept(listener):
                self._part_from(list(self._unknown), message)
        self._part_from(list(self._unknown), message)

    def _part_from(self, lines: list[Line], message: dict[str, Any]) -> None:
        for line in lines:
            with suppress(OSError):
                line.send(message)
            self._drop(line)

    def _serve(self, listener: socket.socket, secret: str) -> None:
        look_s = time.monotonic() + LOOK_EVERY_S
        while len(self.guests) < self.place.size - 1:
            now_s = time.monotonic()
            if now_s >= self.ends_s:
                raise self._too_late()
            if now_s >= look_s:
                look_s = now_s + LOOK_EVERY_S
                self.host.look()
            self._drop_slow(now_s)
            settled_s = self._settled_s()
            if now_s >= settled_s:
                self._admit_claimants()
                continue
            wake_s = min(self.ends_s, look_s, settled_s, *self._unknown.values())
            for key, _ in self._selector.select(wake_s - now_s):
                if key.fileobj is listener:
                    self._accept(listener)
                elif isinstance(key.data, Guest):
                    self._hear(key.data)
                elif key.data in self._unknown:
                    self._greet(key.data, secret)

    def _too_late(self) -> CollectiveTimeout:
        missing = ", ".join(str(rank) for rank in range(1, self.place.size) if rank not in self.guests)
        refused = f" ({'; '.join(self.refused[:3])})" if self.refused else ""
        return CollectiveTimeout(
            f"connect: after {self.patience_s:g} s these ranks of {self.place.size} have not arrived: {missing}"
            f"{refused}; see whether they were started, or {self.host.more_time}"
        )

    def _accept(self, listener: socket.socket) -> bool:
        """Accept connections; return whether there may be more."""
        for _ in range(MOST_AT_ONCE):
            try:
                connection, _ = listener.accept()
            except BlockingIOError:
                return False
            except ConnectionAbortedError:
                continue
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    raise CommError(
                        f"connect: rank 0 has no file descriptor left for the connections of {self.place.size} ranks "
                        f"({error.strerror}); raise the limit (ulimit -n)",
                        rank=0,
                    ) from error
                raise
            line = Line(connection)
            if line.user != getuid():
                line.close()
                continue
            if len(self._unknown) >= MOST_UNKNOWN + self.place.size:
                self._drop(next(iter(self._unknown)))
            self._unknown[line] = time.monotonic() + GREETING_S
            self._selector.register(line, EVENT_READ, line)
        return True

    def _drop_slow(self, now_s: float) -> None:
        for line in [line for line, until_s in self._unknown.items() if now_s >= until_s]:
            self._drop(line)

    def _drop(self, line: Line) -> None:
        """Close a connection."""
        self._unknown.pop(line, None)
        with suppress(KeyError):  # not watched any more
            self._selector.unregister(line)
        line.close()

    def _refuse(self, line: Line, error: UnisonoError) -> None:
        """Close a connection of this job and say why; the meeting goes on."""
        self.refused.append(f"process {line.process} was refused: {error}")
        with suppress(OSError):
            line.send(message_of(error, 0))
        self._drop(line)

    def _greet(self, line: Line, secret: str) -> None:
        """Read on: first the proof that the connection belongs to the job, then which rank it is."""
        try:
            is_open = line.read()
            if not self._is_known(line, secret):
                if not is_open:
                    self._drop(line)
                return
            message = line.take(LONGEST_HELLO)
            if message is None:
                if not is_open:
                    self._drop(line)
                return
            hello = hello_from(message)
            if hello.mine.keys() != self.own.mine.keys():
                raise ValueError(f"facts named {sorted(hello.mine)}")
        except ValueError as error:
            self._refuse(line, CommError(f"connect: rank 0 does not understand process {line.process}: {error}"))
        except OSError:
            self._drop(line)
        else:
            self._unknown.pop(line)
            self._selector.modify(line, EVENT_READ, guest := Guest(line, hello))
            self._consider(guest)

    def _is_known(self, line: Line, secret: str) -> bool:
        """Whether the connection has proved that it belongs to the job; one that cannot is closed."""
        if line in self._proved:
            return True
        if len(line.received) < PREAMBLE_BYTES:
            return False
        protocol = protocol_of(bytes(line.received[:PREAMBLE_BYTES]), secret)
        if protocol is None:
            self._drop(line)
            return False
        if protocol != PROTOCOL:
            raise MismatchError(f"connect: process {line.process} runs another version of Unisono than rank 0")
        del line.received[:PREAMBLE_BYTES]
        self._proved.add(line)
        return True

    def _consider(self, guest: Guest) -> None:
        """Decide about a process that says which rank it is."""
        hello, size = guest.hello, self.place.size
        ours = not self.own.looks or hello.looks == self.own.looks
        if hello.rank == 0:
            self._refuse_rival(guest)
            return
        problem: UnisonoError | None = None
        if hello.size != size:
            problem = MismatchError(
                f"connect: rank {hello.rank} was told that there are {hello.size} ranks, rank 0 that there are {size}"
            )
        elif not 0 < hello.rank < size or (hello.rank in self.guests and not self.own.looks):
            problem = MismatchError(f"connect: there are two of rank {hello.rank}, or it is none of 0 to {size - 1}")
        elif hello.process_namespace != self.own.process_namespace:
            problem = UsageError(
                "connect: "
                + namespace_problem(hello.rank, "PID", hello.process_namespace, self.own.process_namespace)
            )
        if problem is None and hello.rank in self.guests:
            self._refuse(guest.line, self._two_jobs(guest))
        elif problem is None and ours:
            self._admit(guest)
        elif problem is None:
            self.claimants[guest] = time.monotonic()
            self._refuse_ranks_of_rivals()
        elif ours:
            self._part_from([guest.line], message_of(problem, 0))
            raise problem
        else:
            self._refuse(guest.line, problem)

    def _admit(self, guest: Guest) -> None:
        hello = guest.hello
        self.guests[hello.rank] = guest
        if guest.line.received:
            raise self._speaks_unasked(guest)
        ends_s = time.monotonic() + max(0.0, hello.left_s)
        if ends_s < self.ends_s:  # its error, too, is to name the ranks that are missing
            self.ends_s, self.patience_s = ends_s, hello.timeout_s
        for claimant in [other for other in self.claimants if other.hello.rank == hello.rank]:
            self._dismiss(claimant, self._two_jobs(claimant))

    def _dismiss(self, claimant: Guest, error: UnisonoError) -> None:
        del self.claimants[claimant]
        self._refuse(claimant.line, error)

    def _two_jobs(self, late: Guest) -> MismatchError:
        rank = late.hello.rank
        taken = self.guests.get(rank)
        differs = differences(late.hello.looks, self.own.looks)
        return MismatchError(
            f"connect: process {late.line.process} is not a rank of the job of process {getpid()}, which has the "
            f"same name ({self.place.job})"
            + (f" and whose rank {rank} is process {taken.line.process}" if taken else "")
            + (f"; they differ in {differs}" if differs else "")
            + f"; {advice_on_names(self.place)}",
            rank=rank,
        )

    def _refuse_rival(self, rival: Guest) -> None:
        self.rivals.append(rival.hello)
        self._refuse(
            rival.line,
            UsageError(
                f"connect: process {rival.line.process} is rank 0 of a job with the name {self.place.job!r}, but so "
                f"is process {getpid()}, which waits for its ranks; {advice_on_names(self.place)}"
            ),
        )
        self._refuse_ranks_of_rivals()

    def _refuse_ranks_of_rivals(self) -> None:
        for claimant in list(self.claimants):
            if any(claimant.hello.looks == rival.looks for rival in self.rivals):
                self._dismiss(claimant, self._two_jobs(claimant))

    def _settled_s(self) -> float:
        """Return when claimants become guests: a while after there is one for every rank that has not come."""
        claimed = {claimant.hello.rank for claimant in self.claimants}
        if len(claimed) + len(self.guests) < self.place.size - 1:
            return float("inf")
        return max(self.claimants.values()) + SETTLING_S

    def _admit_claimants(self) -> None:
        ranks = [claimant.hello.rank for claimant in self.claimants]
        twice = {rank for rank in ranks if ranks.count(rank) > 1}
        if twice:
            who = ", ".join(
                f"{claimant.line.process} as rank {claimant.hello.rank}"
                for claimant in self.claimants
                if claimant.hello.rank in twice
            )
            raise MismatchError(
                f"connect: several jobs have the same name ({self.place.job}), and rank 0 cannot tell which of these "
                f"processes are its ranks: {who}; {advice_on_names(self.place)}"
            )
        for claimant in list(self.claimants):
            del self.claimants[claimant]
            self._admit(claimant)

    def _hear(self, guest: Guest) -> None:
        """A rank that waits has something to say, or has gone."""
        rank, process = guest.hello.rank, guest.line.process
        if guest in self.claimants:
            if not guest.line.read():
                del self.claimants[guest]
                self._drop(guest.line)
            return
        if self.guests.get(rank) is not guest:
            return  # refused meanwhile
        if not guest.line.read():
            raise PeerLost(
                f"connect: rank {rank} (process {process}) has gone away before all ranks had arrived", rank=rank
            )
        raise self._speaks_unasked(guest)

    def _speaks_unasked(self, guest: Guest) -> CommError:
        rank = guest.hello.rank
        return CommError(f"connect: rank {rank} (process {guest.line.process}) speaks before it is asked", rank=rank)
