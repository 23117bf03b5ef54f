"""The files with which a rank proves its identity over TLS."""

from __future__ import annotations

import os
from dataclasses import dataclass

# With AES-GCM, a key must be replaced after 2^24.5 records of at most 16 KiB (RFC 8446, 5.5).
BYTES_PER_KEY = 1 << 36


@dataclass(frozen=True)
class Tls:
    """Encrypt all connections between hosts with TLS: ``connect(tls=unisono.Tls(...))``.

    The arguments are paths of files in PEM format: ``certificate`` is the certificate of this host (followed by
    intermediate ones, if there are any), ``key`` its private key, without a password, and ``authority`` the
    certificate of the authority that has signed the certificates of all hosts. A process without a certificate of
    this authority is refused. Certificates must be valid for servers and clients; the names in them are not compared
    with host names.
    """

    certificate: str | os.PathLike[str]
    key: str | os.PathLike[str]
    authority: str | os.PathLike[str]

    @property
    def paths(self) -> tuple[str, str, str]:
        """The certificate, the key and the authority, as strings."""
        return os.fspath(self.certificate), os.fspath(self.key), os.fspath(self.authority)
