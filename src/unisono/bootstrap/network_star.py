"""The connections of a rendezvous between hosts once all ranks are admitted: one from every other rank to rank 0.

In an **exchange**, every rank sends rank 0 a message, and rank 0 answers each of them when it has all messages. If a
rank sends a problem instead, or ends, or is too slow, rank 0 tells all others at once, and all of them raise the same
error.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from select import POLLIN, poll
from typing import Any

from unisono.bootstrap import messages
from unisono.bootstrap import network_messages as network
from unisono.bootstrap.framing import Connection
from unisono.bootstrap.handshake import error_from_dict, error_to_dict
from unisono.bootstrap.network_handshake import NetworkHello
from unisono.errors import CollectiveTimeout, CommError, PeerLost, UnisonoError, UsageError

GRACE_S = 2.0  # the time that rank 0 has to report a problem, after its own time has ended

# Called on rank 0 with the messages of all ranks; returns the answer to each of them.
Answer = Callable[[list[dict[str, Any]]], Sequence[dict[str, Any]]]


@dataclass(eq=False)
class FarPeer:
    """A process that has proved that it belongs to the job, and has sent its hello."""

    connection: Connection
    rank: int
    hello: NetworkHello

    def ended(self) -> PeerLost:
        """Return the error for a rank whose connection has ended."""
        if self.connection.unreachable:
            message = network.FAR_UNREACHABLE(**self._names(), reason=self.connection.unreachable)
            return PeerLost(message, rank=self.rank)
        return PeerLost(network.FAR_ENDED(**self._names()), rank=self.rank)

    def silent(self, seconds: float) -> CollectiveTimeout:
        """Return the error for a rank that is too slow."""
        return CollectiveTimeout(network.FAR_SILENT(**self._names(), seconds=seconds), rank=self.rank)

    def malformed(self, reason: Exception) -> CommError:
        """Return the error for a rank whose message is not understood."""
        return CommError(network.BAD_FAR_MESSAGE(**self._names(), reason=reason), rank=self.rank)

    def _names(self) -> dict[str, Any]:
        return {"rank": self.rank, "process": self.hello.process, "host": self.hello.host["host"]}


class Star(ABC):
    """This rank's part of the star."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.ends_s = time.monotonic() + timeout_s

    def allow_time(self) -> None:
        """Let the next exchange take the full timeout, counted from now."""
        self.ends_s = time.monotonic() + self.timeout_s

    @abstractmethod
    def exchange(self, message: dict[str, Any], answer: Answer) -> dict[str, Any]:
        """Send a message to rank 0, and return its answer; raise if any rank has a problem."""

    @abstractmethod
    def poll(self) -> None:
        """Raise if another rank has reported a problem meanwhile."""

    @abstractmethod
    def fail(self, error: BaseException) -> None:
        """Tell the other ranks that this rank has failed, and close the connections."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""


class StarCenter(Star):
    """Rank 0's part of the star."""

    def __init__(self, peers: dict[int, FarPeer], timeout_s: float) -> None:
        super().__init__(timeout_s)
        self.peers = peers
        self._received: dict[int, dict[str, Any]] = {}  # the next message of each rank

    def exchange(self, message: dict[str, Any], answer: Answer) -> dict[str, Any]:
        """Wait for the messages of all ranks, and answer them."""
        try:
            self._receive(until_all=True)
            received = [message, *(self._received.pop(rank) for rank in sorted(self.peers))]
            answers = answer(received)
            for rank, peer in self.peers.items():
                with suppress(BrokenPipeError, ConnectionResetError):  # the next exchange reports it
                    peer.connection.send(answers[rank])
            self.flush()
            return answers[0]
        except BaseException as error:
            self.fail(error)
            raise

    def poll(self) -> None:
        """Raise if another rank has reported a problem meanwhile, and tell the others."""
        try:
            self._receive(until_all=False)
        except BaseException as error:
            self.fail(error)
            raise

    def fail(self, error: BaseException) -> None:
        """Tell the other ranks, and close the connections."""
        message = error_to_dict(of_another_rank(error, 0), 0)
        for peer in self.peers.values():
            with suppress(OSError):
                peer.connection.send(message)
        with suppress(OSError, UnisonoError):
            self.flush()
        self.close()

    def close(self) -> None:
        """Close the connections."""
        for peer in self.peers.values():
            peer.connection.close()
        self.peers = {}

    def _receive(self, *, until_all: bool) -> None:
        """Read the messages that have arrived; with ``until_all``, wait until every rank has sent one.

        A rank that has sent its message may end meanwhile, too.
        """
        watch, by_descriptor = poll(), {}
        for peer in self.peers.values():
            watch.register(peer.connection, POLLIN)
            by_descriptor[peer.connection.fileno()] = peer
        while True:
            waiting = [peer for rank, peer in self.peers.items() if rank not in self._received]
            if until_all and not waiting:
                return
            left_s = self.ends_s - time.monotonic()
            if left_s <= 0 and until_all:
                raise waiting[0].silent(self.timeout_s)
            ready = watch.poll(left_s * 1000 if until_all else 0)
            for descriptor, _ in ready:
                self._read(by_descriptor[descriptor])
            if not until_all and not ready:
                return

    def _read(self, peer: FarPeer) -> None:
        try:
            is_open = peer.connection.read()
            message = peer.connection.take()
        except (OSError, ValueError) as error:
            raise peer.malformed(error) from error
        if message is None:
            if not is_open:
                raise peer.ended()
            return
        if "problem" in message:
            raise error_from_dict(message)
        if peer.rank in self._received:
            raise peer.malformed(ValueError("a second message"))
        self._received[peer.rank] = message

    def flush(self) -> None:
        """Send the rest of long messages."""
        for peer in self.peers.values():
            with suppress(BrokenPipeError, ConnectionResetError):
                peer.connection.send_all(self.ends_s)


