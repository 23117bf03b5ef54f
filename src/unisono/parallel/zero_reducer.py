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

A *late* gradient arrives after its unit was packed: the unit runs twice, or its weight is used outside its forward.
Late gradients are averaged when the pass is over and added. Until then no parameter shows its part of a vector:
autograd would add the late gradient to it, on this rank alone. A gradient may be late on some ranks only, so the
ranks agree on what is late (``finish``), with a byte for each flat.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unisono.errors import UsageError
from unisono.parallel.checks import call_digest, first_nan, is_same_digest, raise_different_calls, raise_nan
from unisono.parallel.group import Group, Work
from unisono.parallel.sharded_parameter import gradient_of, guard_gradients, set_gradient
from unisono.parallel.sharding import Flat

WHO = "Zero"
MOST_RUNNING = 2  # vectors that are being averaged at the same time, at most


class ReduceOptions(NamedTuple):
    """How gradients travel: what DataParallel calls by the same names."""

    codec: Any = None
    error_feedback: Callable[[Any], Any] | None = None
    check_nan: bool = False


class PendingAverage:
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


class ZeroReducer(ABC):
    """Averages gradients over a group, and over the replicas of the group if there are any."""

    def __init__(self, group: Group, replicas: Group | None, flats: Sequence[Flat], options: ReduceOptions) -> None:
        self.group, self.replicas, self.device = group, replicas, flats[0].device
        self.groups = [group] if replicas is None else [group, replicas]
        self.flats = list(flats)
        self.unaveraged: set[Flat] = set()  # flats with gradients that were not averaged (``no_sync``)
        self.running: list[PendingAverage] = []
        self.check_nan = options.check_nan
        self.codecs = {
            flat: options.codec for flat in flats if flat.compute_dtype == torch.float32
        }  # codecs encode float32 only
        made = options.error_feedback if options.codec is not None else None
        self.feedbacks = {} if made is None else {flat: made(options.codec) for flat in self.codecs}
        self.nan_parameter: str | None = (
            None  # the first parameter of this rank, in this pass, whose gradient has a NaN
        )

    def reduce(self, flats: Sequence[Flat]) -> None:
        """Take over the gradients that autograd has left in the parameters, and start to average them."""
        for flat in flats:
            if len(self.running) == MOST_RUNNING:
                self.running.pop(0).finish()
            if self.replicas is not None and self.running:
                self.running[-1].advance()
            vector = self.pack(flat)
            if self.check_nan and self.nan_parameter is None and vector.sum().isnan():
                names = (member.names[0] for member in flat.members)
                self.nan_parameter = first_nan(zip(names, flat.views(vector), strict=True))
            if flat in self.feedbacks:
                self.feedbacks[flat].correct(flat.name, vector)
            self.running.append(PendingAverage(self.average(flat, vector)))
            flat.has_gradient = True
            self.unaveraged.discard(flat)
            if flat.is_mixed:
                flat.master.grad = None  # a copy of what was there before

    def finish(self, never_whole: Collection[Flat], calls: list[str] | None) -> None:
        """Average the late gradients of all ranks, wait for all averages; raise on all ranks if one has met a NaN.

        Raise also if there are gradients of what no rank had whole, to compute with, or if the ranks did not make the
        same ``calls`` (stage 3).
        """
        late, has_nan = self._compare(calls)
        while late:
            absent = next((flat for flat in late if flat in never_whole), None)
            if absent is not None:
                raise UsageError(
                    f"{WHO}: parameters of unit {absent.name!r} were used, but the forward of the unit was not "
                    "called, so they were not whole (stage 3) and the result is NaN; call the unit, give as a unit "
                    "the module that uses its parameters, or use stage 2"
                )
            self.reduce(late)
            late, has_nan = self._compare(None)
        self.publish()
        name, self.nan_parameter = self.nan_parameter, None
        if has_nan:
            if self.replicas is not None:
                name = next(filter(None, self.replicas.all_gather_object(name)), None)
            raise_nan(name, self.group, WHO)

    def _compare(self, calls: list[str] | None) -> tuple[list[Flat], bool]:
        """Wait for all averages; return the flats with late gradients on any rank, and whether any rank met a NaN.

        The flags travel behind the last average in the same queue, together with the digest of the calls, so that the
        rank is woken once for all of them.
        """
        flags = [self.has_unpacked(flat) for flat in self.flats] + [self.nan_parameter is not None]
        digest = [] if calls is None else call_digest(calls)
        largest = torch.tensor([*flags, *digest], dtype=torch.uint8, device=self.device)
        name = "(which gradients are late)" if calls is None else "(late gradients, order of the units)"
        work = self.group.all_reduce(largest, op="max", name=name, phase="backward", async_op=True)
        while self.running:
            self.running.pop(0).finish()
        work.wait()
        if self.replicas is not None:
            self.replicas.all_reduce(largest, op="max", name=name, phase="backward")
        values = largest.tolist()
        if calls is not None and not is_same_digest(values[len(flags) :]):
            raise_different_calls(calls, self.groups, WHO)
        late = [flat for flat, is_late in zip(self.flats, values, strict=False) if is_late]
        return late, bool(values[len(flags) - 1])

    def has_unpacked(self, flat: Flat) -> bool:
        """Whether autograd has left gradients that were not packed."""
        return any(gradient_of(member.parameter) is not None for member in flat.members)

    def clear(self) -> None:
        """Drop all gradients."""
        self.unaveraged.clear()
        for flat in self.flats:
            flat.has_gradient = False
            flat.master.grad = None
            for member in flat.members:
                set_gradient(member.parameter, None)

    def raise_unaveraged(self, flat: Flat) -> None:
        """Raise: the gradients of a flat are those of this rank alone."""
        raise UsageError(
            f"{WHO}: the gradients of unit {flat.name!r} are those of rank {self.group.rank} alone, and were not "
            "averaged: their backward pass ran inside no_sync(), or did not go through the forward of this "
            f"{WHO}. Run the last backward pass before the update outside of no_sync(), or call zero_grad()"
        )

    @abstractmethod
    def publish(self) -> None:
        """Give the parameters their gradients, where these are whole."""

    @abstractmethod
    def accumulate(self, flats: Sequence[Flat]) -> None:
        """Keep the gradients for a later ``reduce``."""

    @abstractmethod
    def shard_gradient(self, flat: Flat) -> Tensor | None:
        """Return the gradient of the own shard, averaged; None if there is none."""

    @abstractmethod
    def clipped_tensor(self, flat: Flat) -> Tensor:
        """Return what is to be scaled if the gradients of a flat are: all that this rank has."""

    @abstractmethod
    def pack(self, flat: Flat) -> Tensor:
        """Move the gradients of the parameters into a vector."""

    @abstractmethod
    def average(self, flat: Flat, vector: Tensor) -> Iterator[Work]:
        """Start one collective after the other; the next when the one before is over."""


