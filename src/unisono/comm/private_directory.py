"""The directory in which the ranks of a job meet. Only its owner may enter (0700)."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unisono.comm.environment import Place
from unisono.errors import UsageError

SECRET = "secret"


@contextmanager
def job_directory(place: Place) -> Iterator[int]:
    """Open the directory of the job and yield its descriptor.

    Where our own launcher has not made it, rank 0 does, and removes it; the others find it or not
    (FileNotFoundError).
    """
    launched = place.launcher == "unisono"
    path = Path(place.job) if launched else _path_for(place)
    if not launched and place.rank == 0:
        path.mkdir(mode=0o700, exist_ok=True)
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(directory)
        if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
            raise UsageError(
                f"{path} is not private: expected a directory of user {os.getuid()} with mode 0700, found user "
                f"{status.st_uid} and mode {stat.S_IMODE(status.st_mode):04o}; remove it"
            )
        yield directory
    finally:
        os.close(directory)
        if not launched and place.rank == 0:
            with suppress(OSError):  # it is gone, or not empty
                path.rmdir()


def _path_for(place: Place) -> Path:
    """Return a path that every rank of the job computes alike."""
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    name = hashlib.sha256(f"{place.launcher} {place.job}".encode()).hexdigest()[:16]
    return base / f"unisono-{os.getuid()}-{name}"


def write_secret(directory: int, secret: str) -> str:
    """Store the secret of the job for the other ranks."""
    remove_quietly(directory, SECRET)
    file = os.open(SECRET, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=directory)
    with os.fdopen(file, "w") as out:
        out.write(secret)
    return secret


def read_secret(directory: int) -> str:
    """Return the secret of the job."""
    file = os.open(SECRET, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=directory)
    with os.fdopen(file) as text:
        return text.read().strip()


def remove_quietly(directory: int, name: str) -> None:
    """Remove a file if it is there."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)