class StarMember(Star):
    """The part of the star of any other rank."""

    def __init__(self, connection: Connection, rank: int, address: str, timeout_s: float) -> None:
        super().__init__(timeout_s)
        self.connection, self.rank, self.address = connection, rank, address

    def exchange(self, message: dict[str, Any], answer: Answer) -> dict[str, Any]:
        """Send a message to rank 0, and return its answer."""
        with suppress(BrokenPipeError, ConnectionResetError):  # rank 0 may have reported a problem before
            self.connection.send(message)
        return self.wait()

    def wait(self) -> dict[str, Any]:
        """Return the next message of rank 0; raise if it reports a problem."""
        try:
            received = self.connection.wait_for_message(self.ends_s + GRACE_S)
        except TimeoutError:
            message = network.RANK_0_QUIET(address=self.address, seconds=self.timeout_s)
            raise CollectiveTimeout(message, rank=0) from None
        except (OSError, ValueError) as error:
            raise CommError(network.BAD_RANK_0_MESSAGE(address=self.address, reason=error), rank=0) from error
        return self._checked(received)

    def poll(self) -> None:
        """Raise if rank 0 has reported a problem meanwhile."""
        try:
            is_open = self.connection.read()
            message = self.connection.take()
        except (OSError, ValueError) as error:
            raise CommError(network.BAD_RANK_0_MESSAGE(address=self.address, reason=error), rank=0) from error
        if message is not None or not is_open:
            self._checked(message)

    def _checked(self, message: dict[str, Any] | None) -> dict[str, Any]:
        if message is None:
            if reason := self.connection.unreachable:
                raise PeerLost(network.RANK_0_LOST(address=self.address, reason=reason), rank=0)
            raise PeerLost(network.RANK_0_ENDED(address=self.address), rank=0)
        if "problem" in message:
            raise error_from_dict(message)
        return message

    def fail(self, error: BaseException) -> None:
        """Tell rank 0, and close the connection."""
        with suppress(OSError):
            self.connection.send(error_to_dict(of_another_rank(error, self.rank), self.rank))
            self.connection.send_all(time.monotonic() + GRACE_S)
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def of_another_rank(error: BaseException, rank: int) -> BaseException:
    """Return an error of ``rank`` as the other ranks raise it: their arguments may have been right."""
    if isinstance(error, UsageError):
        return CommError(messages.ERROR_ON_RANK(rank=rank, reason=error.message), rank=rank)
    return error