class WholeGradients(ZeroReducer):
    """Stage 1: the vectors are kept, and the parameters' gradients are views of them, as in data parallelism."""

    def __init__(self, group: Group, replicas: Group | None, flats: Sequence[Flat], options: ReduceOptions) -> None:
        super().__init__(group, replicas, flats, options)
        self.vectors: dict[Flat, Tensor] = {}
        self.views: dict[Flat, list[Tensor]] = {}
        self.packed: set[Flat] = set()  # in this pass, and not shown yet
        for flat in flats:
            vector = self.vectors[flat] = flat.empty_vector(flat.compute_dtype)
            self.views[flat] = flat.views(vector)
            flat.gradient = vector[flat.range_of(flat.rank)]

    def accumulate(self, flats: Sequence[Flat]) -> None:
        """Keep the gradients for a later ``reduce``: in the vector."""
        for flat in flats:
            if self.has_unpacked(flat):
                self.unaveraged.add(flat)
            self.pack(flat)
        self.publish()

    def pack(self, flat: Flat) -> Tensor:
        """Move the gradients of the parameters into the vector."""
        _copy_gradients(flat, self.views[flat], add=flat in self.packed)
        self.packed.add(flat)
        for member in flat.members:  # what comes while the vector is on its way must not be added to it
            member.parameter.grad = None
        return self.vectors[flat]

    def shard_gradient(self, flat: Flat) -> Tensor | None:
        """Return the own part of the vector, in which a parameter whose gradient was set to None has zeros."""
        if not self.has_unpacked(flat):
            return None
        for member, view in zip(flat.members, self.views[flat], strict=True):
            if member.parameter.grad is None:
                view.zero_()
            elif member.parameter.grad is not view or flat in self.unaveraged:
                self.raise_unaveraged(flat)
        found: Tensor = flat.gradient
        return found

    def clipped_tensor(self, flat: Flat) -> Tensor:
        """Return the vector."""
        return self.vectors[flat]

    def average(self, flat: Flat, vector: Tensor) -> Iterator[Work]:
        """All-reduce the vector."""
        for group in (self.group, self.replicas):
            if group is not None:
                yield group.all_reduce(
                    vector, op="avg", name=flat.name, phase="backward", codec=self.codecs.get(flat), async_op=True
                )

    def publish(self) -> None:
        """Make the gradients of the parameters views of the vectors.

        Between two passes the parameters decide: a gradient that was set to None is gone, for the next pass and for
        the update.
        """
        for flat in self.packed:
            for member, view in zip(flat.members, self.views[flat], strict=True):
                member.parameter.grad = view
        self.packed.clear()


