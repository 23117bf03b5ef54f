"""Checkpoints in shards: every rank writes what it has, and any number of ranks read what they need.

::

    saved by 3 ranks     │  file 0   │  file 1   │  file 2   │       (as numbered elements of each parameter)
                         ├───────────┴─────┬─────┴───────────┤
    read by 2 ranks      │  shard of 0     │  shard of 1     │

No rank ever holds more than its own shard: files are mapped, not read. Units may be divided differently, too, and
the stage may be another one: what is looked up is a range of elements of a parameter, by name.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unisono.errors import UsageError
from unisono.parallel.sharded_state import is_elementwise, load_settings, set_values
from unisono.parallel.sharding import Flat

if TYPE_CHECKING:
    from unisono.parallel.zero import Zero

VALUES = "values"  # of parameters; beside it, what the optimiser keeps per element: "exp_avg", ...


def save(zero: Zero, folder: Any) -> None:
    """Write this rank's file; of replicas, only the first writes. Return when all ranks have written."""
    group, replicas = zero.group, zero.replicas
    if replicas is None or replicas.rank == 0:
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        torch.save(_contents(zero), path / f"shard-{group.rank}-of-{group.size}.pt")
    for each in (replicas, group):
        if each is not None:
            each.tell_all("written")


def _contents(zero: Zero) -> dict[str, Any]:
    parameters = {id(parameter) for parameter in zero.module.parameters()}
    names = {name for name, value in zero.module.named_parameters(remove_duplicate=False) if id(value) in parameters}
    return {
        "rank": zero.group.rank,
        "size": zero.group.size,
        "flats": [_saved(zero, flat) for flat in zero.flats],
        "param_groups": [
            {key: value for key, value in group.items() if key != "params"} for group in zero.optimizer.param_groups
        ],
        "buffers": {name: value for name, value in zero.module.state_dict().items() if name not in names},
    }


def _saved(zero: Zero, flat: Flat) -> dict[str, Any]:
    own = flat.master.data if flat.trained else flat.shard
    if own is None:  # frozen, and whole on every rank
        own = flat.vector_of([member.parameter.data for member in flat.members])[flat.range_of(flat.rank)]
    kept = zero.optimizer.state.get(flat.master, {}) if flat.trained else {}
    return {
        "parameters": [
            (member.names[0], list(shape)) for member, shape in zip(flat.members, flat.shapes, strict=True)
        ],
        "tensors": {VALUES: own.clone()} | {key: value for key, value in kept.items() if is_elementwise(flat, value)},
        "others": {key: value for key, value in kept.items() if not is_elementwise(flat, value)},
    }


def load(zero: Zero, folder: Any) -> None:
    """Take this rank's part of what the files of all ranks hold."""
    saved = Saved(Path(folder))
    shapes = {
        member.names[0]: list(shape) for flat in zero.flats
        for member, shape in zip(flat.members, flat.shapes, strict=True)
    }  # fmt: skip
    wrong = sorted(name for name in shapes.keys() | saved.shapes.keys() if shapes.get(name) != saved.shapes.get(name))
    if wrong:
        name = wrong[0]
        there, expected = saved.shapes.get(name, "(it is not there)"), shapes.get(name, "no such parameter")
        raise UsageError(
            f"load_shards: {len(wrong)} parameters in {folder} are not those of the model; the first is {name!r}, of "
            f"shape {there}, expected {expected}; load what was saved of the same model"
        )
    for flat in zero.flats:
        kinds, others = saved.about(flat)
        found = {kind: saved.shard(flat, kind, flat.rank) for kind in kinds}
        if flat.trained or flat.shard is not None:
            (flat.master.data if flat.trained else flat.shard).copy_(found.pop(VALUES))
        else:
            set_values(flat, torch.cat([saved.shard(flat, VALUES, rank) for rank in range(flat.size)]))
        if flat.trained:
            zero.optimizer.state[flat.master] = {**found, **others} if found or others else {}
    load_settings(zero, saved.files[0]["param_groups"])
    zero.module.load_state_dict(saved.files[0]["buffers"], strict=False)
    zero._share("state")


class Saved:
    """The files of a folder."""

    def __init__(self, folder: Path) -> None:
        paths = sorted(folder.glob("shard-*-of-*.pt"))
        if not paths:
            raise UsageError(f"load_shards: there are no shards in {folder}; expected files shard-0-of-N.pt, ...")
        files = [torch.load(path, mmap=True, weights_only=True, map_location="cpu") for path in paths]
        files.sort(key=lambda file: int(file["rank"]))
        self.files: list[dict[str, Any]] = files
        found, size = [file["rank"] for file in files], files[0]["size"]
        if found != list(range(size)) or any(file["size"] != size for file in files):
            names = ", ".join(path.name for path in paths)
            raise UsageError(f"load_shards: {folder} has {names}; expected one file for each of the ranks of one run")
        # Where each parameter begins: which flat, and which element of its vector.
        self.places: dict[str, tuple[int, int]] = {}
        self.shapes: dict[str, list[int]] = {}
        for number, flat in enumerate(files[0]["flats"]):
            offset = 0
            for name, shape in flat["parameters"]:
                self.places[name], self.shapes[name] = (number, offset), shape
                offset += math.prod(shape)

    def about(self, flat: Flat) -> tuple[list[str], dict[str, Any]]:
        """Return what was saved of a flat: the kinds of tensors, and the rest."""
        number, _ = self.places[flat.members[0].names[0]]
        saved = self.files[0]["flats"][number]
        copied = {key: value.clone() if torch.is_tensor(value) else value for key, value in saved["others"].items()}
        return list(saved["tensors"]), copied

    def shard(self, flat: Flat, kind: str, rank: int) -> Tensor:
        """Return the shard of a rank, made of what was saved."""
        number, _ = self.places[flat.members[0].names[0]]
        dtype = self.files[0]["flats"][number]["tensors"][kind].dtype
        out = torch.zeros(flat.shard_numel, dtype=dtype, device=flat.device)
        for piece in flat.pieces(rank):
            number, begin = self.places[piece.member.names[0]]
            self._copy(out[piece.offset : piece.offset + piece.length], number, kind, begin + piece.start)
        return out

    def _copy(self, out: Tensor, number: int, kind: str, begin: int) -> None:
        """Copy elements of the vector of a saved flat, from wherever they are."""
        done = 0
        while done < len(out):
            at = begin + done
            length = len(self.files[0]["flats"][number]["tensors"][kind])
            part = self.files[at // length]["flats"][number]["tensors"][kind][at % length :][: len(out) - done]
            out[done : done + len(part)].copy_(part)
            done += len(part)
