"""Averages gradients over all ranks while autograd still makes others: what DataParallel does backward.

::

    autograd calls      ready(4)  ready(3)  ready(2)  ready(1)  finish
                           │         │         │         │        │
    bucket A = {4, 3}      ·         ├ all-reduce ┤      ·        │
    bucket B = {2, 1}      ·         ·         ·         ├ all-reduce ┤
                                                                  └ waits for both
"""

from __future__ import annotations

import weakref

import torch
from torch import Tensor, nn

from unisono.errors import CommError, UsageError
from unisono.parallel.buckets import Bucket
from unisono.parallel.checks import raise_nan
from unisono.parallel.group import Group, Work

WHO = "DataParallel"


class DdpReducer:
    """Sends buckets as they become complete, in their order; waits for all when the backward pass is over."""

    def __init__(self, buckets: list[Bucket], group: Group, check_nan: bool) -> None:
        self.buckets, self.group, self.check_nan = buckets, group, check_nan
        self.syncs = True  # whether backward passes send anything
        names = [name for bucket in buckets for name in bucket.names]
        self.positions = {name: position for position, name in enumerate(names)}
        # One byte for each parameter: whether there is a gradient; then one byte: whether there is a NaN.
        self.present = torch.ones(len(names) + 1, dtype=torch.uint8, device=buckets[0].parameters[0].device)
        self.nan_parameter: str | None = None  # the parameter that has one, on this rank
        self.open = False  # a backward pass has begun, and has not come to its end
        self.queued = False  # autograd will call _finish
        self.reduced = 0  # buckets that have set out
        self.works: list[Work] = []
        # Versions of the parameters when the first gradient came that was not sent (``no_sync``).
        self.unaveraged_versions: list[int] | None = None
        # Hooks refer to this object weakly: what autograd refers to, the garbage collector does not find.
        own = weakref.ref(self)
        self.hooks = [
            parameter.register_post_accumulate_grad_hook(_GradientHook(own, bucket.pending, name))
            for bucket in buckets
            for name, parameter in zip(bucket.names, bucket.parameters, strict=True)
        ]

    def remove_hooks(self) -> None:
        """Listen no more."""
        for hook in self.hooks:
            hook.remove()

    def check_finished(self) -> None:
        """Raise if the last backward pass has not come to its end."""
        if self.open:
            raise CommError(
                f"{WHO}: on rank {self.group.rank} the last backward pass was left after {self.reduced} of "
                f"{len(self.buckets)} buckets, and the other ranks wait for the rest. If it raised an exception: "
                "start again on all ranks. If parameters are unused under checkpoint(use_reentrant=True): give False "
                "there"
            )

    def versions(self) -> list[int]:
        """Return how often each parameter was changed."""
        return [parameter._version for bucket in self.buckets for parameter in bucket.parameters]

    def check_averaged(self) -> None:
        """Raise if parameters were changed while gradients waited to be sent: an update without an average."""
        if self.unaveraged_versions is not None and self.unaveraged_versions != self.versions():
            raise UsageError(
                f"{WHO}: parameters of rank {self.group.rank} were updated after a backward pass inside no_sync(): "
                "its gradients were not averaged, so the ranks have different parameters now. Run the last backward "
                "pass before the update outside of no_sync(), and start again from a checkpoint"
            )

    def begin(self) -> None:
        """Make autograd call ``_finish`` when all gradients are there."""
        if torch.is_grad_enabled():
            raise UsageError(
                f"{WHO}: backward(create_graph=True); gradients of gradients do not go through an all-reduce: use "
                "torch.autograd.grad() for the inner ones"
            )
        self.open = self.queued = True
        torch.autograd.Variable._execution_engine.queue_callback(self._finish)

    def reduce_complete(self) -> None:
        """Send the buckets that are complete, up to the first that is not."""
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

    def _finish(self) -> None:
        """Send the rest, wait for everything, and hand out what other ranks had gradients for."""
        self.queued = False
        if self.reduced < len(self.buckets) and torch._C._current_autograd_node() is not None:
            return  # a pass within a pass (reentrant checkpoint): the outer one goes on
        for bucket in self.buckets[self.reduced :]:
            self._reduce(bucket)
        absent = [each for bucket in self.buckets for each in bucket.absent]
        present = self._reduce_presence([name for name, _, _ in absent])
        for work in self.works:
            work.wait()
        if absent:
            somewhere = present.tolist()
            for name, parameter, gradient in absent:
                if somewhere[self.positions[name]]:
                    parameter.grad = gradient
        nan, self.nan_parameter = self.nan_parameter, None
        self.works.clear()
        self.reduced, self.open, self.unaveraged_versions = 0, False, None
        for bucket in self.buckets:
            bucket.reset()
        if self.check_nan and present[-1]:
            raise_nan(nan, self.group, WHO)

    def _reduce_presence(self, absent: list[str]) -> Tensor:
        present = self.present.fill_(1)
        present[-1] = self.nan_parameter is not None
        for name in absent:
            present[self.positions[name]] = 0
        what = "(which gradients exist)"
        self.works.append(self.group.all_reduce(present, op="max", name=what, phase="backward", async_op=True))
        return present


class _GradientHook:
    """What autograd calls when the gradient of a parameter is there."""

    __slots__ = ("name", "pending", "reducer")

    def __init__(self, reducer: weakref.ref[DdpReducer], pending: set[str], name: str) -> None:
        self.reducer, self.pending, self.name = reducer, pending, name

    def __call__(self, parameter: Tensor) -> None:
        reducer, pending = self.reducer(), self.pending
        if reducer is None:
            raise UsageError(
                f"{WHO}: the gradient of {self.name!r} is there, but not the {WHO} that would average it; keep that "
                "as long as you train, or unwrap() it before you let it go"
            )
        if not reducer.syncs:
            if reducer.unaveraged_versions is None:
                reducer.unaveraged_versions = reducer.versions()
            return
        if not reducer.queued:
            reducer.begin()
        if self.name not in pending:
            raise UsageError(
                f"{WHO}: the gradient of {self.name!r} came twice in one backward pass; expected once. If it is used "
                "in several parts under checkpoint(use_reentrant=True): give False there. If the pass before raised "
                "an exception: start again on all ranks"
            )
        pending.remove(self.name)
        if not pending:
            reducer.reduce_complete()


def check_not_averaged(module: nn.Module) -> None:
    """Raise if somebody averages the module's gradients already."""
    for name, parameter in module.named_parameters():
        hooks = getattr(parameter, "_post_accumulate_grad_hooks", None) or {}
        for number, hook in list(hooks.items()):
            if not isinstance(hook, _GradientHook):
                continue
            if hook.reducer() is not None:
                raise UsageError(
                    f"{WHO}: parameter {name!r} belongs to a {WHO} already; wrap it once, or unwrap() that one"
                )
            del hooks[number]  # nobody has that one any more
