"""Averages gradients over all ranks during the backward pass of Zero, unit by unit.

::

    autograd       unit 2 ├── unit 1 ├── unit 0 ├
    pack                  ▪ 2        ▪ 1        ▪ 0       copy the gradients of a unit into one vector
    stage 1                └─ all-reduce 2 ─┘ ...         keep the vector: every rank has all gradients
    stages 2, 3            └─ reduce-scatter 2 ─┘ ...     keep the shard: the memory of the vector is reused
    hybrid                                 └─ all-reduce of the shard over the replicas

Autograd allocates each gradient separately; the gradient is copied into the vector once and dropped. (Letting
autograd add to the vector would cost more: the vector would have to be cleared, and then be read and written.) The
gradient of a unit with one parameter and no padding is not copied: it is the vector.

A *late* gradient arrives after its unit was packed: the unit runs twice, or its weight is used outside its forward.
Late gradients are averaged and added at the end of the pass. Until then no parameter refers to its part of a vector:
autograd would add the late gradient to it on this rank alone. A gradient may be late on some ranks only, so the ranks
agree on the late flats in ``finish``, with one byte for each flat.

ddp_reducer.py does the same job for DataParallel, bucket by bucket, with the same verbs: pack, reduce, finish.
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
from unisono.parallel.messages import SPARSE_GRADIENT
from unisono.parallel.sharded_parameter import gradient_of, guard_gradients, set_gradient
from unisono.parallel.sharding import Flat
from unisono.parallel.zero_messages import NOT_AVERAGED, UNIT_NOT_CALLED

MOST_RUNNING = 2  # the limit of vectors that are averaged at the same time


class ReduceOptions(NamedTuple):
    """Options of the reduction, named as in DataParallel."""

    codec: Any = None
    error_feedback: Callable[[Any], Any] | None = None
    check_nan: bool = False


class PendingAverage:
    """The collectives that average one vector; ``steps`` starts them one after the other and ends with the result."""

    def __init__(self, steps: Iterator[Work]) -> None:
        self.steps = steps
        self.work: Work | None = next(steps)

    def advance(self) -> None:
        """Wait for the running collective, and start the next one."""
        if self.work is not None:
            self.work.wait()
            self.work = next(self.steps, None)

    def finish(self) -> None:
        """Wait for all collectives."""
        while self.work is not None:
            self.advance()


class ZeroReducer(ABC):
    """Averages gradients over a group, and over its replicas if there are any."""

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
        """Pack the gradients of these flats, and start to average them."""
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
                flat.master.grad = None  # a copy of the previous gradient

    def finish(self, never_whole: Collection[Flat], calls: list[str] | None) -> None:
        """Average the late gradients of all ranks, and wait for all averages.

        Raise on all ranks if one of them found a NaN, if a flat in ``never_whole`` has a gradient, or if the ranks
        did not make the same ``calls`` (stage 3).
        """
        late, has_nan = self._compare(calls)
        while late:
            absent = next((flat for flat in late if flat in never_whole), None)
            if absent is not None:
                raise UsageError(UNIT_NOT_CALLED(unit=absent.name))
            self.reduce(late)
            late, has_nan = self._compare(None)
        self.publish()
        name, self.nan_parameter = self.nan_parameter, None
        if has_nan:
            if self.replicas is not None:
                name = next(filter(None, self.replicas.all_gather_object(name)), None)
            raise_nan(name, self.group, "Zero")

    def _compare(self, calls: list[str] | None) -> tuple[list[Flat], bool]:
        """Wait for all averages; return the flats with late gradients on any rank, and whether any rank found a NaN.

        The flags and the digest of the calls travel in one all-reduce that is queued behind the last average, so that
        the rank is woken once for all of them.
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
            raise_different_calls(calls, self.groups, "Zero")
        late = [flat for flat, is_late in zip(self.flats, values, strict=False) if is_late]
        return late, bool(values[len(flags) - 1])

    def has_unpacked(self, flat: Flat) -> bool:
        """Return whether parameters have gradients that were not packed."""
        return any(gradient_of(member.parameter) is not None for member in flat.members)

    def clear(self) -> None:
        """Drop all gradients; set them to None."""
        self.unaveraged.clear()
        for flat in self.flats:
            flat.has_gradient = False
            flat.master.grad = None
            for member in flat.members:
                set_gradient(member.parameter, None)

    def raise_unaveraged(self, flat: Flat) -> None:
        """Raise an error: the gradients of a flat were not averaged."""
        raise UsageError(NOT_AVERAGED(unit=flat.name, rank=self.group.rank))

    @abstractmethod
    def publish(self) -> None:
        """Set the gradients of the parameters, if these are whole."""

    @abstractmethod
    def accumulate(self, flats: Sequence[Flat]) -> None:
        """Keep the gradients for a later ``reduce``."""

    @abstractmethod
    def shard_gradient(self, flat: Flat) -> Tensor | None:
        """Return the averaged gradient of this rank's shard; None if there is none."""

    @abstractmethod
    def clipped_tensor(self, flat: Flat) -> Tensor:
        """Return the tensor to scale when gradients are clipped: all gradients of the flat on this rank."""

    @abstractmethod
    def pack(self, flat: Flat) -> Tensor:
        """Move the gradients of the parameters into a vector, and return it."""

    @abstractmethod
    def average(self, flat: Flat, vector: Tensor) -> Iterator[Work]:
        """Yield the collectives that average a vector; the caller waits for each before it takes the next."""


