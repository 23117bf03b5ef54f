"""ZeRO: data parallel training without redundancy, which shards the model over the ranks.

::

                 parameters     gradients      optimiser      a step of the model in units 0, 1, 2
    stage 1      whole          whole          own shard      forward    0 1 2
                                                              backward   2 1 0, all-reduce of each
                                                              update     own shard; all-gather of each
    stage 2      whole          own shard      own shard      forward    0 1 2
                                                              backward   2 1 0, reduce-scatter of each
                                                              update     own shard; all-gather of each
    stage 3      own shard      own shard      own shard      forward    all-gather 0, all-gather 1 | 0, ...
                                                              backward   all-gather 2, all-gather 1 | 2,
                                                                         all-gather 0, reduce-scatter 2 | 1, ...
                                                              update     own shard

    "a | b": a runs while b is computed.

Stage 3 is also known as fully sharded data parallelism. In *hybrid* sharding, the ranks of ``group`` (one host)
share a model, and the ranks of ``replicate`` (the same position on every host) hold the same shard and average its
gradient; ``replicate="hosts"`` derives both from the hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from unisono.codecs import find_auto
from unisono.errors import UsageError
from unisono.parallel import checks, shard_files, sharded_state
from unisono.parallel.absent_uses import AbsentUses
from unisono.parallel.elementwise import check_elementwise
from unisono.parallel.mesh import hybrid_groups
from unisono.parallel.messages import WRAPPED_TWICE
from unisono.parallel.module_buffers import ModuleBuffers
from unisono.parallel.nested import cast
from unisono.parallel.sharding import Flat, Label, flats_of
from unisono.parallel.structure import Structure
from unisono.parallel.unit_buffers import UnitGatherer
from unisono.parallel.unit_hooks import Unit, UnitHooks
from unisono.parallel.units import Units, find_parts
from unisono.parallel.writes import ParameterAddresses, copy_writes_to_master
from unisono.parallel.zero_messages import (
    AUTO_WITH_FEEDBACK,
    CANNOT_MOVE_SHARDS,
    FOREIGN_PARAMETERS,
    FROZEN_LATER,
    NOT_AN_OPTIMIZER,
    ONE_FOREIGN_PARAMETER,
    PLAIN_GRAD_SCALER,
    STATE_DICT_ARGUMENTS,
    THAWED_LATER,
    WRONG_STAGE,
)
from unisono.parallel.zero_reducer import ReduceOptions, ShardedGradients, WholeGradients

LOCATION = "Zero"
STAGES = (1, 2, 3)


class Zero(nn.Module):
    """A module and its optimiser, sharded over the ranks of a group.

    ``module``: the module to train, the same on every rank.
    ``group``: a communicator, a torch process group, or None for torch's default group.
    ``optimizer``: a function that creates a torch optimiser, ``lambda shards: AdamW(shards, lr=1e-3)``. It takes one
    long parameter for each unit, this rank's shard of it, so the optimiser must treat every element independently, as
    SGD, Adam and AdamW do.
    ``stage``: 1, 2 or 3, as in the diagram of the module.
    ``replicate``: for hybrid sharding, the group of ranks that hold the same shard. "hosts" divides ``group`` by
    hosts: the ranks of a host share a model.
    ``units``: the modules that are units, or a function of name and module that returns whether it is one; by default
    the children of the largest ``ModuleList`` or ``Sequential``. The other parameters form the unit "root".
    ``label``: a function of name and parameter that returns a string. Parameters with different labels do not share a
    shard, and ``shard.label`` tells the optimiser function which shard is which (for weight decay).
    ``mixed_precision``: the dtype of computation and communication (``torch.bfloat16``); the optimiser keeps its own.
    ``codec``: the encoding of float32 gradients on the wire. "auto:bf16" allows a codec, which each group uses if its
    ranks are on several hosts and the link is slow (``connect(link_rate=)``).
    ``prefetch``: gather the next unit while one computes; costs the memory of one more unit.
    ``free_after_forward``: False keeps parameters whole from the forward to the backward pass: one all-gather of each
    unit instead of two, and the memory of the whole model in between.
    ``check_optimizer``: test whether the optimiser treats every element independently, and raise if not.
    ``error_feedback``, ``check_nan``, ``broadcast_buffers``, ``broadcast_parameters``: as in DataParallel.

    Absent parameters (stage 3) show NaN, in their shape. Frozen parameters are sharded in stage 3 only.
    """

    def __init__(
        self, module: nn.Module, group: Any = None, *, optimizer: Callable[[list[nn.Parameter]], Any], stage: int = 3,
        replicate: Any = None, units: Units = None, label: Label = None, mixed_precision: torch.dtype | None = None,
        codec: Any = None, error_feedback: Callable[[Any], Any] | None = None, prefetch: bool = True,
        free_after_forward: bool = True, check_nan: bool = False, broadcast_buffers: bool = True,
        broadcast_parameters: bool = False, check_optimizer: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if stage not in STAGES:
            raise UsageError(WRONG_STAGE(stage=stage))
        if any(isinstance(each, Zero) for each in module.modules()):
            raise UsageError(WRAPPED_TWICE(location=LOCATION))
        if error_feedback is not None and find_auto(codec) is not None:
            raise UsageError(AUTO_WITH_FEEDBACK(codec=repr(str(codec))))
        self.module, self.stage, self.mixed_precision = module, stage, mixed_precision
        ranks, replicas = hybrid_groups(group, replicate)
        self.all_groups = [each for each in (ranks, replicas) if each is not None]
        checks.check_parameters(module, LOCATION)
        parts = find_parts(module, units)
        self._start_equal(
            broadcast_parameters, units=[part.name for part in parts], stage=stage, mixed_precision=mixed_precision,
            codec=str(codec), error_feedback=error_feedback is not None, prefetch=prefetch,
            free_after_forward=free_after_forward, check_nan=check_nan, broadcast_buffers=broadcast_buffers,
        )  # fmt: skip
        self._module_buffers = ModuleBuffers(module)
        self._broadcasts_buffers = broadcast_buffers
        self._broadcast_buffers("start")

        self.group = ranks.duplicate()  # so that these calls do not mix with the module's
        self.replicas = None if replicas is None else replicas.duplicate()
        self.units = [
            Unit(part.name, part.module, part.around, flats_of(part, ranks.rank, ranks.size, mixed_precision, label))
            for part in parts
        ]
        self._structure = Structure(module, LOCATION)
        self._trains = [(name, each, each.requires_grad) for name, each in module.named_parameters()]
        self.flats = [flat for unit in self.units for flat in unit.flats]
        self.trained = [flat for flat in self.flats if flat.trained]
        for flat in self.flats:
            if stage == 3 or flat.trained:
                flat.divide(keep_whole=stage < 3)
            else:
                flat.point([member.parameter.data.to(flat.compute_dtype) for member in flat.members])
        self._addresses = ParameterAddresses(self.trained)
        self._master_ids = {id(flat.master) for flat in self.trained}
        reducer = WholeGradients if stage == 1 else ShardedGradients
        options = ReduceOptions(codec, error_feedback, check_nan)
        self._reducer = reducer(self.group, self.replicas, self.trained, options)
        self._gatherer = self._make_gatherer(prefetch, free_after_forward) if stage == 3 else None
        self._absent_uses = None if self._gatherer is None else AbsentUses(self._gatherer.residents.values())
        self._hooks = UnitHooks(
            self.units, self._reducer, self._gatherer, free_after_forward, self._agree, self._compare
        )
        self.optimizer = optimizer([flat.master for flat in self.trained])
        self._check_optimizer()
        if check_optimizer:
            check_elementwise(self.optimizer, self.trained[0].device)
        self.optimizer.zero_grad = self.zero_grad
        self.optimizer.register_step_pre_hook(self._before_step)
        self.optimizer.register_step_post_hook(self._after_step)
        # With this, torch's GradScaler always calls step(), and `_before_step` can refuse it.
        self.optimizer._step_supports_amp_scaling = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module with these arguments; return its result."""
        root = self.units[0]
        self._check_module()
        self._hooks.begin_forward()
        if self._broadcasts_buffers and self._hooks.syncs and self.module.training:
            self._broadcast_buffers("forward")
        if self.mixed_precision is not None:
            args, kwargs = cast(args, self.mixed_precision), cast(kwargs, self.mixed_precision)
        self._hooks.before_forward(root)
        uses = self._absent_uses if torch.is_grad_enabled() else None
        with uses or nullcontext():
            output = self.module(*args, **kwargs)
        self._hooks.after_forward(root, output)
        self._hooks.end_forward()
        if uses is not None:
            self._absent_uses = None  # watching takes time: only the first pass is checked
        return output

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update this rank's shard, and gather the new parameters (stages 1 and 2).

        ``closure``: a function that computes the loss and its gradients again, as for a torch optimiser; its result
        is returned.
        """
        return self.optimizer.step() if closure is None else self.optimizer.step(closure)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set all gradients to None, whatever ``set_to_none``; ``zero.optimizer.zero_grad`` does the same."""
        self._reducer.clear()

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Accumulate gradients on this rank; the first backward pass after the block averages their sums.

        Until then every rank holds its gradients whole, in every stage.
        """
        before, self._hooks.syncs = self._hooks.syncs, False
        try:
            yield
        finally:
            self._hooks.syncs = before

    def clip_grad_norm(self, max_norm: float) -> Tensor:
        """Scale the gradients so that their norm over all parameters of the model is at most ``max_norm``.

        Return the norm before scaling. All ranks call this, between the backward pass and ``step``.
        """
        gradients = [(flat, gradient) for flat in self.trained if (gradient := self._gradient(flat)) is not None]
        total = torch.zeros((), dtype=torch.float64, device=self.trained[0].device)
        for _, gradient in gradients:
            total += torch.linalg.vector_norm(gradient, dtype=torch.promote_types(gradient.dtype, torch.float32)) ** 2
        self.group.all_reduce(total, name="(norm of the gradients)", phase="update")
        norm = total.sqrt()
        scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
        for flat, gradient in gradients:
            scaled = self._reducer.clipped_tensor(flat) if gradient is flat.gradient else gradient
            scaled.mul_(scale.to(scaled.dtype))
        return norm

    # ---- the start -----------------------------------------------------------------------------------------------

    def _start_equal(self, broadcast_parameters: bool, **settings: Any) -> None:
        for group in self.all_groups:
            checks.check_same_model(self.module, group, LOCATION, **settings)
        values = {name: parameter.detach() for name, parameter in self.module.named_parameters()}
        for group in self.all_groups:
            checks.make_same_values(values, group, LOCATION, broadcast_parameters)

    def _check_module(self) -> None:
        """Raise if parameters were added, removed, replaced, frozen or unfrozen since wrapping."""
        self._structure.check()
        self._check_writes()
        for name, parameter, trains in self._trains:
            if parameter.requires_grad != trains:
                raise UsageError(FROZEN_LATER(name=name) if trains else THAWED_LATER(name=name))

    def _check_writes(self) -> None:
        """Raise if values written into parameters would be lost."""
        self._addresses.check()
        if self._gatherer is not None:
            self._gatherer.check_unwritten()

    def _take_writes(self) -> None:
        """Pass values written into parameters to the optimiser."""
        self._check_writes()
        for flat in self.trained:
            copy_writes_to_master(flat)

    def _check_optimizer(self) -> None:
        if not isinstance(self.optimizer, torch.optim.Optimizer):
            raise UsageError(NOT_AN_OPTIMIZER(kind=type(self.optimizer).__name__))
        parameters = (each for part in self.optimizer.param_groups for each in part["params"])
        foreign = [each for each in parameters if id(each) not in self._master_ids]
        if foreign:
            template = ONE_FOREIGN_PARAMETER if len(foreign) == 1 else FOREIGN_PARAMETERS
            shape = tuple(foreign[0].shape)
            raise UsageError(template(shape=shape, count=len(foreign)))

    def _broadcast_buffers(self, phase: str) -> None:
        for group in self.all_groups:
            self._module_buffers.broadcast(group, phase=phase)

    def _make_gatherer(self, prefetch: bool, free_after_forward: bool) -> UnitGatherer:
        buffers = len(self.units) if not free_after_forward else 2 if prefetch else 1
        units = [(unit.name, len(unit.around), unit.flats) for unit in self.units]
        return UnitGatherer(self.group, units, prefetch, buffers)

    def _agree(self, order: list[str]) -> list[str]:
        """Return the order of units of rank 0; raise in stage 3 if another rank has a different one."""
        for group in self.all_groups:
            orders = group.all_gather_object(order)
            if self.stage == 3:
                checks.raise_if_orders_differ(orders, LOCATION)
            order = orders[0]
        return order

    def _compare(self, calls: list[str], phase: str) -> None:
        """Raise on all ranks if they did not call the same units in the same order (stage 3)."""
        # In the groups of the calls, so that a call of one rank alone meets this comparison and is an error.
        checks.check_same_calls(calls, self._reducer.groups, self.trained[0].device, phase, LOCATION)

    # ---- the update ----------------------------------------------------------------------------------------------

    def publish_gradients(self) -> None:
        """Set the gradients of the shards, in the dtype of the optimiser; ``step`` calls this."""
        for flat in self.trained:
            gradient = self._gradient(flat)
            flat.master.grad = None if gradient is None else gradient.to(flat.dtype)

    def _gradient(self, flat: Flat) -> Tensor | None:
        """Return the averaged gradient of this rank's shard, in the dtype of the optimiser if there is a copy."""
        gradient = self._reducer.shard_gradient(flat)
        copied = flat.is_mixed and flat.master.grad is not None
        return flat.master.grad if gradient is not None and copied else gradient

    def _before_step(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._check_optimizer()
        self._take_writes()
        if hasattr(optimizer, "found_inf"):
            del optimizer.found_inf, optimizer.grad_scale  # the scaler set them for this call
            raise UsageError(PLAIN_GRAD_SCALER())
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if closure is None:
            self.publish_gradients()
            return None

        def compute() -> Any:
            loss = closure()
            self.publish_gradients()
            return loss

        return (optimizer, compute), {name: value for name, value in kwargs.items() if name != "closure"}

    @contextmanager
    def unscaled_steps(self) -> Iterator[None]:
        """Let a ShardedGradScaler decide within the block whether to call the optimiser."""
        self.optimizer._step_supports_amp_scaling = False
        try:
            yield
        finally:
            self.optimizer._step_supports_amp_scaling = True

    def _after_step(self, *_: Any) -> None:
        for flat in self.trained:
            if flat.is_mixed:
                flat.master.grad = None  # a copy in the dtype of the optimiser
        self._publish_parameters("update")

    def _publish_parameters(self, phase: str) -> None:
        """Copy the optimiser's new values to the shards and, in stages 1 and 2, gather them on all ranks."""
        works = []
        for flat in self.trained:
            if flat.is_mixed:
                flat.shard.copy_(flat.master.data)
            if flat.whole is not None:
                work = self.group.all_gather(flat.whole, flat.shard, name=flat.name, phase=phase, async_op=True)
                works.append(work)
                torch.autograd.graph.increment_version([member.parameter for member in flat.members])
        for work in works:
            work.wait()
        if self._gatherer is not None:
            self._gatherer.invalidate()

    # ---- state ---------------------------------------------------------------------------------------------------

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the state of the whole module, as without Zero. All ranks call this."""
        if args or kwargs:  # an outer module called this for one of its parts
            raise UsageError(STATE_DICT_ARGUMENTS())
        self._take_writes()
        return sharded_state.state_of(self, self.module.state_dict())

    def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> None:
        """Load ``state``, that of the whole module, which every rank passes; if ``strict``, all keys must match."""
        self._take_writes()
        sharded_state.load(self, state, strict)

    def optimizer_state_dict(self) -> dict[str, Any]:
        """Return the state of an optimiser of ``module.parameters()``. All ranks call this."""
        return sharded_state.optimizer_state_of(self)

    def load_optimizer_state_dict(self, state: dict[str, Any]) -> None:
        """Load ``state``, that of an optimiser of ``module.parameters()``, which every rank passes."""
        sharded_state.load_optimizer(self, state)

    def save_shards(self, folder: Any) -> None:
        """Save this rank's shard of parameters and optimiser to a file in ``folder``. All ranks call this."""
        self._take_writes()
        shard_files.save(self, folder)

    def load_shards(self, folder: Any) -> None:
        """Load a ``folder`` that any number of ranks saved. All ranks call this."""
        shard_files.load(self, folder)

    @contextmanager
    def whole_parameters(self) -> Iterator[None]:
        """Make all parameters whole within the block; changes to them are lost. All ranks call this.

        Inside the block each rank can call ``zero.module`` independently and without communication, but not ``zero``.
        """
        with sharded_state.whole_parameters(self):
            yield

    # ---- as the module -------------------------------------------------------------------------------------------

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Yield the parameters of the module with their names."""
        yield from self.module.named_parameters(*args, **kwargs)

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """Yield the buffers of the module with their names."""
        yield from self.module.named_buffers(*args, **kwargs)

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        raise UsageError(CANNOT_MOVE_SHARDS())

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)
