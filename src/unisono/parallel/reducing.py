"""Gradients: packed unit by unit during the backward pass, averaged over the ranks, and cut to the own shard.

::

    autograd       unit 2 ├── unit 1 ├── unit 0 ├
    pack                  ▪ 2        ▪ 1        ▪ 0       gradients of a unit into one vector
    stage 1                └─ all-reduce 2 ─┘ ...         the vector is kept: every rank has all gradients
    stages 2, 3            └─ reduce-scatter 2 ─┘ ...     only the shard is kept: the vector's memory is used again
    hybrid                                 └─ all-reduce of the shard over the replicas

Autograd makes each gradient in memory of its own; that is copied into the vector once, and dropped. (To let autograd
add into the vector would cost more: the vector has to be cleared first, and is then read and written.) A unit of one
parameter, without padding, is not even copied: its gradient is the vector.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unisono.errors import UsageError
from unisono.parallel.checks import first_nan, raise_nan
from unisono.parallel.group import Group, Work
from unisono.parallel.sharding import Flat

WHO = "Zero"
AT_ONCE = 2  # vectors that are being averaged at the same time, at most


class Wire(NamedTuple):
    """How gradients travel: what DataParallel calls by the same names."""

    codec: Any = None
    error_feedback: Callable[[Any], Any] | None = None
    check_nan: bool = False


class Averaging:
    """The collectives of one vector, one after the other; ``steps`` starts each and ends with the result in place."""

    def __init__(self, steps: Iterator[Work]) -> None:
        self.steps = steps
        self.work: Work | None = next(steps)

    def advance(self) -> None:
        """Wait for the collective that runs, and start the next."""
        if self.work is not None:
            self.work.wait()
            self.work = next(self.steps, None)

    def finish(self) -> None:
        """Wait for all."""
        while self.work is not None:
            self.advance()


class Reducing(ABC):
    """Averages gradients over a group, and over the replicas of the group if there are any."""

    def __init__(self, group: Group, replicas: Group | None, flats: Sequence[Flat], wire: Wire) -> None:
        self.group, self.replicas, self.device = group, replicas, flats[0].device
        self.running: list[Averaging] = []
        self.check_nan = wire.check_nan
        self.codecs = {flat: wire.codec for flat in flats if flat.compute_dtype == torch.float32}  # what they are for
        made = wire.error_feedback if wire.codec is not None else None
        self.feedbacks = {} if made is None else {flat: made(wire.codec) for flat in self.codecs}
        self.nan: str | None = None  # the first parameter of this rank, in this pass, whose gradient has a NaN

    def reduce(self, flats: Sequence[Flat]) -> None:
        """Take over the gradients that autograd has left in the parameters, and start to average them."""
        for flat in flats:
            if len(self.running) == AT_ONCE:
                self.running.pop(0).finish()
            if self.replicas is not None and self.running:
                self.running[-1].advance()
            vector = self.pack(flat)
            if self.check_nan and self.nan is None and vector.sum().isnan():
                names = (member.names[0] for member in flat.members)
                self.nan = first_nan(zip(names, flat.views(vector), strict=True))
            if flat in self.feedbacks:
                self.feedbacks[flat].correct(flat.name, vector)
            self.running.append(Averaging(self.average(flat, vector)))
            flat.has_gradient = True

    def finish(self) -> None:
        """Return when all averages are there."""
        while self.running:
            self.running.pop(0).finish()

    def raise_nan(self) -> None:
        """Raise on all ranks if one has met a NaN."""
        if not self.check_nan:
            return
        groups = [group for group in (self.replicas, self.group) if group is not None]
        found = torch.tensor([self.nan is not None], dtype=torch.uint8, device=self.device)
        for group in groups:
            group.all_reduce(found, op="max", name="(is there a NaN)", phase="backward")
        name, self.nan = self.nan, None
        if found.any():
            if self.replicas is not None:
                name = next(filter(None, self.replicas.tell_all(name)), None)
            raise_nan(name, self.group, WHO)

    @abstractmethod
    def hold(self, flats: Sequence[Flat]) -> None:
        """Keep the gradients for a later ``reduce``."""

    @abstractmethod
    def has_more(self, flat: Flat) -> bool:
        """Whether autograd has left gradients that were not packed."""

    @abstractmethod
    def pack(self, flat: Flat) -> Tensor:
        """Move the gradients of the parameters into a vector."""

    @abstractmethod
    def average(self, flat: Flat, vector: Tensor) -> Iterator[Work]:
        """Start one collective after the other; the next when the one before is over."""


class WholeGradients(Reducing):
    """Stage 1: the vectors are kept, and the parameters' gradients are views of them, as in data parallelism."""

    def __init__(self, group: Group, replicas: Group | None, flats: Sequence[Flat], wire: Wire) -> None:
        super().__init__(group, replicas, flats, wire)
        self.vectors: dict[Flat, Tensor] = {}
        self.views: dict[Flat, list[Tensor]] = {}
        for flat in flats:
            vector = self.vectors[flat] = flat.empty_vector(flat.compute_dtype)
            self.views[flat] = flat.views(vector)
            flat.gradient = vector[flat.range_of(flat.rank)]

    def hold(self, flats: Sequence[Flat]) -> None:
        """Keep the gradients for a later ``reduce``: in the vector."""
        for flat in flats:
            self.pack(flat)
            self._show(flat)

    def has_more(self, flat: Flat) -> bool:
        """Whether autograd has left gradients that were not packed."""
        gradients = (member.parameter.grad for member in flat.members)
        return any(
            gradient is not None and gradient is not view
            for gradient, view in zip(gradients, self.views[flat], strict=True)
        )

    def pack(self, flat: Flat) -> Tensor:
        """Move the gradients of the parameters into the vector; those that are there already stay."""
        _copy_gradients(flat, self.views[flat], add=flat.has_gradient)
        for member in flat.members:  # what comes while the vector is on its way must not be added to it
            member.parameter.grad = None
        return self.vectors[flat]

    def average(self, flat: Flat, vector: Tensor) -> Iterator[Work]:
        """All-reduce the vector."""
        for group in (self.group, self.replicas):
            if group is not None:
                yield group.all_reduce(
                    vector, op="avg", name=flat.name, phase="backward", codec=self.codecs.get(flat), async_op=True
                )
        self._show(flat)

    def _show(self, flat: Flat) -> None:
        for member, view in zip(flat.members, self.views[flat], strict=True):
            if member.parameter.grad is None:
                member.parameter.grad = view


