"""Checkpoints in shards: every rank writes its shard, and any number of ranks read the elements they need.

::

    saved by 3 ranks     │  file 0   │  file 1   │  file 2   │       (as numbered elements of each parameter)
                         ├───────────┴─────┬─────┴───────────┤
    read by 2 ranks      │  shard of 0     │  shard of 1     │

No rank ever holds more than its shard: files are mapped, not read. The units and the stage may differ as well,
because the files are searched for ranges of elements of a parameter, by name.

save_folder.py defines which files belong together, and when a save is complete.
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
from unisono.parallel.state_messages import (
    FOLDER_UNUSABLE,
    NO_SUCH_PARAMETER,
    NOT_LOADED,
    NOT_RENAMED,
    NOTHING_SAVED,
    ONE_OTHER_PARAMETER,
    OPTIMIZER_STATES_DIFFER,
    OTHER_PARAMETERS,
    REPORTED_BY_RANK,
    SAVED_WHILE_LOADING,
    SHAPE,
)

if TYPE_CHECKING:
    from unisono.parallel.zero import Zero

Result = TypeVar("Result")
VALUES = "values"  # of parameters; the other keys are the optimiser's values per element: "exp_avg", ...


def save(zero: Zero, folder: Any) -> None:
    """Save the shards of all ranks as one save; only the first replica writes. Return when the save is complete."""
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

    manifest = Manifest(_on_all_ranks(zero, FOLDER_UNUSABLE(folder=path), start)[0], size)
    not_saved = NOTHING_SAVED(folder=path)
    try:
        _on_all_ranks(zero, not_saved, lambda: save_folder.write(path, rank, manifest, contents) if writes else None)
        _on_all_ranks(zero, not_saved, lambda: save_folder.commit(path, manifest) if leads else None)
    except UnisonoError:
        if writes:
            save_folder.discard(path, rank, manifest)
        raise
    not_renamed = NOT_RENAMED(folder=path)
    _on_all_ranks(zero, not_renamed, lambda: save_folder.publish(path, rank, manifest) if writes else None)
    _on_all_ranks(zero, not_renamed, lambda: save_folder.clean(path) if leads else None)


def _on_all_ranks(
    zero: Zero, complaint: str, action: Callable[[], Result], kind: type[Exception] = UnisonoError
) -> list[Result]:
    """Run an action on every rank; return the results of all ranks, or raise the error of one rank on all of them."""
    cause: Exception | None = None
    try:
        mine: Any = (action(), "")
    except Exception as error:
        cause = error
        mine = (None, error.message if isinstance(error, UnisonoError) else f"{type(error).__name__}: {error}")
    results = zero.group.all_gather_object(mine)
    if zero.replicas is not None:
        results = [each for part in zero.replicas.all_gather_object(results) for each in part]
    for rank, (_, problem) in enumerate(results):
        if problem:
            raise kind(REPORTED_BY_RANK(what=complaint, rank=rank % zero.group.size, problem=problem)) from cause
    return [value for value, _ in results]


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
    """Load this rank's part of the files of all ranks."""
    opened: list[Saved] = []

    def open_files() -> str | None:
        opened.append(Saved(*save_folder.open_save(Path(folder))))
        return opened[0].save

    saves = _on_all_ranks(zero, NOT_LOADED(folder=folder), open_files, UsageError)
    if any(each != saves[0] for each in saves):
        raise UsageError(SAVED_WHILE_LOADING(folder=folder))
    saved = opened[0]
    _check_shapes(zero, saved, folder)
    load_settings(zero, saved.files[0]["param_groups"])
    states = [saved.about(flat) for flat in zero.flats]
    for flat, (kinds, others) in zip(zero.flats, states, strict=True):
        tensors = {kind: saved.shard(flat, kind, flat.rank) for kind in kinds}
        if flat.trained or flat.shard is not None:
            (flat.master.data if flat.trained else flat.shard).copy_(tensors.pop(VALUES))
        else:
            set_values(flat, torch.cat([saved.shard(flat, VALUES, rank) for rank in range(flat.size)]))
        if flat.trained:
            zero.optimizer.state[flat.master] = {**tensors, **others} if tensors or others else {}
    zero.module.load_state_dict(saved.files[0]["buffers"], strict=False)
    zero._publish_parameters("state")


def _check_shapes(zero: Zero, saved: Saved, folder: Any) -> None:
    shapes = {
        member.names[0]: list(shape) for flat in zero.flats
        for member, shape in zip(flat.members, flat.shapes, strict=True)
    }  # fmt: skip
    wrong = sorted(name for name in shapes.keys() | saved.shapes.keys() if shapes.get(name) != saved.shapes.get(name))
    if wrong:
        name = wrong[0]
        found, expected = (
            SHAPE(shape=shape) if (shape := each.get(name)) is not None else NO_SUCH_PARAMETER()
            for each in (saved.shapes, shapes)
        )
        template = ONE_OTHER_PARAMETER if len(wrong) == 1 else OTHER_PARAMETERS
        parts = {"folder": folder, "name": name, "found": found, "expected": expected, "count": len(wrong)}
        raise UsageError(template(**parts))


class Saved:
    """The files of a save, by rank."""

    def __init__(self, save: str | None, files: list[dict[str, Any]]) -> None:
        self.save, self.files = save, files
        # The start of each parameter: the index of its flat, and the element of the flat's vector.
        self.positions: dict[str, tuple[int, int]] = {}
        self.shapes: dict[str, list[int]] = {}
        for number, flat in enumerate(files[0]["flats"]):
            offset = 0
            for name, shape in flat["parameters"]:
                self.positions[name], self.shapes[name] = (number, offset), shape
                offset += math.prod(shape)

    def about(self, flat: Flat) -> tuple[list[str], dict[str, Any]]:
        """Return what was saved for a flat: the keys of its tensors, and the other values."""
        parts = {self.positions[member.names[0]][0]: member.names[0] for member in flat.members}
        (number, first), *others = parts.items()
        saved = self.files[0]["flats"][number]
        for other, name in others:
            there = self.files[0]["flats"][other]
            if flat.trained and (
                there["tensors"].keys() != saved["tensors"].keys() or not is_same(there["others"], saved["others"])
            ):
                raise UsageError(OPTIMIZER_STATES_DIFFER(name=name, first=first, unit=flat.name))
        copied = {key: value.clone() if torch.is_tensor(value) else value for key, value in saved["others"].items()}
        return list(saved["tensors"]), copied

    def shard(self, flat: Flat, kind: str, rank: int) -> Tensor:
        """Return the shard of a rank, assembled from the saved shards."""
        number, _ = self.positions[flat.members[0].names[0]]
        dtype = self.files[0]["flats"][number]["tensors"][kind].dtype
        out = torch.zeros(flat.shard_numel, dtype=dtype, device=flat.device)
        for piece in flat.pieces(rank):
            number, begin = self.positions[piece.member.names[0]]
            self._copy(out[piece.offset : piece.offset + piece.length], number, kind, begin + piece.start)
        return out

    def _copy(self, out: Tensor, number: int, kind: str, begin: int) -> None:
        """Copy elements of the vector of a saved flat from the files that hold them."""
        done = 0
        while done < len(out):
            at = begin + done
            length = len(self.files[0]["flats"][number]["tensors"][kind])
            part = self.files[at // length]["flats"][number]["tensors"][kind][at % length :][: len(out) - done]
            out[done : done + len(part)].copy_(part)
            done += len(part)
