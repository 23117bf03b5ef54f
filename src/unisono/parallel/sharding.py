"""A flat: the parameters of a unit in one vector, cut into equal shards, one for each rank.

::

    parameters   weight (3 x 4)             bias (3)
                 ├──────────────────────────┼───────┤
    vector       0 1 2 3 4 5 6 7 8 9 10 11  12 13 14  0    padded to a multiple of the ranks
                 ├──────────────┼──────────────┼───── ...
    shards       rank 0         rank 1         ...

One all-gather of the shards produces the vector, of which the parameters are views: nothing is packed or unpacked.
One reduce-scatter of a gradient vector gives each rank the gradient of its shard. The optimiser sees only the shard,
as one long parameter. That is correct for every optimiser that treats each element independently (SGD, Adam, AdamW,
...), and wrong for those that use the shape or the norm of a parameter (LAMB, Muon, Shampoo); elementwise.py detects
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from unisono.parallel.units import Member, Part

Label = Callable[[str, Any], str] | None


class Piece(NamedTuple):
    """The elements of one parameter that lie in one range of the vector."""

    member: Member
    start: int  # in the flattened parameter
    offset: int  # in the range
    length: int


class Flat:
    """Parameters of one dtype, all trained or all frozen, and this rank's shard of them."""

    def __init__(
        self, name: str, members: Sequence[Member], rank: int, size: int, compute_dtype: Any = None, label: str = ""
    ) -> None:
        first = members[0].parameter
        self.name, self.members, self.rank, self.size, self.label = name, list(members), rank, size, label
        self.trained = bool(first.requires_grad)
        self.dtype = first.dtype  # of the optimiser, and of the state dict
        mixed = compute_dtype is not None and first.dtype.is_floating_point
        self.compute_dtype = compute_dtype if mixed else first.dtype
        self.is_mixed = self.compute_dtype != self.dtype
        self.shapes = [member.parameter.shape for member in members]
        self.lengths = [member.parameter.numel() for member in members]
        self.numel = sum(self.lengths)
        self.shard_numel = -(-self.numel // size)
        self.padded_numel = self.shard_numel * size
        self.device = first.device
        # `divide` sets what follows.
        self.shard: Any = None  # this rank's part in the compute dtype: the ranks gather it
        self.master: Any = None  # the optimiser's part: the same memory, unless the dtypes differ
        self.whole: Any = None  # the vector, if it is kept (stages 1 and 2)
        self.gradient: Any = None  # of the shard, averaged over all ranks
        self.has_gradient = False

    def divide(self, keep_whole: bool) -> None:
        """Move the parameters into a vector; keep the vector, or only this rank's shard of it."""
        vector = self.vector_of([member.parameter.data for member in self.members])
        whole = vector.to(self.compute_dtype)
        own = whole[self.range_of(self.rank)]
        self.shard = own if keep_whole else own.clone()
        self.whole = whole if keep_whole else None
        if self.trained:
            own = vector[self.range_of(self.rank)].clone() if self.is_mixed else self.shard
            self.master = nn.Parameter(own)
            self.master.label = self.label
        if keep_whole:
            self.point(self.views(whole))

    def range_of(self, rank: int) -> slice:
        """Return the range of a rank's shard in the vector."""
        return slice(rank * self.shard_numel, (rank + 1) * self.shard_numel)

    def empty_vector(self, dtype: Any = None) -> Tensor:
        """Return a vector of zeros, padding included."""
        return torch.zeros(self.padded_numel, dtype=dtype or self.dtype, device=self.device)

    def vector_of(self, tensors: Sequence[Any]) -> Tensor:
        """Return a vector with these values of the parameters."""
        vector = self.empty_vector()
        for view, tensor in zip(self.views(vector), tensors, strict=True):
            view.copy_(tensor)
        return vector

    def views(self, vector: Tensor) -> list[Tensor]:
        """Return the vector as tensors of the shapes of the parameters."""
        rows = torch.split(vector[: self.numel], self.lengths)
        return [row.view(shape) for row, shape in zip(rows, self.shapes, strict=True)]

    def point(self, tensors: Sequence[Tensor]) -> None:
        """Make the parameters views of these tensors; the parameter objects, which autograd uses, stay the same."""
        for member, tensor in zip(self.members, tensors, strict=True):
            member.parameter.data = tensor

    def pieces(self, rank: int) -> Iterator[Piece]:
        """Yield the pieces of parameters that make up the shard of a rank."""
        begin, end = self.range_of(rank).start, self.range_of(rank).stop
        offset = 0
        for member, length in zip(self.members, self.lengths, strict=True):
            first, last = max(begin, offset), min(end, offset + length)
            if first < last:
                yield Piece(member, first - offset, first - begin, last - first)
            offset += length


def flats_of(part: Part, rank: int, size: int, compute_dtype: Any = None, label: Label = None) -> list[Flat]:
    """Sort the parameters of a unit into flats, one for each dtype and label, trained and frozen ones apart."""
    kinds: dict[tuple[bool, str, Any], list[Member]] = {}
    for member in part.members:
        parameter = member.parameter
        name = label(member.names[0], parameter) if label is not None else ""
        kinds.setdefault((not parameter.requires_grad, name, parameter.dtype), []).append(member)
    flats = []
    for (frozen, name, dtype), members in kinds.items():
        alike = [kind for kind in kinds if kind[:2] == (frozen, name)]
        named = [part.name, "frozen" if frozen else "", name]
        named += [str(dtype).removeprefix("torch.")] if len(alike) > 1 else []
        flats.append(Flat(".".join(filter(None, named)), members, rank, size, compute_dtype, name))
    return flats
