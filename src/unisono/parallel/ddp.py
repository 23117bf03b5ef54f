"""Data parallel training: every rank has the whole model, and trains on a part of the batch.

::

    start      compare the parameters of all ranks (or broadcast them), broadcast the buffers
    forward    [broadcast buffers]  layer 1 ─> layer 2 ─> layer 3 ─> loss
    backward   computing   layer 3  │ layer 2  │ layer 1  │
               sending              ├ all-reduce(3) ┤├ all-reduce(2) ┤├ all-reduce(1) ┤
                                                          │        stands still       │  wait, once, at the end
    update     the same step on every rank, as all have the same gradients

A gradient is averaged over all ranks. Gradients travel in *buckets*, in a fixed order, the same on all ranks:
from the last parameter of the module to the first. A bucket sets out as soon as its last gradient is there
and those before it have set out; the rest of the backward pass goes on meanwhile. What has not set out when
the pass is over does so then.

A parameter without a gradient counts as zero where another rank has one, and gets the average, too. Where no
rank has one, ``grad`` stays None, so that an optimiser leaves the parameter alone. For this, a last
all-reduce of one byte per parameter says which gradients exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from unisono.errors import UsageError
from unisono.parallel import checks
from unisono.parallel.buckets import Bucket, fill_buckets
from unisono.parallel.ddp_reducer import WHO, DdpReducer, check_not_averaged
from unisono.parallel.group import group_of
from unisono.parallel.module_buffers import ModuleBuffers
from unisono.parallel.structure import Structure

Codec = Any  # what Group.all_reduce takes


class DataParallel(nn.Module):
    """A module that is trained on all ranks of a group at once.

    ``group``: a communicator, a process group of torch, or None for torch's default one.
    ``bucket_bytes``: how much travels together; by default what suits the group. Gradients that are as long or
    longer travel alone and are not copied.
    ``codec``: how float32 gradients are written on the wire; or a function that gets a bucket (``name``,
    ``names``, ``dtype``, ``bytes``) and returns its codec, or None.
    ``error_feedback``: makes, of a codec, what adds to a bucket that which its codec has cut off in the steps
    before: ``unisono.codecs.ErrorFeedback``, or another class with a method ``correct(name, gradients)``.
    ``check_nan``: look for NaN in the gradients of every step, and raise GradientError on all ranks.
    ``broadcast_buffers``: those of rank 0 are taken before each forward pass in training; at the start always.
    ``broadcast_parameters``: start with those of rank 0; by default ranks that differ are an error.
    ``local``: says of a parameter whether each rank has its own (an expert); it is then left alone.

    Parameters, buffers, state dict and attributes are those of the module, by the same names.
    ``parameter.grad`` belongs to this class between two steps: the next backward pass may write into the same
    memory.
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
            raise UsageError(f"{WHO}: bucket_bytes={bucket_bytes!r}; expected a number of bytes, 1 or more")
        if isinstance(module, DataParallel):
            raise UsageError(f"{WHO}: the module is a {WHO} already; wrap it once")
        check_not_averaged(module)
        checks.check_parameters(module, WHO)
        checks.check_same_model(
            module, given, WHO, local=local, bucket_bytes=bucket_bytes, check_nan=check_nan,
            codec="a function" if callable(codec) else str(codec), error_feedback=error_feedback is not None,
            broadcast_buffers=broadcast_buffers, broadcast_parameters=broadcast_parameters,
        )  # fmt: skip
        self.module = module
        self.register_load_state_dict_pre_hook(_add_prefix)
        self._structure = Structure(module, WHO)
        self._module_buffers = ModuleBuffers(module)
        self._broadcasts_buffers = broadcast_buffers
        common = [(name, parameter) for name, parameter in module.named_parameters() if not local(parameter)]
        values = {name: parameter.detach() for name, parameter in common}
        checks.make_same_values(values, given, WHO, broadcast_parameters)
        self._module_buffers.broadcast(given, phase="start")
        self._frozen = [(name, parameter) for name, parameter in common if not parameter.requires_grad]
        trained = [(name, parameter) for name, parameter in common if parameter.requires_grad]
        if not trained:
            raise UsageError(
                f"{WHO}: all parameters of {type(module).__name__} that are trained are local; unwrap it"
            )
        self.buckets = fill_buckets(trained, bucket_bytes)
        for bucket in self.buckets:
            bucket.encode(codec, error_feedback)
        self.group = given.duplicate()  # buckets have an order of their own, whatever the module sends in between
        self._reducer = DdpReducer(self.buckets, self.group, check_nan)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        self._reducer.check_finished()
        self._reducer.check_averaged()
        self._structure.check()
        for name, parameter in self._frozen:
            if parameter.requires_grad:
                raise UsageError(
                    f"{WHO}: parameter {name!r} was frozen when the module was wrapped, and is not any more; "
                    "unwrap() the module and wrap it again"
                )
        if self._broadcasts_buffers and self._reducer.syncs and self.module.training:
            self._module_buffers.broadcast(self.group, phase="forward")
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients accumulate on this rank; the first backward pass after the block sends their sums."""
        before, self._reducer.syncs = self._reducer.syncs, False
        try:
            yield
        finally:
            self._reducer.syncs = before

    def unwrap(self) -> nn.Module:
        """Take the hooks off the parameters; return the module, which is an ordinary one again."""
        self._reducer.check_averaged()
        self._reducer.remove_hooks()
        return self.module

    # ---- as the module -------------------------------------------------------------------------------------------

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Return the parameters of the module, by its names."""
        yield from self.module.named_parameters(*args, **kwargs)

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """Return the buffers of the module, by its names."""
        yield from self.module.named_buffers(*args, **kwargs)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state of the module."""
        self._reducer.check_averaged()
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load the state of the module."""
        loaded = self.module.load_state_dict(*args, **kwargs)
        self._reducer.unaveraged_versions = None  # whatever was updated before is gone
        return loaded

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)


def _add_prefix(wrapper: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Where the wrapper is part of a module that loads a state: its keys have no word for the wrapper."""
    for key in [key for key in state if key.startswith(prefix)]:
        state[f"{prefix}module.{key[len(prefix) :]}"] = state.pop(key)
