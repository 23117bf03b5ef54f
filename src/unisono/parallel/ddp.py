"""Data parallel training: every rank has the whole model, and trains on a part of the batch.

::

    start      compare the parameters of all ranks (or broadcast them), broadcast the buffers
    forward    [broadcast buffers]  layer 1 ─> layer 2 ─> layer 3 ─> loss
    backward   computing   layer 3  │ layer 2  │ layer 1  │
               sending              ├ all-reduce(3) ┤├ all-reduce(2) ┤├ all-reduce(1) ┤
                                                          │        stands still       │  wait, once, at the end
    update     the same step on every rank, as all have the same gradients

A gradient is averaged over all ranks. Gradients travel in *buckets*, in a fixed order, the same on all ranks:
from the last parameter of the module to the first. A bucket sets out as soon as its last gradient is there and
those before it have set out; the rest of the backward pass goes on meanwhile. What has not set out when the pass
is over does so then.

A parameter without a gradient counts as zero where another rank has one, and gets the average, too. Where no rank
has one, ``grad`` stays None, so that an optimiser leaves the parameter alone. For this, a last all-reduce of one
byte per parameter says which gradients exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from unisono.errors import CommError, UsageError
from unisono.parallel import checks
from unisono.parallel.buckets import Bucket, fill_buckets
from unisono.parallel.buffers import Buffers
from unisono.parallel.group import Work, group_of

WHO = "DataParallel"
Codec = Any  # what Group.all_reduce takes


class DataParallel(nn.Module):
    """A module that is trained on all ranks of a group at once.

    ``group``: a communicator, a process group of torch, or None for torch's default one.
    ``bucket_bytes``: how much travels together; by default what suits the group. Gradients that are as long or
    longer travel alone and are not copied.
    ``codec``: how gradients are written on the wire; or a function that gets a bucket (``name``, ``names``,
    ``dtype``, ``bytes``) and returns its codec.
    ``check_nan``: look for NaN in the gradients of every step, and raise GradientError on all ranks.
    ``broadcast_buffers``: those of rank 0 are taken before each forward pass in training; at the start always.
    ``broadcast_parameters``: start with those of rank 0; by default ranks that differ are an error.
    ``skip``: a function that says of a parameter whether it is to be left alone, such as ``is_expert``.

    Parameters, buffers, state dict and attributes are those of the module, by the same names. ``parameter.grad``
    belongs to this class between two steps: the next backward pass may write into the same memory.
    """

    def __init__(
        self, module: nn.Module, group: Any = None, *, bucket_bytes: int | None = None,
        codec: Codec | Callable[[Bucket], Codec] = None, check_nan: bool = False, broadcast_buffers: bool = True,
        broadcast_parameters: bool = False, skip: Callable[[Tensor], bool] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        given = group_of(group)
        if bucket_bytes is None:
            bucket_bytes = given.bucket_bytes
        elif not (isinstance(bucket_bytes, int) and bucket_bytes > 0):
            raise UsageError(f"{WHO}: bucket_bytes={bucket_bytes!r}; expected a number of bytes, 1 or more")
        _check_not_wrapped(module)
        checks.check_parameters(module, WHO)
        checks.check_same_model(
            module, given, WHO, skip, bucket_bytes=bucket_bytes, check_nan=check_nan, broadcast_buffers=broadcast_buffers,
            broadcast_parameters=broadcast_parameters,
        )  # fmt: skip
        self.module = module
        self.register_load_state_dict_pre_hook(_add_prefix)
        self._buffers_of_module = Buffers(module)
        self._broadcasts_buffers = broadcast_buffers
        named = [(name, each) for name, each in module.named_parameters() if skip is None or not skip(each)]
        self._make_same(given, dict(named), broadcast_parameters)

        self.group = given.duplicate()  # buckets have an order of their own, whatever the module sends in between
        self._frozen = [(name, parameter) for name, parameter in named if not parameter.requires_grad]
        trained = [(name, parameter) for name, parameter in named if parameter.requires_grad]
        self.buckets = fill_buckets(trained, bucket_bytes)
        for bucket in self.buckets:
            bucket.codec = codec(bucket) if callable(codec) else codec
        self._places = {name: place for place, (name, _) in enumerate(trained)}
        # One byte for each parameter: whether there is a gradient; then one byte: whether there is a NaN.
        self._exists = torch.ones(len(trained) + 1, dtype=torch.uint8, device=trained[0][1].device)
        self._check_nan = check_nan
        self._nan: str | None = None
        self._syncs = True  # False within no_sync()
        self._open = False  # a backward pass has begun to send, and has not come to its end
        self._queued = False  # autograd will call _finish
        self._sent = 0  # buckets that have set out
        self._works: list[Work] = []
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(_Arrival(self, bucket, name))
            for bucket in self.buckets
            for name, parameter in zip(bucket.names, bucket.parameters, strict=True)
        ]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        self._check_ready()
        if self._broadcasts_buffers and self._syncs and self.module.training:
            self._buffers_of_module.broadcast(self.group, phase="forward")
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients accumulate on this rank; the first backward pass after the block sends their sums."""
        before, self._syncs = self._syncs, False
        try:
            yield
        finally:
            self._syncs = before

    def unwrap(self) -> nn.Module:
        """Take the hooks off the parameters; return the module, which is an ordinary one again."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        return self.module

    # ---- the start -------------------------------------------------------------------------------------------------

    def _make_same(self, group: Any, parameters: dict[str, Any], broadcast_parameters: bool) -> None:
        values = {name: parameter.detach() for name, parameter in parameters.items()}
        if broadcast_parameters:
            for name, value in values.items():
                whole = value.contiguous()
                group.broadcast(whole, name=name, phase="start")
                value.copy_(whole)
        else:
            checks.check_same_values(values, group, WHO)
        self._buffers_of_module.broadcast(group, phase="start")

    # ---- the backward pass ---------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Make autograd call ``_finish`` when all gradients are there."""
        if torch.is_grad_enabled():
            raise UsageError(
                f"{WHO}: backward(create_graph=True); gradients of gradients do not go through an all-reduce: use "
                "torch.autograd.grad() for the inner ones"
            )
        self._open = self._queued = True
        torch.autograd.Variable._execution_engine.queue_callback(self._finish)

    def _send_ready(self) -> None:
        """Send the buckets that are complete, in their order."""
        while self._sent < len(self.buckets) and not self.buckets[self._sent].waits_for:
            self._send(self.buckets[self._sent])

    def _send(self, bucket: Bucket) -> None:
        self._sent += 1
        flat = bucket.collect()
        if self._check_nan and self._nan is None:
            self._nan = bucket.nan(flat)
        work = self.group.all_reduce(
            flat, op="avg", name=bucket.name, phase="backward", codec=bucket.codec, async_op=True
        )
        self._works.append(work)

    def _finish(self) -> None:
        """Send the rest, wait for everything, and hand out what other ranks had gradients for."""
        self._queued = False
        incomplete = self._sent < len(self.buckets)
        if incomplete and torch._C._current_autograd_node() is not None:
            return  # a pass within a pass (reentrant checkpoint): the outer one goes on
        for bucket in self.buckets[self._sent :]:
            self._send(bucket)
        absent = [each for bucket in self.buckets for each in bucket.absent]
        exists = self._tell_which_exist([name for name, _, _ in absent])
        for work in self._works:
            work.wait()
        if absent:
            somewhere = exists.tolist()
            for name, parameter, gradient in absent:
                if somewhere[self._places[name]]:
                    parameter.grad = gradient
        self._reset()
        if self._check_nan and exists[-1]:
            nan, self._nan = self._nan, None
            checks.raise_nan(nan, self.group, WHO)

    def _tell_which_exist(self, absent: list[str]) -> Tensor:
        exists = self._exists.fill_(1)
        exists[-1] = self._nan is not None
        for name in absent:
            exists[self._places[name]] = 0
        what = "(which gradients exist)"
        self._works.append(self.group.all_reduce(exists, op="max", name=what, phase="backward", async_op=True))
        return exists

    def _reset(self) -> None:
        for bucket in self.buckets:
            bucket.reset()
        self._works.clear()
        self._sent = 0
        self._open = False

    def _check_ready(self) -> None:
        if self._open:
            raise CommError(
                f"{WHO}: on rank {self.group.rank} the last backward pass was left after {self._sent} of "
                f"{len(self.buckets)} buckets, and the other ranks wait for the rest. If it raised an exception: "
                "start again on all ranks. If parameters are unused under checkpoint(use_reentrant=True): give False "
                "there"
            )
        thawed = next((name for name, parameter in self._frozen if parameter.requires_grad), None)
        if thawed is not None:
            raise UsageError(
                f"{WHO}: parameter {thawed!r} was frozen when the module was wrapped, and is not any more; unwrap() "
                "the module and wrap it again"
            )

    # ---- as the module -------------------------------------------------------------------------------------------

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Return the parameters of the module, by its names."""
        yield from self.module.named_parameters(*args, **kwargs)

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """Return the buffers of the module, by its names."""
        yield from self.module.named_buffers(*args, **kwargs)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state of the module."""
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load the state of the module."""
        return self.module.load_state_dict(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)


class _Arrival:
    """What autograd calls when the gradient of a parameter is there."""

    __slots__ = ("bucket", "name", "owner")

    def __init__(self, owner: DataParallel, bucket: Bucket, name: str) -> None:
        self.owner, self.bucket, self.name = owner, bucket, name

    def __call__(self, parameter: Tensor) -> None:
        owner, waits_for = self.owner, self.bucket.waits_for
        if not owner._syncs:
            return
        if not owner._queued:
            owner._begin()
        if self.name not in waits_for:
            raise UsageError(
                f"{WHO}: the gradient of {self.name!r} came twice in one backward pass; expected once. If it is used "
                "in several parts under checkpoint(use_reentrant=True): give False there. If the pass before raised "
                "an exception: start again on all ranks"
            )
        waits_for.remove(self.name)
        if not waits_for:
            owner._send_ready()


def _check_not_wrapped(module: nn.Module) -> None:
    if isinstance(module, DataParallel):
        raise UsageError(f"{WHO}: the module is a {WHO} already; wrap it once")
    for name, parameter in module.named_parameters():
        hooks = getattr(parameter, "_post_accumulate_grad_hooks", None) or {}
        if any(isinstance(hook, _Arrival) for hook in hooks.values()):
            raise UsageError(
                f"{WHO}: parameter {name!r} belongs to a {WHO} already; wrap it once, or unwrap() that one"
            )


def _add_prefix(wrapper: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Where the wrapper is part of a module that loads a state: its keys have no word for the wrapper."""
    for key in [key for key in state if key.startswith(prefix)]:
        state[f"{prefix}module.{key[len(prefix) :]}"] = state.pop(key)
