"""Messages over a Unix or TCP socket that never blocks.

A message is a JSON object, preceded by its length in 4 bytes. Nothing here waits, except ``wait_for_message``, so one
process can serve many connections, and a peer that stops in the middle of a message delays no other.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
import time
from collections.abc import Sequence
from select import POLLIN, POLLOUT, poll
from typing import Any

from unisono.message import Message

LENGTH = struct.Struct("=I")
READ_BYTES = 1 << 16
# The kernel of a peer that does not answer for this time is unreachable. That of a stopped process answers.
SILENCE_S = 4
UNREACHABLE = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH)
LONGEST_MESSAGE = 1 << 20


class TlsFailure(OSError):
    """TLS has failed. ``is_final``: another attempt would fail, too. ``is_plain``: the peer does not use TLS."""

    def __init__(self, reason: Message, *, is_final: bool, is_plain: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.is_final, self.is_plain = reason, is_final, is_plain


class Connection:
    """A connection.

    ``process`` and ``user`` are those of the peer, as reported by the kernel; over TCP, where it does not know them,
    they are 0 and -1. With TLS (tls_connection.py), ``certificate`` is the digest of the peer's certificate, and
    ``binding`` that of the client's and the server's; otherwise they are empty.
    """

    certificate = b""
    binding = b""
    unreachable = ""  # why the peer can no longer be reached, if its end was not orderly

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.socket = sock
        self.process, self.user = 0, -1
        if sock.family == socket.AF_UNIX:
            credentials = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            self.process, self.user = int(credentials[0]), int(credentials[1])
        self.received = bytearray()
        self.descriptors: list[int] = []  # received with the messages
        self._unsent = bytearray()

    def fileno(self) -> int:
        """Return the descriptor, for select and poll."""
        return self.socket.fileno()

    def send(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        """Send as much of a message as the socket accepts now; ``flush`` sends the rest."""
        body = json.dumps(message).encode()
        self.send_bytes(LENGTH.pack(len(body)) + body, descriptors)

    def send_bytes(self, data: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send bytes as ``send`` does."""
        if descriptors:  # they travel with the first byte
            sent = socket.send_fds(self.socket, [data], list(descriptors), socket.MSG_NOSIGNAL)
            data = data[sent:]
        self._unsent += data
        self.flush()

    def flush(self) -> bool:
        """Send as much as the socket accepts now; return whether everything is sent."""
        while self._unsent:
            try:
                del self._unsent[: self.socket.send(self._unsent, socket.MSG_NOSIGNAL)]
            except BlockingIOError:
                return False
            except OSError as error:
                if error.errno not in UNREACHABLE:
                    raise
                self.unreachable = os.strerror(error.errno)
                raise BrokenPipeError(errno.EPIPE, error.strerror) from error
        return True

    def read(self, *, descriptors: int = 0) -> bool:
        """Read the bytes that have arrived; return False if the peer has closed the connection.

        Up to ``descriptors`` descriptors that come with them are accepted; the kernel closes the others.
        """
        try:
            if descriptors:
                data, received, _, _ = socket.recv_fds(self.socket, READ_BYTES, descriptors, socket.MSG_CMSG_CLOEXEC)
                self.descriptors += received
            else:
                data = self._receive()
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False
        self.received += data
        return bool(data)

    def _receive(self) -> bytes:
        """Return the bytes that have arrived; none at the end, also if the peer can no longer be reached."""
        try:
            return self.socket.recv(READ_BYTES)
        except OSError as error:
            if error.errno not in UNREACHABLE:
                raise
            self.unreachable = os.strerror(error.errno)
            return b""

    def watch_peer(self) -> None:
        """Let the kernel end the connection, over TCP, if that of the peer does not answer for ``SILENCE_S``."""
        for option, value in (
            (socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_USER_TIMEOUT, SILENCE_S * 1000)
        ):  # fmt: skip
            self.socket.setsockopt(socket.IPPROTO_TCP, option, value)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def take(self, longest: int = LONGEST_MESSAGE) -> dict[str, Any] | None:
        """Return the next message, or None if it is not complete; ValueError if it is not a message."""
        if len(self.received) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(self.received)
        if length > longest:
            raise ValueError(f"a message of {length} bytes; expected at most {longest}")
        end = LENGTH.size + length
        if len(self.received) < end:
            return None
        body = bytes(self.received[LENGTH.size : end])
        del self.received[:end]
        try:
            message = json.loads(body)
        except RecursionError:
            raise ValueError("a message that is nested too deeply") from None
        if not isinstance(message, dict):
            raise ValueError(f"a message that is a {type(message).__name__}; expected an object")
        return message

    def wait_for_message(self, ends_s: float, *, descriptors: int = 0) -> dict[str, Any] | None:
        """Return the next message, or None if the peer has closed the connection; TimeoutError at ``ends_s``."""
        watch = poll()
        while (message := self.take()) is None:
            left_s = ends_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            watch.register(self, POLLIN if self._all_sent() else POLLIN | POLLOUT)
            if watch.poll(left_s * 1000) and not self.read(descriptors=descriptors):
                return self.take()
        return message

    def send_all(self, ends_s: float) -> None:
        """Send what is left of the messages; return at ``ends_s`` at the latest."""
        watch = poll()
        watch.register(self, POLLOUT)
        while not self.flush() and (left_s := ends_s - time.monotonic()) > 0:
            watch.poll(left_s * 1000)

    def _all_sent(self) -> bool:
        """Send the rest; a peer that has closed the connection may have sent a message before."""
        try:
            return self.flush()
        except (BrokenPipeError, ConnectionResetError):
            return True

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()
