"""The options of ``unisono run`` and of the verbs that measure hosts which name the files of TLS."""

from __future__ import annotations

import argparse

from unisono.bootstrap.tls import Tls
from unisono.errors import UsageError
from unisono.launch import messages
from unisono.message import listed

TLS_FILES = {
    "certificate": "the certificate of the host",
    "key": "the private key of the host's certificate",
    "authority": "the certificate of the authority that has signed the certificates of all hosts",
}


def add_tls(parser: argparse._ActionsContainer) -> None:
    """Add the options that name the files of TLS."""
    for name, meaning in TLS_FILES.items():
        parser.add_argument(
            f"--tls-{name}", metavar="FILE", help=f"for TLS: {meaning}, at the same path on every host"
        )


def tls_of(args: argparse.Namespace) -> Tls | None:
    """Return the files of TLS that the arguments name; UsageError if some of them are missing."""
    files = {name: getattr(args, f"tls_{name}") for name in TLS_FILES}
    missing = [f"--tls-{name}" for name, path in files.items() if path is None]
    if len(missing) == len(files):
        return None
    if missing:
        raise UsageError(messages.TLS_FILES_MISSING(missing=listed(missing)))
    return Tls(**files)
