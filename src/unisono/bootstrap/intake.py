"""Connections of processes that may not belong to the job.

None of them can delay the others: each has a few seconds to prove that it belongs to the job and to send its hello,
and only a bounded number of them is open at a time. When there are more, the oldest of those that have achieved the
least is closed, but none that has proved that it belongs to the job. A rank that was closed in this way connects
again.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from selectors import EVENT_READ, PollSelector
from typing import Any

from unisono.bootstrap import messages
from unisono.bootstrap.framing import Connection
from unisono.bootstrap.handshake import LONGEST_HELLO, PREAMBLE_BYTES, PROTOCOL, protocol_of
from unisono.errors import CommError, MismatchError

HELLO_S = 5.0  # the time that a connection has to send its hello
MOST_UNKNOWN = 64  # connections without a hello, beside one for each rank
SILENT, GREETED, PROVED = range(3)  # what a connection has achieved
MOST_AT_ONCE = 32  # connections accepted before others are served


class Intake:
    """Accepts connections and keeps those that have not sent a hello yet.

    ``is_allowed`` says whether to keep a new connection; the others are closed before a byte of them is read.
    ``secure`` returns the connection over a new socket. ``rank`` is the rank that listens.
    """

    def __init__(
        self, rank: int, size: int, is_allowed: Callable[[Connection], bool],
        secure: Callable[[socket.socket], Connection] = Connection,
    ) -> None:  # fmt: skip
        self.rank, self.is_allowed, self.secure = rank, is_allowed, secure
        self.most = MOST_UNKNOWN + size
        self.unknown: dict[Connection, float] = {}  # with the time at which they are closed
        self.achieved: dict[Connection, int] = {}  # by unknown connections; those that are not here are silent
        self.selector = PollSelector()  # needs no descriptor

    def accept(self, listener: socket.socket) -> bool:
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
                    reason = messages.NO_DESCRIPTOR(rank=self.rank, reason=error.strerror)
                    raise CommError(reason, rank=self.rank) from error
                raise
            connection = self.secure(sock)
            if not self.is_allowed(connection):
                connection.close()
                continue
            if len(self.unknown) >= self.most:
                self._make_room()
            self.unknown[connection] = time.monotonic() + HELLO_S
            self.selector.register(connection, EVENT_READ, connection)
        return True

    def read_hello(self, connection: Connection, is_proved: Callable[[], bool]) -> dict[str, Any] | None:
        """Continue to read: first the proof that the connection belongs to the job, then its hello.

        Return the hello when it is complete. A connection that ends before is closed. ValueError: not a message.
        """
        is_open = connection.read()
        message = connection.take(LONGEST_HELLO) if is_proved() else None
        if message is None and not is_open:
            self.drop(connection)
        return message

    def has_proved(self, connection: Connection) -> bool:
        """Return whether a connection has proved that it belongs to the job."""
        return self.achieved.get(connection) == PROVED

    def prove(self, connection: Connection, secret: str) -> bool:
        """Return whether the connection has proved that it knows the secret; one that cannot is closed."""
        if self.has_proved(connection):
            return True
        if len(connection.received) < PREAMBLE_BYTES:
            return False
        protocol = protocol_of(bytes(connection.received[:PREAMBLE_BYTES]), secret)
        if protocol is None:
            self.drop(connection)
            return False
        if protocol != PROTOCOL:
            raise MismatchError(messages.OTHER_VERSION(process=connection.process))
        del connection.received[:PREAMBLE_BYTES]
        self.achieved[connection] = PROVED
        return True

    def _make_room(self) -> None:
        least = min(self.unknown, key=lambda connection: self.achieved.get(connection, SILENT))  # the oldest of them
        if not self.has_proved(least):
            self.drop(least)

    def drop_slow(self, now_s: float) -> None:
        """Close the connections whose time has ended."""
        for connection in [connection for connection, until_s in self.unknown.items() if now_s >= until_s]:
            self.drop(connection)

    def admit(self, connection: Connection, data: Any) -> None:
        """Remove a connection that has sent its hello from the unknown ones; the selector returns ``data`` for it."""
        self.unknown.pop(connection)
        self.achieved.pop(connection, None)
        self.selector.modify(connection, EVENT_READ, data)

    def drop(self, connection: Connection) -> None:
        """Close a connection."""
        self.unknown.pop(connection, None)
        self.achieved.pop(connection, None)
        with suppress(KeyError):  # it is no longer registered
            self.selector.unregister(connection)
        connection.close()

    def dismiss(self, connections: Iterable[Connection], message: dict[str, Any]) -> None:
        """Send a message over connections and close them."""
        for connection in list(connections):
            with suppress(OSError):
                connection.send(message)
            self.drop(connection)

    def close(self) -> None:
        """Close the selector and all unknown connections."""
        self.selector.close()
        for connection in self.unknown:
            connection.close()
