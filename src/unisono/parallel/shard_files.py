"""Checkpoints in shards: every rank writes what it has, and any number of ranks read what they need.

::

    saved by 3 ranks     │  file 0   │  file 1   │  file 2   │       (as numbered elements of each parameter)
                         ├───────────┴─────┬─────┴───────────┤
    read by 2 ranks      │  shard of 0     │  shard of 1     │

No rank ever holds more than its own shard: files are mapped, not read. Units may be divided differently, too, and
the stage may be another one: what is looked up is a range of elements of a parameter, by name.

Which files belong together, and when a save is complete: save_folder.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from unisono.errors import UnisonoError, UsageError
from unisono.parallel import save_folder
from unisono.parallel.save_folder import Manifest, is_same
from unisono.parallel.sharded_state import is_elementwise, load_settings, set_values
from unisono.parallel.sharding import Flat

if TYPE_CHECKING:
    from unisono.parallel.zero import Zero

Found = TypeVar("Found")
VALUES = "values"  # of parameters; beside it, what the optimiser keeps per element: "exp_avg", ...


def save(zero: Zero, folder: Any) -> None:
    """Save the shards of all ranks, as one; of replicas, only the first writes. Return when the save is complete."""
    path, rank, size = Path(folder), zero.group.rank, zero.group.size
    writes = zero.replicas is None or zero.replicas.rank == 0
    leads = writes and rank == 0
    contents = _contents(zero) if writes else {}

    def start() -> str:
        if writes:
            path.mkdir(parents=True, exist_ok=True)
        if leads:
            save_folder.clean(path)
        return save_folder.new_save()

    manifest = Manifest(_on_all_ranks(zero, f"save_shards: {path} cannot be used", start)[0], size)
    not_saved = f"save_shards: nothing was saved, and what {path} held before is unchanged"
    try:
        _on_all_ranks(zero, not_saved, lambda: save_folder.write(path, rank, manifest, contents) if writes else None)
        _on_all_ranks(zero, not_saved, lambda: save_folder.commit(path, manifest) if leads else None)
    except UnisonoError:
        if writes:
            save_folder.discard(path, rank, manifest)
        raise
    named = f"save_shards: {path} has the new save, but a file could not be given its name"
    _on_all_ranks(zero, named, lambda: save_folder.publish(path, rank, manifest) if writes else None)
    _on_all_ranks(zero, named, lambda: save_folder.clean(path) if leads else None)


def _on_all_ranks(
    zero: Zero, complaint: str, action: Callable[[], Found], kind: type[Exception] = UnisonoError
) -> list[Found]:
    """Do something on every rank; return what each rank has returned, or raise on all ranks what one has raised."""
    cause: Exception | None = None
    try:
        mine: Any = (action(), "")
    except Exception as error:
        cause, mine = (
            error,
            (None, str(error) if isinstance(error, UnisonoError) else f"{type(error).__name__}: {error}"),
        )
    told = zero.group.all_gather_object(mine)
    if zero.replicas is not None:
        told = [each for part in zero.replicas.all_gather_object(told) for each in part]
    for rank, (_, problem) in enumerate(told):
        if problem:
            raise kind(f"{complaint}; rank {rank % zero.group.size} reports: {problem}") from cause
    return [value for value, _ in told]


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
    opened: list[Saved] = []

    def open_files() -> str | None:
        opened.append(Saved(*save_folder.open_save(Path(folder))))
        return opened[0].save

    saves = _on_all_ranks(zero, f"load_shards: {folder} was not loaded", open_files, UsageError)
    if any(each != saves[0] for each in saves):
        raise UsageError(f"load_shards: {folder} was saved into while it was loaded; load again")
    saved = opened[0]
    _check_shapes(zero, saved, folder)
    load_settings(zero, saved.files[0]["param_groups"])
    states = [saved.about(flat) for flat in zero.flats]
    for flat, (kinds, others) in zip(zero.flats, states, strict=True):
        found = {kind: saved.shard(flat, kind, flat.rank) for kind in kinds}
        if flat.trained or flat.shard is not None:
            (flat.master.data if flat.trained else flat.shard).copy_(found.pop(VALUES))
        else:
            set_values(flat, torch.cat([saved.shard(flat, VALUES, rank) for rank in range(flat.size)]))
        if flat.trained:
            zero.optimizer.state[flat.master] = {**found, **others} if found or others else {}
    zero.module.load_state_dict(saved.files[0]["buffers"], strict=False)
    zero._share("state")


def _check_shapes(zero: Zero, saved: Saved, folder: Any) -> None:
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


class Saved:
    """The files of a save, by rank."""

    def __init__(self, save: str | None, files: list[dict[str, Any]]) -> None:
        self.save, self.files = save, files
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
        parts = {self.places[member.names[0]][0]: member.names[0] for member in flat.members}
        (number, first), *others = parts.items()
        saved = self.files[0]["flats"][number]
        for other, name in others:
            there = self.files[0]["flats"][other]
            if flat.trained and (
                there["tensors"].keys() != saved["tensors"].keys() or not is_same(there["others"], saved["others"])
            ):
                raise UsageError(
                    f"load_shards: the optimiser has another state for {name!r} than for {first!r}, and both are in "
                    f"the unit {flat.name!r} now; expected one state (steps, averages) for all parameters of a unit: "
                    "divide the model into the units it had when it was saved"
                )
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
