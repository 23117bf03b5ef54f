"""The cache directory of the user: small JSON records, which the user may delete at any time.

A record is trusted only if no other user could have written it: the folder and the file belong to this user (or to
root), and no one else can write to them. A record that cannot be trusted or read counts as absent, and one that
cannot be written is not stored; neither makes a job fail.

A record is written to a *part*, a file with another name, and renamed when it is complete, so a reader never sees
half of it. Old parts, left behind by killed processes, are removed.
"""

from __future__ import annotations

import errno
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

from unisono.message import Template

MOST_BYTES = 16 << 20  # of a record
PART = ".part"
STALE_S = 3600.0  # the process that wrote an older part has ended
# Windows cannot open a file relative to a folder, and has no owners and modes: nothing is trusted or stored there.
CAN_BE_TRUSTED = os.open in os.supports_dir_fd and hasattr(os, "geteuid")
if CAN_BE_TRUSTED:
    DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    # O_NONBLOCK: opening a named pipe instead of a file does not block.
    READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

TOO_LONG = Template(
    "cache_files.too_long", "expected at most {bytes} bytes, found more", "应不超过 {bytes} 字节，实际更长"
)
TOO_DEEP = Template(
    "cache_files.too_deep", "expected JSON, found brackets that are nested too deeply", "应为 JSON，实际括号嵌套过深"
)
NOT_JSON = Template(
    "cache_files.not_json", "expected JSON, found something else ({reason})", "应为 JSON，实际不是（{reason}）"
)
NO_RECORD = Template("cache_files.no_record", "expected a record, found null", "应为一条记录，实际为 null")
NOT_A_FILE = Template("cache_files.not_a_file", "expected a file, found something else", "应为文件，实际不是")
FILE_NOT_PRIVATE = Template(
    "cache_files.file_not_private",
    "expected it to belong to user {user} and to be writable by no other user, found user {owner} and mode {mode}",
    "应属于用户 {user} 且其他用户不可写，实际属于用户 {owner}，权限为 {mode}",
)
FOLDER_NOT_PRIVATE = Template(
    "cache_files.folder_not_private",
    "expected its folder {folder} to belong to user {user} and to be writable by no other user, found user {owner} "
    "and mode {mode}",
    "其所在目录 {folder} 应属于用户 {user} 且其他用户不可写，实际属于用户 {owner}，权限为 {mode}",
)
IGNORED = Template("cache_files.ignored", "ignored {path}: {reason}; {hint}", "已忽略 {path}：{reason}；{hint}")


class Unbelievable(Exception):
    """A record exists but cannot be used; the text is the reason."""


class Untrusted(Unbelievable):
    """Another user could have written it."""


def user_cache() -> Path:
    """Return the folder of all records."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # as the XDG specification requires
        home = os.path.expanduser("~")
        # Without a home directory nothing is stored.
        base = os.path.join(home, ".cache") if os.path.isabs(home) and os.path.isdir(home) else os.devnull
    return Path(base) / "unisono"


def read_record(path: Path, most_bytes: int = MOST_BYTES) -> Any | None:
    """Return a record, or None if there is none.

    Raise Untrusted if another user could have written it, and Unbelievable if it is not JSON.
    """
    if not CAN_BE_TRUSTED:
        return None
    try:
        with _opened(path.parent) as folder:
            text = _read_private(folder, path.name, most_bytes + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unbelievable(error.strerror or str(error)) from None
    if len(text) > most_bytes:
        raise Unbelievable(TOO_LONG(bytes=most_bytes))
    try:
        record = json.loads(text.decode())
    except RecursionError:
        raise Unbelievable(TOO_DEEP()) from None
    except ValueError as error:
        raise Unbelievable(NOT_JSON(reason=error)) from None
    if record is None:
        raise Unbelievable(NO_RECORD())
    return record


def _read_private(folder: int, name: str, most_bytes: int) -> bytes:
    file = os.open(name, READ, dir_fd=folder)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise Unbelievable(NOT_A_FILE())
        _check_private(status)
        with os.fdopen(file, "rb", closefd=False) as source:
            return source.read(most_bytes)
    finally:
        os.close(file)


def write_record(path: Path, record: Any, indent: int | None = None) -> None:
    """Write a record in one step for readers; raise OSError or Unbelievable if it cannot be written."""
    if not CAN_BE_TRUSTED:
        raise OSError(errno.ENOTSUP, "this platform does not show whether other users can write to a file")
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


@cache  # one warning for each file and reason in a process, with any warning filters
def warn_ignored(path: Path, reason: str, hint: str) -> None:
    """Warn that a file in the cache is ignored, and why."""
    warnings.warn(IGNORED(path=path, reason=reason, hint=hint), stacklevel=3)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Open a folder of the cache; raise Untrusted if other users can write to it or to its parent in the cache."""
    ours = user_cache()
    if folder != ours and folder.parent == ours:
        with _opened(ours) as above:
            descriptor = os.open(folder.name, DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    else:
        descriptor = os.open(folder, DIRECTORY)  # it may be a link that the user has made
    try:
        _check_private(os.fstat(descriptor), folder)
        yield descriptor
    finally:
        os.close(descriptor)


def _check_private(status: os.stat_result, folder: Path | None = None) -> None:
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid not in (os.geteuid(), 0) or mode & 0o022:
        found = {"user": os.geteuid(), "owner": status.st_uid, "mode": f"{mode:04o}"}
        raise Untrusted(FILE_NOT_PRIVATE(**found) if folder is None else FOLDER_NOT_PRIVATE(**found, folder=folder))


def _make_private(folder: Path) -> None:
    """Make a folder of the cache and its missing parents; only this user can enter them."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)


@cache  # once in a process: listing a folder with many records takes time
def _remove_stale_parts(folder: Path) -> None:
    now = time.time()
    with suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            with suppress(OSError):
                if entry.name.endswith(PART) and entry.stat(follow_symlinks=False).st_mtime < now - STALE_S:
                    os.unlink(entry.path)
