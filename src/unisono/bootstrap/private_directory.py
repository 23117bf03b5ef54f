"""The directory in which the ranks of a job meet. Only its owner may enter (0700).

Our launcher makes it for its ranks. For other launchers rank 0 makes one, under a name that every rank can compute,
and holds a lock on it while its ranks come. A directory without a lock is what a rank 0 left behind that was killed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unisono.bootstrap.environment import RankIdentity
from unisono.errors import UsageError

SECRET = "secret"
ADVICE = "remove it, or set XDG_RUNTIME_DIR to a directory that is yours alone, on every rank"


class DirectoryTaken(Exception):
    """Another process is rank 0 in this directory."""


@contextmanager
def job_directory(identity: RankIdentity) -> Iterator[int]:
    """Open the directory of the job and yield its descriptor; FileNotFoundError if it is not there yet."""
    directory = _open(_path_for(identity))
    try:
        yield directory
    finally:
        os.close(directory)


@contextmanager
def directory_of_rank_0(identity: RankIdentity) -> Iterator[int]:
    """Lock the directory of the job and yield its descriptor; DirectoryTaken if another process has locked it.

    Where our own launcher has not made the directory, rank 0 makes it, and removes it.
    """
    path = _path_for(identity)
    if identity.launcher == "unisono":
        with job_directory(identity) as directory:
            _lock(directory)
            yield directory
        return
    directory = _make(path)
    try:
        _remove_abandoned(path)
        yield directory
    finally:
        with suppress(OSError):  # it is gone, or not empty
            path.rmdir()
        os.close(directory)


def _make(path: Path) -> int:
    """Make a directory, or take one that a rank 0 has left behind; return its descriptor."""
    while True:
        try:
            path.mkdir(mode=0o700, exist_ok=True)
            directory = _open(path)
        except FileNotFoundError as error:
            if path.parent.is_dir():  # another job has removed it, as one that nobody uses
                continue
            raise UsageError(f"{path.parent} is not there: ranks cannot meet in it; {ADVICE}") from error
        except OSError as error:
            raise UsageError(f"{path} cannot be made: {error.strerror}; {ADVICE}") from error
        try:
            _lock(directory)
            if os.stat(path).st_ino == os.fstat(directory).st_ino:
                return directory
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(directory)
            raise
        os.close(directory)


def _open(path: Path) -> int:
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (NotADirectoryError, PermissionError) as error:
        raise UsageError(
            f"{path} is not private: expected a directory of user {os.getuid()}: {error.strerror}; {ADVICE}"
        ) from error
    status = os.fstat(directory)
    if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        os.close(directory)
        raise UsageError(
            f"{path} is not private: expected a directory of user {os.getuid()} with mode 0700, found user "
            f"{status.st_uid} and mode {stat.S_IMODE(status.st_mode):04o}; {ADVICE}"
        )
    return directory


def _lock(directory: int) -> None:
    """Lock a directory until its descriptor is closed; the kernel closes those of a process that is killed."""
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DirectoryTaken from None


def _path_for(identity: RankIdentity) -> Path:
    """Return a path that every rank of the job computes alike."""
    if identity.launcher == "unisono":
        return Path(identity.job)
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    name = hashlib.sha256(f"{identity.launcher} {identity.job}".encode()).hexdigest()[:16]
    return base / f"unisono-{os.getuid()}-{name}"


def _remove_abandoned(ours: Path) -> None:
    """Remove the directories, with secrets in them, that other jobs of this user have left behind when killed."""
    pattern = re.compile(rf"unisono-{os.getuid()}-[0-9a-f]{{16}}")
    names = [entry.name for entry in os.scandir(ours.parent) if pattern.fullmatch(entry.name)]
    for name in set(names) - {ours.name}:
        with suppress(OSError, UsageError, DirectoryTaken):
            directory = _open(ours.parent / name)
            try:
                _lock(directory)
                for file in os.listdir(directory):
                    remove_quietly(directory, file)
                os.rmdir(ours.parent / name)
            finally:
                os.close(directory)


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