class ShardedGradients(ZeroReducer):
    """Stages 2 and 3: only the gradient of the own shard is kept."""

    def __init__(self, group: Group, replicas: Group | None, flats: Sequence[Flat], options: ReduceOptions) -> None:
        super().__init__(group, replicas, flats, options)
        packed = [flat for flat in flats if not _is_one_tensor(flat)]
        nbytes = max((flat.padded_numel * flat.compute_dtype.itemsize for flat in packed), default=0)
        count = min(MOST_RUNNING, len(packed))
        self.buffers = [torch.zeros(nbytes, dtype=torch.uint8, device=packed[0].device) for _ in range(count)]
        self.turn = 0
        self.views: dict[tuple[Flat, int], tuple[Tensor, list[Tensor]]] = {}
        for flat in flats:
            flat.gradient = torch.zeros(flat.shard_numel, dtype=flat.compute_dtype, device=flat.device)
            guard_gradients(flat)

    def accumulate(self, flats: Sequence[Flat]) -> None:
        """Leave the gradients where autograd has put them, and will add to them."""

    def publish(self) -> None:
        """Show nothing: no rank has a whole gradient."""

    def shard_gradient(self, flat: Flat) -> Tensor | None:
        """Return the gradient of the own shard, averaged; None if there is none."""
        if self.has_unpacked(flat):
            self.raise_unaveraged(flat)
        found: Tensor = flat.gradient
        return found if flat.has_gradient else None

    def clipped_tensor(self, flat: Flat) -> Tensor:
        """Return the gradient of the shard."""
        found: Tensor = flat.gradient
        return found

    def pack(self, flat: Flat) -> Tensor:
        """Move the gradients of the parameters into the buffer whose turn it is."""
        if _is_one_tensor(flat):
            gradient = gradient_of(flat.members[0].parameter)
            if gradient is not None and gradient.layout == torch.strided and gradient.is_contiguous():
                set_gradient(flat.members[0].parameter, None)
                return gradient.view(-1)
            vector = flat.empty_vector(flat.compute_dtype)
            views = flat.views(vector)
        else:
            self.turn = (self.turn + 1) % len(self.buffers)
            vector, views = self._in_buffer(flat, self.turn)
        _copy_gradients(flat, views)
        for member in flat.members:
            set_gradient(member.parameter, None)
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
        gradient = gradient_of(member.parameter)
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
