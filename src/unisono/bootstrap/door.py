"""The door of a job: where processes that want to join it wait until its ranks admit them (docs/adr/0072).

The lowest rank of a communicator opens the door, an address that only processes with the secret of the job can use,
when the communicator first grows, and keeps it open. A process that joins is a **visitor**. It dials every door of
the job, because that of a rank that is stopped, or has been excluded, may still be open. The first that admits it
counts.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from os import getuid
from selectors import EVENT_READ
from typing import Any, NamedTuple

from unisono.bootstrap import messages
from unisono.bootstrap.framing import Connection
from unisono.bootstrap.handshake import Hello, error_from_dict, error_to_dict, hello_from
from unisono.bootstrap.intake import Intake
from unisono.bootstrap.locality import other_namespace, process_namespace
from unisono.bootstrap.rendezvous import send_hello, try_dial
from unisono.bootstrap.rendezvous_address import AbstractAddress
from unisono.bootstrap.rendezvous_server import BACKLOG
from unisono.errors import CollectiveTimeout, CommError, UnisonoError, UsageError

MOST_DOORS = 8  # of one job at a time
LOOK_EVERY_S = 0.05
DIAL_EVERY_S = 0.1
MOST_VISITORS = 1024


class Visitor(NamedTuple):
    """A process at the door."""

    connection: Connection
    hello: Hello  # its rank is the one in the job that it would like to have, or -1


def addresses_of(door: str) -> list[AbstractAddress]:
    """Return the addresses of the doors of a job, given as "NAME:SECRET"."""
    name, separator, secret = door.partition(":")
    if not (name and separator and secret):
        raise UsageError(messages.BAD_JOIN_ADDRESS(address=repr(door)))
    return [AbstractAddress(f"door-{name}-{number}", secret) for number in range(MOST_DOORS)]


class Door:
    """The door that ``rank`` has opened."""

    def __init__(self, door: str, rank: int) -> None:
        self.rank = rank
        self.visitors: list[Visitor] = []
        self._resources = ExitStack()
        for address in addresses_of(door):
            self._secret = self._resources.enter_context(address.reserve())
            listener = self._resources.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            with suppress(OSError):  # a rank that is stopped, or was excluded, keeps this one open
                listener.bind(self._secret.socket)
                listener.listen(BACKLOG)
                listener.setblocking(False)
                break
            self._resources.close()
        else:
            raise CommError(messages.NO_DOOR(rank=rank, most=MOST_DOORS), rank=rank)
        self._listener = listener
        self._intake = Intake(rank, MOST_VISITORS, lambda connection: connection.user == getuid())
        self._intake.selector.register(listener, EVENT_READ)

    def wait_for(self, expected: int | None, ends_s: float, poll: Callable[[], None]) -> list[Visitor]:
        """Return the visitors when there are ``expected``, or at ``ends_s``; ``poll`` is called regularly."""
        while True:
            self._look(0.0)
            now_s = time.monotonic()
            if now_s >= ends_s or (expected is not None and len(self.visitors) >= expected):
                visitors = self.visitors[:expected]
                self.visitors = self.visitors[len(visitors) :]
                return visitors
            poll()
            self._look(min(LOOK_EVERY_S, ends_s - now_s))

    def _look(self, longest_s: float) -> None:
        """Accept visitors, and drop those that have left."""
        self._intake.drop_slow(time.monotonic())
        for _ in range(3):  # to accept a connection, and to read what has arrived on it
            for key, _ in self._intake.selector.select(longest_s):
                if key.fileobj is self._listener:
                    self._intake.accept(self._listener)
                elif key.data in self._intake.unknown:
                    self._greet(key.data)
                elif isinstance(key.data, Visitor):
                    self._dismiss(key.data)
            longest_s = 0.0

    def _greet(self, connection: Connection) -> None:
        try:
            message = self._intake.read_hello(
                connection, lambda: self._intake.prove(connection, self._secret.secret())
            )
            if message is None:
                return
            hello = hello_from(message)
            if hello.process_namespace != process_namespace():
                own = process_namespace()
                raise UsageError(
                    messages.JOIN(reason=other_namespace(hello.rank, "PID", hello.process_namespace, own))
                )
        except (ValueError, UnisonoError) as error:
            known = error if isinstance(error, UnisonoError) else CommError(str(error))
            self._intake.dismiss([connection], error_to_dict(known, self.rank))
        except OSError:
            self._intake.drop(connection)
        else:
            visitor = Visitor(connection, hello)
            self._intake.admit(connection, visitor)
            self.visitors.append(visitor)

    def _dismiss(self, visitor: Visitor) -> None:
        """Forget a visitor that has sent more than its hello, or has left."""
        if visitor in self.visitors:
            self.visitors.remove(visitor)
        self._intake.drop(visitor.connection)

    def release(self, visitor: Visitor, message: dict[str, Any]) -> None:
        """Send a visitor its message, and close the connection."""
        self._intake.dismiss([visitor.connection], message)

    def close(self) -> None:
        """Close the door; visitors dial again."""
        self._intake.close()
        for visitor in self.visitors:
            visitor.connection.close()
        self._resources.close()


def knock(door: str, hello: Hello, ends_s: float, poll: Callable[[], None]) -> dict[str, Any]:
    """Wait at the doors of a job until one of them admits this process; return its message."""
    addresses = addresses_of(door)
    lines: dict[int, Connection] = {}
    try:
        while True:
            for number, address in enumerate(addresses):
                if number not in lines and (dialed := try_dial(address)) is not None:
                    lines[number], secret = dialed
                    with suppress(OSError):
                        send_hello(lines[number], secret, hello)
            looks_until_s = min(ends_s, time.monotonic() + DIAL_EVERY_S)
            message = _first_message(lines, looks_until_s)
            if message is not None and "problem" in message:
                raise error_from_dict(message)
            if message is not None:
                return message
            if time.monotonic() >= ends_s:
                raise CollectiveTimeout(messages.NOT_ADMITTED(seconds=f"{hello.timeout_s:g}"))
            poll()
            time.sleep(max(0.0, looks_until_s - time.monotonic()))
    finally:
        for connection in lines.values():
            connection.close()


def _first_message(lines: dict[int, Connection], ends_s: float) -> dict[str, Any] | None:
    """Return the first message that arrives, or None; forget the lines that have closed."""
    while lines:
        for number, connection in list(lines.items()):
            try:
                is_open = connection.read()
                message = connection.take()
            except (OSError, ValueError):
                is_open, message = False, None
            if message is not None:
                return message
            if not is_open:
                lines.pop(number).close()
        if time.monotonic() >= ends_s:
            break
        time.sleep(0.005)
    return None
