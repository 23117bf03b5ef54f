"""A folder of shards holds one save, complete or absent.

::

    start     rank 0        remove what interrupted saves have left
    write     every rank    shard-0-of-2.<save>.part         the previous save is untouched
    commit    rank 0        save.json names the save         from here on the new save is the one that loads
    publish   every rank    .part becomes shard-0-of-2.pt    replaces the file of the previous save
    clean     rank 0        remove the files of other saves

A *save* is identified by a random number, which is in each of its files and in ``save.json``. A phase begins when all
ranks have completed the one before, and ``save.json`` is replaced in one step; so a job that dies at any point leaves
either the previous save or the new one. A reader takes the files that carry the number in ``save.json``, published or
not, and nothing else.

Folders of earlier versions have no ``save.json`` and no numbers. They load if their files fit together.
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

MANIFEST = "save.json"
SHARD = re.compile(r"shard-(\d+)-of-(\d+)\.pt")
PART = re.compile(r"(?:shard-\d+-of-\d+|save)\.([0-9a-f]{32})\.part")
ATTEMPTS = 5  # of a reader, while others save into the same folder


class Manifest(NamedTuple):
    """Which save a folder holds."""

    save: str
    size: int  # ranks that wrote it


def new_save() -> str:
    """Return a number that no other save has."""
    return uuid.uuid4().hex


def shard_name(rank: int, size: int) -> str:
    """Return the name of the file of a rank."""
    return f"shard-{rank}-of-{size}.pt"


def _part_name(rank: int, size: int, save: str) -> str:
    return f"shard-{rank}-of-{size}.{save}.part"


# ---- writing -----------------------------------------------------------------------------------------------------


def write(folder: Path, rank: int, manifest: Manifest, contents: dict[str, Any]) -> None:
    """Write the shard of a rank beside the files of the previous save."""
    path = folder / _part_name(rank, manifest.size, manifest.save)
    _write_durably(path, lambda file: torch.save({**contents, "save": manifest.save}, file))
    _sync(folder)


def commit(folder: Path, manifest: Manifest) -> None:
    """Make the shards that all ranks have written the save of the folder."""
    path = folder / f"save.{manifest.save}.part"
    _write_durably(path, lambda file: file.write(json.dumps(manifest._asdict()).encode()))
    try:
        os.replace(path, folder / MANIFEST)
    except OSError:
        if read_manifest(folder) != manifest:  # a network file system may report the failure of what it has done
            raise
    _sync(folder)


def publish(folder: Path, rank: int, manifest: Manifest) -> None:
    """Give the shard of a rank its final name."""
    name = _part_name(rank, manifest.size, manifest.save)
    os.replace(folder / name, folder / shard_name(rank, manifest.size))


def discard(folder: Path, rank: int, manifest: Manifest) -> None:
    """Remove what a rank has written for a save that was not committed."""
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
            with suppress(OSError):  # harmless: no reader takes it for a part of the save
                path.unlink()


def _write_durably(path: Path, fill: Callable[[Any], Any]) -> None:
    """Write a file; return when it would survive a crash of the machine."""
    with open(path, "wb") as file:
        fill(file)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Make the names in a folder survive a crash of the machine, where the file system can."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


# ---- reading -----------------------------------------------------------------------------------------------------


def read_manifest(folder: Path) -> Manifest | None:
    """Return which save the folder holds; None without ``save.json``."""
    try:
        found = json.loads((folder / MANIFEST).read_bytes())
        return Manifest(str(found["save"]), int(found["size"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"load_shards: {folder / MANIFEST} cannot be read ({error}); restore it, or remove it if the shards "
            "beside it are all of one save"
        ) from error


def open_save(folder: Path) -> tuple[str | None, list[dict[str, Any]]]:
    """Return the number of the save in a folder (None: of an earlier version) and its files by rank, mapped."""
    for _ in range(ATTEMPTS):
        manifest = read_manifest(folder)
        if manifest is None:
            return _open_without_manifest(folder)
        files = [_find_shard(folder, rank, manifest) for rank in range(manifest.size)]
        found = [file for file in files if file is not None]
        if len(found) == len(files):
            return manifest.save, found
        if read_manifest(folder) == manifest:  # otherwise another save was committed in between
            missing = [shard_name(rank, manifest.size) for rank, file in enumerate(files) if file is None]
            names = ", ".join(path.name for path in _shards_in(folder)) or "no shards"
            raise UsageError(
                f"load_shards: {folder} has {names}; expected one file for each of the {manifest.size} ranks of save "
                f"{manifest.save[:8]}, and {', '.join(missing)} is missing or belongs to another save: restore it, "
                "or save again"
            )
    raise UsageError(f"load_shards: {folder} was saved into {ATTEMPTS} times while it was read; load again")


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
        why = "; a save was interrupted before it was complete" if unfinished else ""
        raise UsageError(
            f"load_shards: there are no shards in {folder}{why}; expected files shard-0-of-N.pt, ... and {MANIFEST}"
        )
    files = sorted((_map(path) for path in paths), key=lambda file: int(file["rank"]))
    names = ", ".join(path.name for path in paths)
    size = files[0]["size"]
    if [file["rank"] for file in files] != list(range(size)) or any(file["size"] != size for file in files):
        raise UsageError(f"load_shards: {folder} has {names}; expected one file for each of the ranks of one run")
    for rank, file in enumerate(files):
        for fact in ("save", "parameters", "others", "param_groups"):
            if not is_same(_fact(file, fact), _fact(files[0], fact)):
                raise UsageError(
                    f"load_shards: {folder} has {names}, without {MANIFEST}; the file of rank {rank} belongs to "
                    f"another save than that of rank 0: they differ in {fact!r}. Restore the files of one save"
                )
    return files[0].get("save"), files


def _fact(file: dict[str, Any], fact: str) -> Any:
    """Return what all files of a save have in common, of one kind."""
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
        found: dict[str, Any] = torch.load(path, mmap=True, weights_only=True, map_location="cpu")
    except FileNotFoundError:
        raise
    except Exception as error:
        raise UsageError(f"load_shards: {path} cannot be read: {type(error).__name__}: {error}") from error
    return found
