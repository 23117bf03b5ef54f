"""A folder of shards holds one save, complete or absent.

::

    start     rank 0        remove the leftovers of interrupted saves
    write     every rank    shard-0-of-2.<save>.part         the previous save is untouched
    commit    rank 0        save.json names the save         from here on the new save is the one that loads
    publish   every rank    .part becomes shard-0-of-2.pt    replaces the file of the previous save
    clean     rank 0        remove the files of other saves

A *save* is identified by a random number, which is stored in each of its files and in ``save.json``. A phase begins
when all ranks have completed the previous one, and ``save.json`` is replaced atomically, so a job that dies at any
point leaves either the previous save or the new one. A reader uses the files with the number in ``save.json``,
published or not, and no others.

Folders of earlier versions have no ``save.json`` and no numbers. They load if their files match each other.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch

from unisono.errors import UsageError
from unisono.message import listed
from unisono.parallel.state_messages import (
    DIFFERENT_SAVES,
    MANIFEST_UNREADABLE,
    NO_SHARDS,
    NO_SHARDS_IN_FOLDER,
    NOT_ONE_RUN,
    SAVE_INTERRUPTED,
    SAVED_TOO_OFTEN,
    SHARD_MISSING,
    SHARD_UNREADABLE,
)

MANIFEST = "save.json"
SHARD = re.compile(r"shard-(\d+)-of-(\d+)\.pt")
PART = re.compile(r"(?:shard-\d+-of-\d+|save)\.([0-9a-f]{32})\.part")
ATTEMPTS = 5  # of a reader, while another job saves to the same folder


class Manifest(NamedTuple):
    """Identifies the save that a folder holds."""

    save: str
    size: int  # ranks that wrote it


def new_save() -> str:
    """Return a new number for a save."""
    return uuid.uuid4().hex


def shard_name(rank: int, size: int) -> str:
    """Return the name of the file of a rank."""
    return f"shard-{rank}-of-{size}.pt"


def _part_name(rank: int, size: int, save: str) -> str:
    return f"shard-{rank}-of-{size}.{save}.part"


# ---- writing -----------------------------------------------------------------------------------------------------


def write(folder: Path, rank: int, manifest: Manifest, contents: dict[str, Any]) -> None:
    """Write the shard of a rank next to the files of the previous save."""
    path = folder / _part_name(rank, manifest.size, manifest.save)
    _write_durably(path, lambda file: torch.save({**contents, "save": manifest.save}, file))
    _sync(folder)


def commit(folder: Path, manifest: Manifest) -> None:
    """Make the shards that all ranks wrote the save of the folder."""
    path = folder / f"save.{manifest.save}.part"
    _write_durably(path, lambda file: file.write(json.dumps(manifest._asdict()).encode()))
    try:
        os.replace(path, folder / MANIFEST)
    except OSError:
        if read_manifest(folder) != manifest:  # a network file system may report a failure although it succeeded
            raise
    _sync(folder)


def publish(folder: Path, rank: int, manifest: Manifest) -> None:
    """Rename the shard of a rank to its final name."""
    name = _part_name(rank, manifest.size, manifest.save)
    os.replace(folder / name, folder / shard_name(rank, manifest.size))


def discard(folder: Path, rank: int, manifest: Manifest) -> None:
    """Remove the files that a rank wrote for a save that was not committed."""
    with suppress(OSError, UsageError):
        if read_manifest(folder) != manifest:
            (folder / _part_name(rank, manifest.size, manifest.save)).unlink()
    with suppress(OSError):
        (folder / f"save.{manifest.save}.part").unlink()


def clean(folder: Path) -> None:
    """Remove the files that do not belong to the save of the folder; without a save, only unfinished ones."""
    manifest = read_manifest(folder)
    for path in folder.iterdir():
        part, shard = PART.fullmatch(path.name), SHARD.fullmatch(path.name)
        of_other_size = shard is not None and manifest is not None and int(shard[2]) != manifest.size
        unfinished = part is not None and (manifest is None or part[1] != manifest.save)
        if of_other_size or unfinished:
            with suppress(OSError):  # harmless: no reader uses the file
                path.unlink()


def _write_durably(path: Path, fill: Callable[[Any], Any]) -> None:
    """Write a file; return when it is on disk."""
    with open(path, "wb") as file:
        fill(file)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Write the names in a folder to disk, if the file system supports it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# ---- reading -----------------------------------------------------------------------------------------------------


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder; None without ``save.json``."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        return Manifest(str(manifest["save"]), int(manifest["size"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(MANIFEST_UNREADABLE(path=folder / MANIFEST, error=error)) from error


def open_save(folder: Path) -> tuple[str | None, list[dict[str, Any]]]:
    """Return the number of the save in a folder (None: an earlier version) and its files by rank, memory-mapped."""
    for _ in range(ATTEMPTS):
        manifest = read_manifest(folder)
        if manifest is None:
            return _open_without_manifest(folder)
        files = [_find_shard(folder, rank, manifest) for rank in range(manifest.size)]
        found = [file for file in files if file is not None]
        if len(found) == len(files):
            return manifest.save, found
        if read_manifest(folder) == manifest:  # otherwise another save was committed meanwhile
            missing = [shard_name(rank, manifest.size) for rank, file in enumerate(files) if file is None]
            names = listed(path.name for path in _shards_in(folder)) or NO_SHARDS()
            parts = {"folder": folder, "names": names, "size": manifest.size, "save": manifest.save[:8]}
            raise UsageError(SHARD_MISSING(missing=listed(missing), **parts))
    raise UsageError(SAVED_TOO_OFTEN(folder=folder, attempts=ATTEMPTS))


def _find_shard(folder: Path, rank: int, manifest: Manifest) -> dict[str, Any] | None:
    for name in (shard_name(rank, manifest.size), _part_name(rank, manifest.size, manifest.save)):
        try:
            file = _map(folder / name)
        except FileNotFoundError:
            continue
        if file.get("save") == manifest.save:
            return file
    return None


def _open_without_manifest(folder: Path) -> tuple[str | None, list[dict[str, Any]]]:
    paths = _shards_in(folder)
    if not paths:
        unfinished = folder.is_dir() and any(PART.fullmatch(path.name) for path in folder.iterdir())
        reason = SAVE_INTERRUPTED() if unfinished else ""
        raise UsageError(NO_SHARDS_IN_FOLDER(folder=folder, reason=reason, manifest=MANIFEST))
    files = sorted((_map(path) for path in paths), key=lambda file: int(file["rank"]))
    names = listed(path.name for path in paths)
    size = files[0]["size"]
    if [file["rank"] for file in files] != list(range(size)) or any(file["size"] != size for file in files):
        raise UsageError(NOT_ONE_RUN(folder=folder, names=names))
    for rank, file in enumerate(files):
        for fact in ("save", "parameters", "others", "param_groups"):
            if not is_same(_fact(file, fact), _fact(files[0], fact)):
                raise UsageError(DIFFERENT_SAVES(folder=folder, names=names, manifest=MANIFEST, rank=rank, fact=fact))
    return files[0].get("save"), files


def _fact(file: dict[str, Any], fact: str) -> Any:
    """Return a value that all files of a save have in common."""
    return file.get(fact) if fact in ("save", "param_groups") else [flat[fact] for flat in file["flats"]]


def is_same(one: Any, two: Any) -> bool:
    """Return whether two values of a file are equal, tensors included."""
    if torch.is_tensor(one) and torch.is_tensor(two):
        return bool(one.shape == two.shape and torch.equal(one, two))
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(is_same(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        return len(one) == len(two) and all(map(is_same, one, two))
    return bool(one == two)


def _shards_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("shard-*") if SHARD.fullmatch(path.name))


def _map(path: Path) -> dict[str, Any]:
    try:
        contents: dict[str, Any] = torch.load(path, mmap=True, weights_only=True, map_location="cpu")
    except FileNotFoundError:
        raise
    except Exception as error:
        raise UsageError(SHARD_UNREADABLE(path=path, error=f"{type(error).__name__}: {error}")) from error
    return contents
