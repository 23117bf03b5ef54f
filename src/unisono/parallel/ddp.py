"""Data parallel training: every rank holds the whole model and trains on a part of the batch.

::

    start      compare the parameters of all ranks (or broadcast them), broadcast the buffers
    forward    [broadcast buffers]  layer 1 ─> layer 2 ─> layer 3 ─> loss
    backward   computing   layer 3  │ layer 2  │ layer 1  │
               sending              ├ all-reduce(3) ┤├ all-reduce(2) ┤├ all-reduce(1) ┤
                                                          │          waiting          │  once, at the end
    update     the same step on every rank, as all have the same gradients

Every gradient is averaged over all ranks. Gradients are sent in *buckets*, in a fixed order that is the same on all
ranks: from the last parameter of the module to the first. The all-reduce of a bucket starts as soon as its last
gradient is ready and the buckets before it have started; the backward pass continues meanwhile. Buckets that are not
complete at the end of the pass start then.

A parameter without a gradient counts as zero if another rank has a gradient for it, and gets the average as well. If
no rank has one, ``grad`` stays None, so that an optimiser does not update the parameter. To find out, the ranks
all-reduce one byte per parameter at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from unisono.errors import UsageError
from unisono.parallel import checks
from unisono.parallel.buckets import Bucket, fill_buckets
from unisono.parallel.ddp_reducer import LOCATION, DdpReducer, check_not_averaged
from unisono.parallel.group import group_of
from unisono.parallel.messages import ALL_LOCAL, PARAMETER_THAWED, WRAPPED_TWICE, WRONG_BUCKET_BYTES
from unisono.parallel.module_buffers import ModuleBuffers
from unisono.parallel.structure import Structure

Codec = Any  # an argument of Group.all_reduce


class DataParallel(nn.Module):
    """A module that is trained on all ranks of a group at once.

    ``module``: the module to train, the same on every rank.
    ``group``: a communicator, a torch process group, or None for torch's default group.
    ``bucket_bytes``: the size of a bucket; by default one that suits the group. Gradients of this size or more get a
    separate bucket and are not copied.
    ``codec``: the encoding of float32 gradients on the wire, or a function that takes a bucket (``name``, ``names``,
    ``dtype``, ``bytes``) and returns its codec or None. "auto:bf16" allows a codec, which is used between hosts where
    the link is slow (``connect(link_rate=)``).
    ``error_feedback``: a function of a codec that returns an object with a method ``correct(name, gradients)``, which
    adds to a bucket the residual of earlier steps: ``unisono.codecs.ErrorFeedback``.
    ``check_nan``: look for NaN in the gradients of every step, and raise GradientError on all ranks.
    ``broadcast_buffers``: copy the buffers of rank 0 before each forward pass in training. At the start they are
    always copied.
    ``broadcast_parameters``: start with the parameters of rank 0; by default it is an error if ranks differ.
    ``local``: returns whether a parameter belongs to this rank alone (an expert) and must not be averaged.

    Parameters, buffers, state dict and attributes are those of the module, with the same names. ``parameter.grad``
    belongs to this class between two steps: the next backward pass may write into the same memory.
    """

    def __init__(
        self, module: nn.Module, group: Any = None, *, bucket_bytes: int | None = None,
        codec: Codec | Callable[[Bucket], Codec] = None, error_feedback: Callable[[Codec], Any] | None = None,
        check_nan: bool = False, broadcast_buffers: bool = True, broadcast_parameters: bool = False,
        local: Callable[[Tensor], bool] = lambda _: False,
    ) -> None:  # fmt: skip
        super().__init__()
        given = group_of(group)
        if bucket_bytes is None:
            bucket_bytes = given.bucket_bytes
        elif not (isinstance(bucket_bytes, int) and bucket_bytes > 0):
            raise UsageError(WRONG_BUCKET_BYTES(location=LOCATION, bucket_bytes=bucket_bytes))
        if isinstance(module, DataParallel):
            raise UsageError(WRAPPED_TWICE(location=LOCATION))
        check_not_averaged(module)
        checks.check_parameters(module, LOCATION)
        checks.check_same_model(
            module, given, LOCATION, local=local, bucket_bytes=bucket_bytes, check_nan=check_nan,
            codec="a function" if callable(codec) else str(codec), error_feedback=error_feedback is not None,
            broadcast_buffers=broadcast_buffers, broadcast_parameters=broadcast_parameters,
        )  # fmt: skip
        self.module = module
        self.register_load_state_dict_pre_hook(_add_prefix)
        self._structure = Structure(module, LOCATION)
        self._module_buffers = ModuleBuffers(module)
        self._broadcasts_buffers = broadcast_buffers
        common = [(name, parameter) for name, parameter in module.named_parameters() if not local(parameter)]
        values = {name: parameter.detach() for name, parameter in common}
        checks.make_same_values(values, given, LOCATION, broadcast_parameters)
        self._module_buffers.broadcast(given, phase="start")
        self._frozen = [(name, parameter) for name, parameter in common if not parameter.requires_grad]
        trained = [(name, parameter) for name, parameter in common if parameter.requires_grad]
        if not trained:
            raise UsageError(ALL_LOCAL(location=LOCATION, module=type(module).__name__))
        self.buckets = fill_buckets(trained, bucket_bytes)
        for bucket in self.buckets:
            bucket.encode(codec, error_feedback, given)
        self.group = given.duplicate()  # so that buckets do not mix with the module's calls
        self._reducer = DdpReducer(self.buckets, self.group, check_nan)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module with these arguments; return its result."""
        self._reducer.check_finished()
        self._reducer.check_averaged()
        self._structure.check()
        for name, parameter in self._frozen:
            if parameter.requires_grad:
                raise UsageError(PARAMETER_THAWED(location=LOCATION, name=name))
        if self._broadcasts_buffers and self._reducer.syncs and self.module.training:
            self._module_buffers.broadcast(self.group, phase="forward")
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Accumulate gradients on this rank; the first backward pass after the block averages their sums."""
        before, self._reducer.syncs = self._reducer.syncs, False
        try:
            yield
        finally:
            self._reducer.syncs = before

    def unwrap(self) -> nn.Module:
        """Remove the hooks from the parameters; return the module, which is an ordinary one again."""
        self._reducer.check_averaged()
        self._reducer.remove_hooks()
        return self.module

    # ---- the interface of the module ------------------------------------------------------------------------------

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Yield the parameters of the module with their names."""
        yield from self.module.named_parameters(*args, **kwargs)

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """Yield the buffers of the module with their names."""
        yield from self.module.named_buffers(*args, **kwargs)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state of the module."""
        self._reducer.check_averaged()
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load the state of the module."""
        loaded = self.module.load_state_dict(*args, **kwargs)
        self._reducer.unaveraged_versions = None  # earlier updates have been overwritten
        return loaded

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)


def _add_prefix(wrapper: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Add the name of the wrapped module to the keys, when an outer module loads a state without it."""
    for key in [key for key in state if key.startswith(prefix)]:
        state[f"{prefix}module.{key[len(prefix) :]}"] = state.pop(key)