class ShardedGradients(Reducing):
    """Stages 2 and 3: only the gradient of the own shard is kept."""

    def __init__(self, group: Group, replicas: Group | None, flats: Sequence[Flat], wire: Wire) -> None:
        super().__init__(group, replicas, flats, wire)
        packed = [flat for flat in flats if not _is_one_tensor(flat)]
        nbytes = max((flat.padded_numel * flat.compute_dtype.itemsize for flat in packed), default=0)
        count = min(AT_ONCE, len(packed))
        self.buffers = [torch.zeros(nbytes, dtype=torch.uint8, device=packed[0].device) for _ in range(count)]
        self.turn = 0
        self.views: dict[tuple[Flat, int], tuple[Tensor, list[Tensor]]] = {}
        for flat in flats:
            flat.gradient = torch.zeros(flat.shard_numel, dtype=flat.compute_dtype, device=flat.device)

    def hold(self, flats: Sequence[Flat]) -> None:
        """Leave the gradients where autograd has put them, and will add to them."""

    def has_more(self, flat: Flat) -> bool:
        """Whether autograd has left gradients that were not packed."""
        return any(member.parameter.grad is not None for member in flat.members)

    def pack(self, flat: Flat) -> Tensor:
        """Move the gradients of the parameters into the buffer whose turn it is."""
        if _is_one_tensor(flat):
            gradient = flat.members[0].parameter.grad
            if gradient is not None and gradient.layout == torch.strided and gradient.is_contiguous():
                flat.members[0].parameter.grad = None
                return gradient.view(-1)
            vector = flat.empty_vector(flat.compute_dtype)
            views = flat.views(vector)
        else:
            self.turn = (self.turn + 1) % len(self.buffers)
            vector, views = self._in_buffer(flat, self.turn)
        _copy_gradients(flat, views)
        for member in flat.members:
            member.parameter.grad = None
        return vector

    def average(self, flat: Flat, vector: Tensor) -> Iterator[Work]:
        """Reduce-scatter the vector; all-reduce the shard over the replicas; add it to what is there."""
        mine = torch.empty_like(flat.gradient) if flat.has_gradient else flat.gradient
        named: dict[str, Any] = {"name": flat.name, "phase": "backward", "async_op": True}
        named["codec"] = self.codecs.get(flat)
        yield self.group.reduce_scatter(mine, vector, op="avg", **named)
        if self.replicas is not None:
            yield self.replicas.all_reduce(mine, op="avg", **named)
        if mine is not flat.gradient:
            flat.gradient.add_(mine)

    def _in_buffer(self, flat: Flat, number: int) -> tuple[Tensor, list[Tensor]]:
        found = self.views.get((flat, number))
        if found is None:
            nbytes = flat.padded_numel * flat.compute_dtype.itemsize
            vector = self.buffers[number][:nbytes].view(flat.compute_dtype)
            found = self.views[flat, number] = (vector, flat.views(vector))
        found[0][flat.numel :].zero_()  # the padding: another flat may have been here
        return found


def _is_one_tensor(flat: Flat) -> bool:
    return len(flat.members) == 1 and flat.numel == flat.padded_numel


def _copy_gradients(flat: Flat, views: Sequence[Tensor], add: bool = False) -> None:
    """Copy (or add) the gradients into the views; zero for a parameter that has none in this step."""
    targets, sources = [], []
    for member, view in zip(flat.members, views, strict=True):
        gradient = member.parameter.grad
        if gradient is None and not add:
            view.zero_()
        elif gradient is not None and gradient is not view:
            if gradient.layout != torch.strided:
                raise UsageError(
                    f"{WHO}: the gradient of {member.names[0]!r} is {gradient.layout}; expected a dense one: make "
                    "the embedding with sparse=False"
                )
            targets.append(view)
            sources.append(gradient)
    if targets:
        (torch._foreach_add_ if add else torch._foreach_copy_)(targets, sources)
