"""Admission to a job: processes that join wait at an address until its ranks admit them (docs/adr/0072).

The lowest rank of a communicator listens at an address that only processes with the secret of the job can use, from
the time at which the communicator first grows. A process that joins is an **applicant**. A job has several such
addresses, and an applicant dials all of them: a rank that is stopped, or was excluded, may still listen at one. The
first rank that admits it counts.
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

MOST_ADDRESSES = 8  # of one job at a time
LOOK_EVERY_S = 0.05
DIAL_EVERY_S = 0.1
MOST_APPLICANTS = 1024


class Applicant(NamedTuple):
    """A process that waits to join."""

    connection: Connection
    hello: Hello  # its rank is the one in the job that it would like to have, or -1


def addresses_of(join_address: str) -> list[AbstractAddress]:
    """Return the addresses at which ranks of a job may listen, given its ``join_address``, "NAME:SECRET"."""
    name, separator, secret = join_address.partition(":")
    if not (name and separator and secret):
        raise UsageError(messages.BAD_JOIN_ADDRESS(address=repr(join_address)))
    return [AbstractAddress(f"join-{name}-{number}", secret) for number in range(MOST_ADDRESSES)]


class Admission:
    """The listener of ``rank``, and the applicants that wait."""

    def __init__(self, join_address: str, rank: int) -> None:
        self.rank = rank
        self.applicants: list[Applicant] = []
        self._resources = ExitStack()
        for address in addresses_of(join_address):
            self._secret = self._resources.enter_context(address.reserve())
            listener = self._resources.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            with suppress(OSError):  # a rank that is stopped, or was excluded, listens there
                listener.bind(self._secret.socket)
                listener.listen(BACKLOG)
                listener.setblocking(False)
                break
            self._resources.close()
        else:
            raise CommError(messages.NO_JOIN_ADDRESS(rank=rank, most=MOST_ADDRESSES), rank=rank)
        self._listener = listener
        self._intake = Intake(rank, MOST_APPLICANTS, lambda connection: connection.user == getuid())
        self._intake.selector.register(listener, EVENT_READ)

    def wait_for(self, expected: int | None, ends_s: float, poll: Callable[[], None]) -> list[Applicant]:
        """Return the applicants when there are ``expected``, or at ``ends_s``; ``poll`` is called regularly."""
        while True:
            self._look(0.0)
            now_s = time.monotonic()
            if now_s >= ends_s or (expected is not None and len(self.applicants) >= expected):
                applicants = self.applicants[:expected]
                self.applicants = self.applicants[len(applicants) :]
                return applicants
            poll()
            self._look(min(LOOK_EVERY_S, ends_s - now_s))

    def _look(self, longest_s: float) -> None:
        """Accept applicants, and drop those that have left."""
        self._intake.drop_slow(time.monotonic())
        for _ in range(3):  # to accept a connection, and to read what has arrived on it
            for key, _ in self._intake.selector.select(longest_s):
                if key.fileobj is self._listener:
                    self._intake.accept(self._listener)
                elif key.data in self._intake.unknown:
                    self._greet(key.data)
                elif isinstance(key.data, Applicant):
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
            applicant = Applicant(connection, hello)
            self._intake.admit(connection, applicant)
            self.applicants.append(applicant)

    def _dismiss(self, applicant: Applicant) -> None:
        """Forget a applicant that has sent more than its hello, or has left."""
        if applicant in self.applicants:
            self.applicants.remove(applicant)
        self._intake.drop(applicant.connection)

    def release(self, applicant: Applicant, message: dict[str, Any]) -> None:
        """Send a applicant its message, and close the connection."""
        self._intake.dismiss([applicant.connection], message)

    def close(self) -> None:
        """Stop listening; applicants dial again."""
        self._intake.close()
        for applicant in self.applicants:
            applicant.connection.close()
        self._resources.close()


def apply_at(join_address: str, hello: Hello, ends_s: float, poll: Callable[[], None]) -> dict[str, Any]:
    """Wait at the addresses of a job until a rank admits this process; return its message."""
    addresses = addresses_of(join_address)
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
