"""The private directory of a job, with the socket of its rank 0 and its secret. Only its owner can enter it (0700).

`unisono run` makes it for its ranks. Under other launchers rank 0 makes one, under a name that every rank can
compute, and holds a lock on it while its ranks connect. A directory without a lock was left behind by a rank 0 that
was killed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unisono.bootstrap import messages
from unisono.bootstrap.environment import RankIdentity
from unisono.errors import UsageError

SECRET = "secret"


class DirectoryTaken(Exception):
    """Another process is rank 0 in this directory."""


@contextmanager
def job_directory(identity: RankIdentity) -> Iterator[int]:
    """Open the directory of the job and yield its descriptor; FileNotFoundError if it does not exist yet."""
    directory = _open(_path_for(identity))
    try:
        yield directory
    finally:
        os.close(directory)


@contextmanager
def directory_of_rank_0(identity: RankIdentity) -> Iterator[int]:
    """Lock the directory of the job and yield its descriptor; DirectoryTaken if another process has locked it.

    If the launcher has not made the directory, rank 0 makes it, and removes it afterwards.
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
        with suppress(OSError):  # it has been removed, or is not empty
            path.rmdir()
        os.close(directory)


def _make(path: Path) -> int:
    """Make a directory, or take over one that was left behind; return its descriptor."""
    while True:
        try:
            path.mkdir(mode=0o700, exist_ok=True)
            directory = _open(path)
        except FileNotFoundError as error:
            if path.parent.is_dir():  # another job has removed it, as one that is not in use
                continue
            raise UsageError(
                messages.NO_SUCH_DIRECTORY(path=path.parent, hint=messages.HINT_RUNTIME_DIR())
            ) from error
        except OSError as error:
            raise UsageError(
                messages.CANNOT_MAKE_DIRECTORY(path=path, reason=error.strerror, hint=messages.HINT_RUNTIME_DIR())
            ) from error
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
            messages.NOT_A_PRIVATE_DIRECTORY(
                path=path, user=os.getuid(), reason=error.strerror, hint=messages.HINT_RUNTIME_DIR()
            )
        ) from error
    status = os.fstat(directory)
    if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        os.close(directory)
        raise UsageError(
            messages.DIRECTORY_NOT_PRIVATE(
                path=path, user=os.getuid(), owner=status.st_uid, mode=f"{stat.S_IMODE(status.st_mode):04o}",
                hint=messages.HINT_RUNTIME_DIR(),
            )
        )  # fmt: skip
    return directory


def _lock(directory: int) -> None:
    """Lock a directory until its descriptor is closed, which the kernel does when the process is killed."""
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DirectoryTaken from None


def _path_for(identity: RankIdentity) -> Path:
    """Return the path, which every rank of the job computes alike."""
    if identity.launcher == "unisono":
        return Path(identity.job)
    import tempfile  # imported here: it takes milliseconds, and ranks of `unisono run` do not need it

    base = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    name = hashlib.sha256(f"{identity.launcher} {identity.job}".encode()).hexdigest()[:16]
    return base / f"unisono-{os.getuid()}-{name}"


def _remove_abandoned(ours: Path) -> None:
    """Remove the directories of other jobs of this user that were killed; they contain secrets."""
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
    """Write the secret of the job for the other ranks."""
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
    """Remove a file if it exists."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)
