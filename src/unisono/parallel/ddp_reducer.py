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


class Averager:
    """Sends buckets as they become complete, in their order; waits for all when the backward pass is over."""

    def __init__(self, buckets: list[Bucket], group: Group, check_nan: bool) -> None:
        self.buckets, self.group, self.check_nan = buckets, group, check_nan
        self.is_on = True  # whether backward passes send anything
        names = [name for bucket in buckets for name in bucket.names]
        self.places = {name: place for place, name in enumerate(names)}
        # One byte for each parameter: whether there is a gradient; then one byte: whether there is a NaN.
        self.exists = torch.ones(len(names) + 1, dtype=torch.uint8, device=buckets[0].parameters[0].device)
        self.nan: str | None = None  # the parameter that has one, on this rank
        self.open = False  # a backward pass has begun, and has not come to its end
        self.queued = False  # autograd will call _finish
        self.sent = 0  # buckets that have set out
        self.works: list[Work] = []
        # Versions of the parameters when the first gradient came that was not sent (``no_sync``).
        self.unsent: list[int] | None = None
        # Hooks refer to this object weakly: what autograd refers to, the garbage collector does not find.
        own = weakref.ref(self)
        self.hooks = [
            parameter.register_post_accumulate_grad_hook(_Ready(own, bucket.waits_for, name))
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
                f"{WHO}: on rank {self.group.rank} the last backward pass was left after {self.sent} of "
                f"{len(self.buckets)} buckets, and the other ranks wait for the rest. If it raised an exception: "
                "start again on all ranks. If parameters are unused under checkpoint(use_reentrant=True): give False "
                "there"
            )

    def versions(self) -> list[int]:
        """Return how often each parameter was changed."""
        return [parameter._version for bucket in self.buckets for parameter in bucket.parameters]

    def check_sent(self) -> None:
        """Raise if parameters were changed while gradients waited to be sent: an update without an average."""
        if self.unsent is not None and self.unsent != self.versions():
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

    def send_complete(self) -> None:
        """Send the buckets that are complete, up to the first that is not."""
        while self.sent < len(self.buckets) and not self.buckets[self.sent].waits_for:
            self._send(self.buckets[self.sent])

    def _send(self, bucket: Bucket) -> None:
        self.sent += 1
        flat = bucket.collect()
        if self.check_nan and self.nan is None:
            self.nan = bucket.nan(flat)
        if bucket.feedback is not None:
            bucket.feedback.correct(bucket.name, flat)
        work = self.group.all_reduce(
            flat, op="avg", name=bucket.name, phase="backward", codec=bucket.codec, async_op=True
        )
        self.works.append(work)

    def _finish(self) -> None:
        """Send the rest, wait for everything, and hand out what other ranks had gradients for."""
        self.queued = False
        if self.sent < len(self.buckets) and torch._C._current_autograd_node() is not None:
            return  # a pass within a pass (reentrant checkpoint): the outer one goes on
        for bucket in self.buckets[self.sent :]:
            self._send(bucket)
        absent = [each for bucket in self.buckets for each in bucket.absent]
        exists = self._tell_which_exist([name for name, _, _ in absent])
        for work in self.works:
            work.wait()
        if absent:
            somewhere = exists.tolist()
            for name, parameter, gradient in absent:
                if somewhere[self.places[name]]:
                    parameter.grad = gradient
        nan, self.nan = self.nan, None
        self.works.clear()
        self.sent, self.open, self.unsent = 0, False, None
        for bucket in self.buckets:
            bucket.reset()
        if self.check_nan and exists[-1]:
            raise_nan(nan, self.group, WHO)

    def _tell_which_exist(self, absent: list[str]) -> Tensor:
        exists = self.exists.fill_(1)
        exists[-1] = self.nan is not None
        for name in absent:
            exists[self.places[name]] = 0
        what = "(which gradients exist)"
        self.works.append(self.group.all_reduce(exists, op="max", name=what, phase="backward", async_op=True))
        return exists


class _Ready:
    """What autograd calls when the gradient of a parameter is there."""

    __slots__ = ("averager", "name", "waits_for")

    def __init__(self, averager: weakref.ref[Averager], waits_for: set[str], name: str) -> None:
        self.averager, self.waits_for, self.name = averager, waits_for, name

    def __call__(self, parameter: Tensor) -> None:
        averager, waits_for = self.averager(), self.waits_for
        if averager is None:
            raise UsageError(
                f"{WHO}: the gradient of {self.name!r} is there, but not the {WHO} that would average it; keep that "
                "as long as you train, or unwrap() it before you let it go"
            )
        if not averager.is_on:
            if averager.unsent is None:
                averager.unsent = averager.versions()
            return
        if not averager.queued:
            averager.begin()
        if self.name not in waits_for:
            raise UsageError(
                f"{WHO}: the gradient of {self.name!r} came twice in one backward pass; expected once. If it is used "
                "in several parts under checkpoint(use_reentrant=True): give False there. If the pass before raised "
                "an exception: start again on all ranks"
            )
        waits_for.remove(self.name)
        if not waits_for:
            averager.send_complete()


def check_not_averaged(module: nn.Module) -> None:
    """Raise if somebody averages the module's gradients already."""
    for name, parameter in module.named_parameters():
        hooks = getattr(parameter, "_post_accumulate_grad_hooks", None) or {}
        for number, hook in list(hooks.items()):
            if not isinstance(hook, _Ready):
                continue
            if hook.averager() is not None:
                raise UsageError(
                    f"{WHO}: parameter {name!r} belongs to a {WHO} already; wrap it once, or unwrap() that one"
                )
            del hooks[number]  # nobody has that one any more
