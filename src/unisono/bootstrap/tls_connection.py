"""Messages over TLS; only jobs that use TLS import this module.

OpenSSL works on buffers in memory here, so a connection waits for the same events as one without TLS (framing.py).
The TLS handshake takes place while the first messages are read and sent.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress

from unisono.bootstrap import network_messages as network
from unisono.bootstrap.framing import READ_BYTES, Connection, TlsFailure
from unisono.bootstrap.tls import Tls
from unisono.errors import UsageError

# The TLS alert "protocol version": the two sides have no version in common.
NO_SUCH_VERSION = b"\x15\x03\x03\x00\x02\x02\x46"


class TlsCredentials:
    """The certificate and the key of a rank, and the authority that it trusts, read from files."""

    def __init__(self, tls: Tls) -> None:
        certificate, key, authority = tls.paths
        for path in tls.paths:
            try:
                with open(path, "rb") as file:
                    file.read(1)
            except OSError as error:
                raise UsageError(network.TLS_FILE(path=path, reason=error.strerror)) from error
        try:
            self.certificate = certificate_digest(_first_certificate(certificate))
            self._client, self._server = _context(ssl.PROTOCOL_TLS_CLIENT), _context(ssl.PROTOCOL_TLS_SERVER)
            for context in (self._client, self._server):
                context.load_cert_chain(certificate, key, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            raise UsageError(network.TLS_FILE(path=f"{certificate}, {key}", reason=_reason(error))) from error
        try:
            for context in (self._client, self._server):
                context.load_verify_locations(authority)
        except (ssl.SSLError, ValueError) as error:
            raise UsageError(network.TLS_FILE(path=authority, reason=_reason(error))) from error

    def accept(self, sock: socket.socket) -> TlsConnection:
        """Return the connection of the side that has accepted it."""
        return TlsConnection(sock, self._server, self.certificate, is_server=True)

    def connect(self, sock: socket.socket) -> TlsConnection:
        """Return the connection of the side that has opened it; the socket is connected."""
        connection = TlsConnection(sock, self._client, self.certificate, is_server=False)
        connection.advance()
        return connection


class TlsConnection(Connection):
    """A connection inside TLS. Both sides prove that they own a certificate of the authority."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, own: bytes, *, is_server: bool) -> None:
        super().__init__(sock)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=is_server)
        self._own, self._is_server, self._is_secure = own, is_server, False
        self._waiting = bytearray()  # to be sent after the handshake

    def send_bytes(self, data: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send bytes, once the handshake is complete."""
        assert not descriptors, "descriptors travel between processes of one host only"
        self._waiting += data
        self.advance()

    def read(self, *, descriptors: int = 0) -> bool:
        """Read the bytes that have arrived; return False if the peer has closed the connection."""
        try:
            data = self._receive()
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False
        if not data:
            return False
        self._incoming.write(data)
        self.advance()
        return True

    def advance(self) -> None:
        """Let TLS process received bytes and send waiting ones; TlsFailure if the peer cannot prove its identity."""
        try:
            if not self._is_secure:
                self._tls.do_handshake()
                self._be_secure()
            if self._waiting:
                self._tls.write(self._waiting)  # always whole: the buffer is not limited
                self._waiting.clear()
            while data := self._tls.read(READ_BYTES):
                self.received += data
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            pass  # the end of the connection follows
        except ssl.SSLError as error:
            failure = failure_of(error)
            # Tells the peer the reason. OpenSSL sends nothing to a client without TLS.
            self._unsent += self._outgoing.read() or (NO_SUCH_VERSION if failure.is_plain else b"")
            with suppress(OSError):
                self.flush()
            raise failure from error
        self._unsent += self._outgoing.read()
        self.flush()

    def _be_secure(self) -> None:
        self._is_secure = True
        self.certificate = certificate_digest(self._tls.getpeercert(binary_form=True) or b"")
        ends = (self.certificate, self._own) if self._is_server else (self._own, self.certificate)
        self.binding = b"".join(ends)


def failure_of(error: ssl.SSLError) -> TlsFailure:
    """Return the failure of a handshake; it is final if a certificate was refused, here or by the peer."""
    name = error.reason or ""
    if name in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
        return TlsFailure(network.WITHOUT_TLS(), is_final=False, is_plain=True)
    is_final = isinstance(error, ssl.SSLCertVerificationError) or "_ALERT_" in name
    return TlsFailure(network.TLS_FAILED(reason=_reason(error)), is_final=is_final)


def certificate_digest(certificate: bytes) -> bytes:
    """Return the SHA-256 of a certificate in DER format."""
    return hashlib.sha256(certificate).digest()


def _first_certificate(path: str) -> bytes:
    """Return the first certificate of a file, in DER format."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    with open(path, encoding="utf-8", errors="replace") as file:
        _, found, rest = file.read().partition(begin)
    if not found or end not in rest:
        raise ValueError("no certificate in PEM format")
    return ssl.PEM_cert_to_DER_cert(begin + rest.partition(end)[0] + end)


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        context.num_tickets = 0  # no connection is resumed
    return context


def _no_password() -> str:
    """Return a wrong password; without it, OpenSSL asks for one on the terminal."""
    return ""


def _reason(error: Exception) -> str:
    """Return the reason that OpenSSL gives, such as "certificate verify failed (certificate has expired)"."""
    if not isinstance(error, ssl.SSLError):
        return str(error)
    reason = (error.reason or str(error)).replace("_", " ").lower()
    detail = getattr(error, "verify_message", "")
    return f"{reason} ({detail})" if detail else reason
