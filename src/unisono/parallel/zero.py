"""ZeRO: data parallel training in which no rank holds what another holds as well.

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

Stage 3 is also known as fully sharded data parallelism. *Hybrid*: the ranks of ``group`` (one node) share a
model, and the ranks of ``replicate`` (the same position in every node) have the same shard and average its gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from unisono.errors import UsageError
from unisono.parallel import checks, shard_files, sharded_state
from unisono.parallel.absent_uses import AbsentUses
from unisono.parallel.elementwise import check_elementwise
from unisono.parallel.group import group_of
from unisono.parallel.module_buffers import ModuleBuffers
from unisono.parallel.sharding import Flat, Label, flats_of
from unisono.parallel.structure import Structure
from unisono.parallel.unit_buffers import UnitGatherer
from unisono.parallel.unit_hooks import Unit, UnitHooks
from unisono.parallel.units import Units, find_parts
from unisono.parallel.writes import ParameterAddresses, copy_writes_to_master
from unisono.parallel.zero_reducer import ReduceOptions, ShardedGradients, WholeGradients

WHO = "Zero"
STAGES = (1, 2, 3)


class Zero(nn.Module):
    """A module and its optimiser, spread over the ranks of a group.

    ``optimizer``: a function that makes a torch optimiser, ``lambda shards: AdamW(shards, lr=1e-3)``. It gets
    one long parameter for each unit, this rank's shard of it; so the optimiser must treat every element for itself,
    as SGD, Adam and AdamW do. ``check_optimizer``: try that out, and refuse others.
    ``stage``: 1, 2 or 3, as in the picture.
    ``replicate``: the group of ranks that hold the same shard, for hybrid sharding.
    ``units``: the modules that are units, or a function of name and module that says so; by default the children of
    the largest ``ModuleList`` or ``Sequential``. What is in none of them forms the unit "root".
    ``label``: a function of name and parameter that returns a word. Parameters of different words do not share a
    shard, and a shard has its word as ``shard.label``: for optimisers that treat some differently (weight decay).
    ``mixed_precision``: the dtype of computing and communication (``torch.bfloat16``); the optimiser keeps its own.
    ``codec``: how float32 gradients are written on the wire.
    ``prefetch``: gather the next unit while one computes; costs the memory of one more unit.
    ``free_after_forward``: False keeps parameters whole from the forward to the backward pass: one all-gather of each
    unit instead of two, and the memory of the whole model in between.
    ``error_feedback``, ``check_nan``, ``broadcast_buffers``, ``broadcast_parameters``: as in DataParallel.

    Parameters that are not whole show NaN, in their shape. Frozen parameters are shards in stage 3, and whole before.
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
            raise UsageError(f"{WHO}: stage={stage!r}; expected 1, 2 or 3 (for 0, nothing sharded: DataParallel)")
        if any(isinstance(each, Zero) for each in module.modules()):
            raise UsageError(f"{WHO}: the module is a {WHO} already, or a part of it is; wrap it once")
        self.module, self.stage, self.mixed_precision = module, stage, mixed_precision
        given, replicas = group_of(group), None if replicate is None else group_of(replicate)
        self.all_groups = [each for each in (given, replicas) if each is not None]
        checks.check_parameters(module, WHO)
        parts = find_parts(module, units)
        self._start_alike(
            broadcast_parameters, units=[part.name for part in parts], stage=stage, mixed_precision=mixed_precision,
            codec=str(codec), error_feedback=error_feedback is not None, prefetch=prefetch,
            free_after_forward=free_after_forward, check_nan=check_nan, broadcast_buffers=broadcast_buffers,
        )  # fmt: skip
        self._module_buffers = ModuleBuffers(module)
        self._broadcasts_buffers = broadcast_buffers
        self._broadcast_buffers("start")

        self.group = given.duplicate()  # an order of calls of its own, whatever the module sends in between
        self.replicas = None if replicas is None else replicas.duplicate()
        self.units = [
            Unit(part.name, part.module, part.around, flats_of(part, given.rank, given.size, mixed_precision, label))
            for part in parts
        ]
        self._structure = Structure(module, WHO)
        self._trains = [(name, each, each.requires_grad) for name, each in module.named_parameters()]
        self.flats = [flat for unit in self.units for flat in unit.flats]
        self.trained = [flat for flat in self.flats if flat.trained]
        for flat in self.flats:
            if stage == 3 or flat.trained:
                flat.divide(keep_whole=stage < 3)
            else:
                flat.point([member.parameter.data.to(flat.compute_dtype) for member in flat.members])
        self._addresses = ParameterAddresses(self.trained, WHO)
        self._master_ids = {id(flat.master) for flat in self.trained}
        keeping = WholeGradients if stage == 1 else ShardedGradients
        self._reducer = keeping(
            self.group, self.replicas, self.trained, ReduceOptions(codec, error_feedback, check_nan)
        )
        self._gatherer = self._make_gatherer(prefetch, free_after_forward) if stage == 3 else None
        self._absent_uses = None if self._gatherer is None else AbsentUses(self._gatherer.residents.values(), WHO)
        self._hooks = UnitHooks(
            self.units, self._reducer, self._gatherer, free_after_forward, self._agree, self._compare
        )
        self.optimizer = optimizer([flat.master for flat in self.trained])
        self._check_optimizer()
        if check_optimizer:
            check_elementwise(self.optimizer, self.trained[0].device, WHO)
        self.optimizer.zero_grad = self.zero_grad
        self.optimizer.register_step_pre_hook(self._before_step)
        self.optimizer.register_step_post_hook(self._after_step)
        # torch's GradScaler then calls step() in any case, and `_before_step` sees that it was there.
        self.optimizer._step_supports_amp_scaling = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        root = self.units[0]
        self._check_module()
        self._hooks.begin_forward()
        if self._broadcasts_buffers and self._hooks.syncs and self.module.training:
            self._broadcast_buffers("forward")
        if self.mixed_precision is not None:
            args, kwargs = _cast(args, self.mixed_precision), _cast(kwargs, self.mixed_precision)
        self._hooks.before_forward(root)
        uses = self._absent_uses if torch.is_grad_enabled() else None
        with uses or nullcontext():
            output = self.module(*args, **kwargs)
        self._hooks.after_forward(root, output)
        self._hooks.end_forward()
        if uses is not None:
            self._absent_uses = None  # the first pass has shown which parameters are used where
        return output

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the own shard, and share it (stages 1 and 2).

        ``closure`` computes the loss and its gradients again, as for an optimiser of torch; return what it returns.
        """
        return self.optimizer.step() if closure is None else self.optimizer.step(closure)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients; they are set to None. ``zero.optimizer.zero_grad`` does the same."""
        self._reducer.clear()

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients accumulate on this rank; the first backward pass after the block sends their sums.

        Until then every rank has all its gradients, whole, in every stage.
        """
        before, self._hooks.syncs = self._hooks.syncs, False
        try:
            yield
        finally:
            self._hooks.syncs = before

    def clip_grad_norm(self, max_norm: float) -> Tensor:
        """Scale the gradients so that their norm, over all parameters of the model, is not above ``max_norm``.

        Return the norm as it was. All ranks call this, between the backward pass and ``step``.
        """
        found = [(flat, gradient) for flat in self.trained if (gradient := self._gradient(flat)) is not None]
        total = torch.zeros((), dtype=torch.float64, device=self.trained[0].device)
        for _, gradient in found:
            total += torch.linalg.vector_norm(gradient, dtype=torch.promote_types(gradient.dtype, torch.float32)) ** 2
        self.group.all_reduce(total, name="(norm of the gradients)", phase="update")
        norm = total.sqrt()
        scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
        for flat, gradient in found:
            scaled = self._reducer.clipped_tensor(flat) if gradient is flat.gradient else gradient
            scaled.mul_(scale.to(scaled.dtype))
        return norm

    # ---- the start -----------------------------------------------------------------------------------------------

    def _start_alike(self, broadcast_parameters: bool, **settings: Any) -> None:
        for group in self.all_groups:
            checks.check_same_model(self.module, group, WHO, **settings)
        values = {name: parameter.detach() for name, parameter in self.module.named_parameters()}
        for group in self.all_groups:
            checks.make_same_values(values, group, WHO, broadcast_parameters)

    def _check_module(self) -> None:
        """Raise if the module has not the parameters any more that are in shards, or trains others of them."""
        self._structure.check()
        self._check_writes()
        for name, parameter, trains in self._trains:
            if parameter.requires_grad != trains:
                before, now = ("trained", "frozen now") if trains else ("frozen", "not any more")
                raise UsageError(
                    f"{WHO}: parameter {name!r} was {before} when the module was wrapped, and is {now}; freeze and "
                    "thaw before"
                )

    def _check_writes(self) -> None:
        """Raise if something was written into parameters that would be lost."""
        self._addresses.check()
        if self._gatherer is not None:
            self._gatherer.check_unwritten()

    def _take_writes(self) -> None:
        """Let the optimiser have what was written into parameters."""
        self._check_writes()
        for flat in self.trained:
            copy_writes_to_master(flat)

    def _check_optimizer(self) -> None:
        if not isinstance(self.optimizer, torch.optim.Optimizer):
            raise UsageError(
                f"{WHO}: optimizer= made a {type(self.optimizer).__name__}; expected a function that takes the "
                "shards and returns a torch.optim.Optimizer of them"
            )
        shards = self._master_ids
        strange = [each for part in self.optimizer.param_groups for each in part["params"] if id(each) not in shards]
        if strange:
            raise UsageError(
                f"{WHO}: the optimiser has {len(strange)} parameters that are no shards, the first of shape "
                f"{tuple(strange[0].shape)}; expected only shards, which the function for the optimiser is given: "
                "ranks would update others differently"
            )

    def _broadcast_buffers(self, phase: str) -> None:
        for group in self.all_groups:
            self._module_buffers.broadcast(group, phase=phase)

    def _make_gatherer(self, prefetch: bool, free_after_forward: bool) -> UnitGatherer:
        buffers = len(self.units) if not free_after_forward else 2 if prefetch else 1
        units = [(unit.name, len(unit.around), unit.flats) for unit in self.units]
        return UnitGatherer(self.group, units, prefetch, buffers)

    def _agree(self, order: list[str]) -> list[str]:
        """Take the order of units of rank 0; in stage 3 all must have it anyway."""
        for group in self.all_groups:
            orders = group.all_gather_object(order)
            if self.stage == 3:
                checks.raise_if_orders_differ(orders, WHO)
            order = orders[0]
        return order

    def _compare(self, calls: list[str], phase: str) -> None:
        """Raise on all ranks, in stage 3, if they have not called the same units in the same order."""
        # In the groups of the calls: a call that only one rank makes meets this one.
        checks.check_same_calls(calls, self._reducer.groups, self.trained[0].device, phase, WHO)

    # ---- the update ----------------------------------------------------------------------------------------------

    def publish_gradients(self) -> None:
        """Give the shards their gradients, in the dtype of the optimiser; a step does this by itself."""
        for flat in self.trained:
            gradient = self._gradient(flat)
            flat.master.grad = None if gradient is None else gradient.to(flat.dtype)

    def _gradient(self, flat: Flat) -> Tensor | None:
        """Return the gradient of the own shard, averaged; the copy in the dtype of the optimiser if there is one."""
        found = self._reducer.shard_gradient(flat)
        copied = flat.is_mixed and flat.master.grad is not None
        return flat.master.grad if found is not None and copied else found

    def _before_step(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._check_optimizer()
        self._take_writes()
        if hasattr(optimizer, "found_inf"):
            del optimizer.found_inf, optimizer.grad_scale  # which the scaler has set for this call
            raise UsageError(
                f"{WHO}: a GradScaler sees the gradients of one shard, so ranks would skip different steps; use "
                "unisono.parallel.ShardedGradScaler(zero) in its place"
            )
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
        """Let a ShardedGradScaler decide, within the block, whether to call the optimiser."""
        self.optimizer._step_supports_amp_scaling = False
        try:
            yield
        finally:
            self.optimizer._step_supports_amp_scaling = True

    def _after_step(self, *_: Any) -> None:
        for flat in self.trained:
            if flat.is_mixed:
                flat.master.grad = None  # a copy in the dtype of the optimiser
        self._share("update")

    def _share(self, phase: str) -> None:
        """Make the masters' new values known: to the shards, and where parameters are whole, to all ranks."""
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
        """Return the state of the whole module, as the module by itself would. All ranks call this."""
        if args or kwargs:  # so it is called for a part of a module
            raise UsageError(f"{WHO}: state_dict() takes no arguments; make the {WHO} of the outermost module")
        self._take_writes()
        return sharded_state.state_of(self, self.module.state_dict())

    def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> None:
        """Take the state of a whole module, given on every rank."""
        self._take_writes()
        sharded_state.load(self, state, strict)

    def optimizer_state_dict(self) -> dict[str, Any]:
        """Return the state of the optimiser, as one of ``module.parameters()`` would. All ranks call this."""
        return sharded_state.optimizer_state_of(self)

    def load_optimizer_state_dict(self, state: dict[str, Any]) -> None:
        """Take the state of an optimiser of ``module.parameters()``, given on every rank."""
        sharded_state.load_optimizer(self, state)

    def save_shards(self, folder: Any) -> None:
        """Write the own shard of parameters and optimiser into a file of the folder. All ranks call this."""
        self._take_writes()
        shard_files.save(self, folder)

    def load_shards(self, folder: Any) -> None:
        """Read what as many ranks, or more, or fewer, have saved. All ranks call this."""
        shard_files.load(self, folder)

    @contextmanager
    def whole_parameters(self) -> Iterator[None]:
        """Make all parameters whole within the block; changes are lost. All ranks call this.

        Inside, ``zero.module`` can be called by each rank for itself, and without communication; ``zero`` cannot.
        """
        with sharded_state.whole_parameters(self):
            yield

    # ---- as the module -------------------------------------------------------------------------------------------

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Return the parameters of the module, by its names."""
        yield from self.module.named_parameters(*args, **kwargs)

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """Return the buffers of the module, by its names."""
        yield from self.module.named_buffers(*args, **kwargs)

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        raise UsageError(f"{WHO}: what is in shards cannot be moved or cast; do that before the module is wrapped")

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)


def _cast(found: Any, dtype: torch.dtype) -> Any:
    """Return the same with floating-point tensors in another dtype."""
    if torch.is_tensor(found):
        return found.to(dtype) if found.is_floating_point() else found
    if isinstance(found, dict):
        return {key: _cast(value, dtype) for key, value in found.items()}
    if type(found) in (list, tuple):
        return type(found)(_cast(each, dtype) for each in found)
    return found
