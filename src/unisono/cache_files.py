"""Files in the user's cache directory: small JSON records that a user may delete at any time.

A record is believed only if nobody else could have written it: the folder and the file belong to this user (or to
root) and nobody else may write to them. What cannot be believed or read counts as absent, and what cannot be written
is not stored; neither is a reason for a job to fail.

A record is written to a *part*, a file of another name, and renamed when it is complete: a reader never sees half of
it. Parts that a killed process has left behind are removed when they are old.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

MOST_BYTES = 16 << 20  # of a record
PART = ".part"
STALE_S = 3600.0  # a part that is older belongs to nobody
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# O_NONBLOCK: a named pipe in the place of a file does not make us wait.
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Unbelievable(Exception):
    """A record is there, but it says nothing: ``str`` is the reason."""


class Untrusted(Unbelievable):
    """Somebody else could have written it."""


def user_cache() -> Path:
    """Return the folder of all that we keep."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the specification of XDG directories says: ignore it
        home = os.path.expanduser("~")
        # Without a home nothing is stored: we do not make one.
        base = os.path.join(home, ".cache") if os.path.isabs(home) and os.path.isdir(home) else os.devnull
    return Path(base) / "unisono"


def read_record(path: Path, most_bytes: int = MOST_BYTES) -> Any | None:
    """Return what was stored; None if there is nothing.

    Raise Untrusted if somebody else could have written it, Unbelievable if it is not JSON.
    """
    try:
        with _opened(path.parent) as folder:
            text = _read_private(folder, path.name, most_bytes + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unbelievable(error.strerror or str(error)) from None
    if len(text) > most_bytes:
        raise Unbelievable(f"expected at most {most_bytes} bytes, found more")
    try:
        record = json.loads(text.decode())
    except RecursionError:
        raise Unbelievable("expected JSON, found brackets that are nested too deeply") from None
    except ValueError as error:
        raise Unbelievable(f"expected JSON, found something else ({error})") from None
    if record is None:
        raise Unbelievable("expected a record, found null")
    return record


def _read_private(folder: int, name: str, most_bytes: int) -> bytes:
    file = os.open(name, READ, dir_fd=folder)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise Unbelievable("expected a file, found something else")
        _check_private(status)
        with os.fdopen(file, "rb", closefd=False) as source:
            return source.read(most_bytes)
    finally:
        os.close(file)


def write_record(path: Path, record: Any, indent: int | None = None) -> None:
    """Store a record so that a reader never sees half of it; raise OSError or Unbelievable if that is impossible."""
    text = json.dumps(record, indent=indent).encode()
    _make_private(path.parent)
    with _opened(path.parent) as folder:
        _remove_stale_parts(path.parent)
        part = f"{secrets.token_hex(8)}{PART}"
        file = os.open(part, WRITE, 0o600, dir_fd=folder)
        try:
            with os.fdopen(file, "wb") as out:
                out.write(text)
            os.replace(part, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:  # a full disk, a folder in its place, Ctrl-C
            with suppress(OSError):
                os.unlink(part, dir_fd=folder)
            raise


@cache  # one warning for each file and reason in a process, whatever the filters are
def warn_ignored(path: Path, reason: str, hint: str) -> None:
    """Say that something in the cache is not used, and why."""
    warnings.warn(f"ignored {path}: {reason}; {hint}", stacklevel=3)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Open a folder of ours; raise Untrusted if others can write into it, or into the one of ours that it is in."""
    ours = user_cache()
    if folder != ours and folder.parent == ours:
        with _opened(ours) as above:
            descriptor = os.open(folder.name, DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    else:
        descriptor = os.open(folder, DIRECTORY)  # which may be a link that the user has made
    try:
        _check_private(os.fstat(descriptor), folder)
        yield descriptor
    finally:
        os.close(descriptor)


def _check_private(status: os.stat_result, folder: Path | None = None) -> None:
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid not in (os.geteuid(), 0) or mode & 0o022:
        about = "expected it" if folder is None else f"expected its folder {folder}"
        raise Untrusted(
            f"{about} to belong to user {os.geteuid()} and to be writable by nobody else, found user {status.st_uid} "
            f"and mode {mode:04o}"
        )


def _make_private(folder: Path) -> None:
    """Make a folder of ours, and those above it that are missing; only we may enter any of them."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)


@cache  # once in a process: listing a folder of many records takes time
def _remove_stale_parts(folder: Path) -> None:
    now = time.time()
    with suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            with suppress(OSError):
                if entry.name.endswith(PART) and entry.stat(follow_symlinks=False).st_mtime < now - STALE_S:
                    os.unlink(entry.path)