class WholeGradients(ZeroReducer):
    """Stage 1: the vectors are kept, and the parameters' gradients are views of them, as in data parallelism."""

    def __init__(self, group: Group, replicas: Group | None, flats: Sequence[Flat], options: ReduceOptions) -> None:
        super().__init__(group, replicas, flats, options)
        self.vectors: dict[Flat, Tensor] = {}
        self.views: dict[Flat, list[Tensor]] = {}
        self.packed: set[Flat] = set()  # in this pass, and not published yet
        for flat in flats:
            vector = self.vectors[flat] = flat.empty_vector(flat.compute_dtype)
            self.views[flat] = flat.views(vector)
            flat.gradient = vector[flat.range_of(flat.rank)]

    def accumulate(self, flats: Sequence[Flat]) -> None:
        """Keep the gradients in the vector for a later ``reduce``."""
        for flat in flats:
            if self.has_unpacked(flat):
                self.unaveraged.add(flat)
            self.pack(flat)
        self.publish()

    def pack(self, flat: Flat) -> Tensor:
        """Move the gradients of the parameters into the vector."""
        _copy_gradients(flat, self.views[flat], add=flat in self.packed)
        self.packed.add(flat)
        for member in flat.members:  # later gradients must not be added to a vector that is being reduced
            member.parameter.grad = None
        return self.vectors[flat]

    def shard_gradient(self, flat: Flat) -> Tensor | None:
        """Return this rank's part of the vector; a gradient that was set to None counts as zero."""
        if not self.has_unpacked(flat):
            return None
        for member, view in zip(flat.members, self.views[flat], strict=True):
            if member.parameter.grad is None:
                view.zero_()
            elif member.parameter.grad is not view or flat in self.unaveraged:
                self.raise_unaveraged(flat)
        gradient: Tensor = flat.gradient
        return gradient

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

        Between two passes the gradients of the parameters count: one that was set to None is dropped, for the next
        pass and for the update.
        """
        for flat in self.packed:
            for member, view in zip(flat.members, self.views[flat], strict=True):
                member.parameter.grad = view
        self.packed.clear()


class ShardedGradients(ZeroReducer):
    """Stages 2 and 3: only the gradient of this rank's shard is kept."""

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
        """Do nothing: the gradients stay in the parameters, where autograd adds to them."""

    def publish(self) -> None:
        """Do nothing: no rank has a whole gradient."""

    def shard_gradient(self, flat: Flat) -> Tensor | None:
        """Return the averaged gradient of this rank's shard; None if there is none."""
        if self.has_unpacked(flat):
            self.raise_unaveraged(flat)
        gradient: Tensor = flat.gradient
        return gradient if flat.has_gradient else None

    def clipped_tensor(self, flat: Flat) -> Tensor:
        """Return the gradient of the shard."""
        gradient: Tensor = flat.gradient
        return gradient

    def pack(self, flat: Flat) -> Tensor:
        """Move the gradients of the parameters into the next buffer."""
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
        """Reduce-scatter the vector, all-reduce the shard over the replicas, and add it to the gradient."""
        shard = torch.empty_like(flat.gradient) if flat.has_gradient else flat.gradient
        options: dict[str, Any] = {"name": flat.name, "phase": "backward", "async_op": True}
        options["codec"] = self.codecs.get(flat)
        yield self.group.reduce_scatter(shard, vector, op="avg", **options)
        if self.replicas is not None:
            yield self.replicas.all_reduce(shard, op="avg", **options)
        if shard is not flat.gradient:
            flat.gradient.add_(shard)

    def _in_buffer(self, flat: Flat, number: int) -> tuple[Tensor, list[Tensor]]:
        cached = self.views.get((flat, number))
        if cached is None:
            nbytes = flat.padded_numel * flat.compute_dtype.itemsize
            vector = self.buffers[number][:nbytes].view(flat.compute_dtype)
            cached = self.views[flat, number] = (vector, flat.views(vector))
        cached[0][flat.numel :].zero_()  # the padding: another flat may have used this buffer
        return cached


def _is_one_tensor(flat: Flat) -> bool:
    return len(flat.members) == 1 and flat.numel == flat.padded_numel


def _copy_gradients(flat: Flat, views: Sequence[Tensor], add: bool = False) -> None:
    """Copy the gradients into the views, or add them; a parameter without a gradient counts as zero."""
    targets, sources = [], []
    for member, view in zip(flat.members, views, strict=True):
        gradient = gradient_of(member.parameter)
        if gradient is None and not add:
            view.zero_()
        elif gradient is not None and gradient is not view:
            if gradient.layout != torch.strided:
                raise UsageError(SPARSE_GRADIENT(location="Zero", name=member.names[0], layout=gradient.layout))
            targets.append(view)
            sources.append(gradient)
    if targets:
        (torch._foreach_add_ if add else torch._foreach_copy_)(targets, sources)
