"""Authorities and certificates for tests, made with the program ``openssl``."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from unisono.bootstrap.tls import Tls

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
needs_openssl = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="SKIPPED, NOT TESTED: TLS (no program openssl)"
)


class Authority:
    """An authority with its files in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.certificate = folder / f"{name}.pem"
        self.key = folder / f"{name}.key"
        _openssl(
            "req", "-x509", *KEY, "-nodes", "-keyout", self.key, "-out", self.certificate, "-subj", f"/CN={name}"
        )

    def issue(self, host: str, password: str = "") -> Tls:
        """Return a certificate for a host."""
        certificate, key = self.folder / f"{self.name}-{host}.pem", self.folder / f"{self.name}-{host}.key"
        _openssl(
            "req", "-x509", "-CA", self.certificate, "-CAkey", self.key, *KEY, "-keyout", key, "-out", certificate,
            "-subj", f"/CN={host}", "-addext", "basicConstraints=critical,CA:FALSE",
            *(("-passout", f"pass:{password}") if password else ("-nodes",)),
        )  # fmt: skip
        return Tls(certificate, key, self.certificate)

    def issue_expired(self, host: str) -> Tls:
        """Return a certificate for a host that has expired."""
        issued = self.issue(host)
        request = self.folder / "request.pem"
        _openssl("req", "-new", "-key", issued.key, "-subj", f"/CN={host}", "-out", request)
        _openssl(
            "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial", "-days",
            "-1", "-out", issued.certificate,
        )  # fmt: skip
        return issued


def _openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, timeout=60)
