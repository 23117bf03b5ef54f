"""Averages gradients over all ranks during the backward pass of DataParallel, while autograd computes the rest.

::

    gradient is ready      4         3         2         1      finish
                           │         │         │         │        │
    bucket A = {4, 3}      ·         ├ all-reduce ┤      ·        │
    bucket B = {2, 1}      ·         ·         ·         ├ all-reduce ┤
                                                                  └ waits for both

zero_reducer.py does the same job for Zero, unit by unit, with the same verbs: *pack* the gradients into one tensor,
*reduce* it (start its collective), *finish* the backward pass (agree, wait, publish the results).
"""

from __future__ import annotations

import weakref

import torch
from torch import Tensor, nn

from unisono.errors import CommError, UsageError
from unisono.parallel.buckets import Bucket
from unisono.parallel.checks import raise_nan
from unisono.parallel.group import Group, Work
from unisono.parallel.messages import (
    ALREADY_AVERAGED,
    BACKWARD_UNFINISHED,
    GRADIENT_TWICE,
    REDUCER_GONE,
    SECOND_DERIVATIVE,
    UPDATED_WITHOUT_AVERAGE,
)

LOCATION = "DataParallel"


class DdpReducer:
    """Reduces buckets in their order as they become complete; waits for all at the end of the backward pass."""

    def __init__(self, buckets: list[Bucket], group: Group, check_nan: bool) -> None:
        self.buckets, self.group, self.check_nan = buckets, group, check_nan
        self.syncs = True  # False inside no_sync(): gradients accumulate on this rank
        names = [name for bucket in buckets for name in bucket.names]
        self.positions = {name: position for position, name in enumerate(names)}
        # One byte for each parameter: 1 if it has a gradient. The last byte: 1 if a gradient has a NaN.
        self.present = torch.ones(len(names) + 1, dtype=torch.uint8, device=buckets[0].parameters[0].device)
        self.nan_parameter: str | None = None  # the first one whose gradient has a NaN, on this rank
        self.open = False  # a backward pass has begun and has not finished
        self.queued = False  # autograd will call finish
        self.reduced = 0  # buckets whose all-reduce has started
        self.works: list[Work] = []
        # Versions of the parameters at the first gradient that was not averaged (``no_sync``).
        self.unaveraged_versions: list[int] | None = None
        # Hooks refer to this object weakly: the garbage collector cannot follow references from autograd.
        own = weakref.ref(self)
        self.hooks = [
            parameter.register_post_accumulate_grad_hook(_GradientHook(own, bucket.pending, name))
            for bucket in buckets
            for name, parameter in zip(bucket.names, bucket.parameters, strict=True)
        ]

    def remove_hooks(self) -> None:
        """Remove the hooks from the parameters."""
        for hook in self.hooks:
            hook.remove()

    def check_finished(self) -> None:
        """Raise if the last backward pass has not finished."""
        if self.open:
            raise CommError(
                BACKWARD_UNFINISHED(
                    location=LOCATION, rank=self.group.rank, reduced=self.reduced, count=len(self.buckets)
                )
            )

    def versions(self) -> list[int]:
        """Return the version of each parameter, which counts its changes."""
        return [parameter._version for bucket in self.buckets for parameter in bucket.parameters]

    def check_averaged(self) -> None:
        """Raise if parameters were updated while gradients were not averaged."""
        if self.unaveraged_versions is not None and self.unaveraged_versions != self.versions():
            raise UsageError(UPDATED_WITHOUT_AVERAGE(location=LOCATION, rank=self.group.rank))

    def begin(self) -> None:
        """Make autograd call ``finish`` at the end of the backward pass."""
        if torch.is_grad_enabled():
            raise UsageError(SECOND_DERIVATIVE(location=LOCATION, collective="all_reduce"))
        self.open = self.queued = True
        torch.autograd.Variable._execution_engine.queue_callback(self.finish)

    def reduce_complete(self) -> None:
        """Reduce the complete buckets, up to the first that is not complete."""
        while self.reduced < len(self.buckets) and not self.buckets[self.reduced].pending:
            self._reduce(self.buckets[self.reduced])

    def _reduce(self, bucket: Bucket) -> None:
        self.reduced += 1
        flat = bucket.pack()
        if self.check_nan and self.nan_parameter is None:
            self.nan_parameter = bucket.nan(flat)
        if bucket.feedback is not None:
            bucket.feedback.correct(bucket.name, flat)
        work = self.group.all_reduce(
            flat, op="avg", name=bucket.name, phase="backward", codec=bucket.codec, async_op=True
        )
        self.works.append(work)

    def finish(self) -> None:
        """Reduce the rest, wait for everything, and set the gradients that only other ranks had."""
        self.queued = False
        if self.reduced < len(self.buckets) and torch._C._current_autograd_node() is not None:
            return  # a nested backward pass (reentrant checkpoint): the outer one continues
        for bucket in self.buckets[self.reduced :]:
            self._reduce(bucket)
        absent = [each for bucket in self.buckets for each in bucket.absent]
        present = self._reduce_presence([name for name, _, _ in absent])
        for work in self.works:
            work.wait()
        if absent:
            exists = present.tolist()
            for name, parameter, gradient in absent:
                if exists[self.positions[name]]:
                    parameter.grad = gradient
        nan, self.nan_parameter = self.nan_parameter, None
        self.works.clear()
        self.reduced, self.open, self.unaveraged_versions = 0, False, None
        for bucket in self.buckets:
            bucket.reset()
        if self.check_nan and present[-1]:
            raise_nan(nan, self.group, LOCATION)

    def _reduce_presence(self, absent: list[str]) -> Tensor:
        present = self.present.fill_(1)
        present[-1] = self.nan_parameter is not None
        for parameter in absent:
            present[self.positions[parameter]] = 0
        name = "(which gradients exist)"
        self.works.append(self.group.all_reduce(present, op="max", name=name, phase="backward", async_op=True))
        return present


class _GradientHook:
    """The hook that autograd calls when the gradient of a parameter is ready."""

    __slots__ = ("name", "pending", "reducer")

    def __init__(self, reducer: weakref.ref[DdpReducer], pending: set[str], name: str) -> None:
        self.reducer, self.pending, self.name = reducer, pending, name

    def __call__(self, parameter: Tensor) -> None:
        reducer, pending = self.reducer(), self.pending
        if reducer is None:
            raise UsageError(REDUCER_GONE(location=LOCATION, name=self.name))
        if not reducer.syncs:
            if reducer.unaveraged_versions is None:
                reducer.unaveraged_versions = reducer.versions()
            return
        if not reducer.queued:
            reducer.begin()
        if self.name not in pending:
            raise UsageError(GRADIENT_TWICE(location=LOCATION, name=self.name))
        pending.remove(self.name)
        if not pending:
            reducer.reduce_complete()


def check_not_averaged(module: nn.Module) -> None:
    """Raise if another DataParallel averages the module's gradients already."""
    for name, parameter in module.named_parameters():
        hooks = getattr(parameter, "_post_accumulate_grad_hooks", None) or {}
        for number, hook in list(hooks.items()):
            if not isinstance(hook, _GradientHook):
                continue
            if hook.reducer() is not None:
                raise UsageError(ALREADY_AVERAGED(location=LOCATION, name=name))
            del hooks[number]  # its DataParallel no longer exists
