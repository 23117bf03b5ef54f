"""Follows the units of a model through forward and backward passes, and acts before and after each of them.

::

    forward    before unit k: unit k is gathered; unit k+1 is prefetched      (stage 3)
               after unit k:  unit k is freed                                 (stage 3)
    backward   before unit k: unit k is gathered; unit k-1 is prefetched      (stage 3)
                              unit k+1 has all its gradients: it is freed, and they are reduced
               at the end:    the remaining units are reduced; wait for all

Autograd runs the backward pass in exactly the reverse order of the forward pass, so unit k+1 has all its gradients
when unit k begins. No parameter needs a separate hook, and an unused parameter, which gets no gradient, delays
nothing. Gradients that arrive later nevertheless (a unit that is called twice, a checkpoint that runs a part of the
model again, a weight that is used outside its unit) are averaged at the end and added.

In stage 3 all ranks must run the same units in the same order, as each unit is gathered from all ranks; the ranks
compare their calls after every pass. In stages 1 and 2 a rank may skip units or run them in another order: gradients
are reduced in one order, agreed on after the first forward pass, and a unit whose gradients are not complete delays
those that follow it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from unisono.errors import CommError, UsageError
from unisono.parallel.messages import SECOND_DERIVATIVE
from unisono.parallel.nested import tensors_in
from unisono.parallel.sharding import Flat
from unisono.parallel.unit_buffers import UnitGatherer
from unisono.parallel.units import ROOT
from unisono.parallel.zero_messages import BACKWARD_RAISED, NO_TENSOR_IN_OUTPUT
from unisono.parallel.zero_reducer import ZeroReducer


@dataclass
class Unit:
    """A module and the flats of the parameters that belong to it."""

    name: str
    module: nn.Module
    around: tuple[str, ...]  # the units that enclose its module
    flats: list[Flat]

    @property
    def trained(self) -> list[Flat]:
        """The flats whose parameters are trained."""
        return [flat for flat in self.flats if flat.trained]


class UnitHooks:
    """The hooks of all units of a model. Without a ``gatherer``, parameters are always whole (stages 1 and 2)."""

    def __init__(
        self, units: Sequence[Unit], reducer: ZeroReducer, gatherer: UnitGatherer | None, free_after_forward: bool,
        agree_on_order: Callable[[list[str]], list[str]], compare_calls: Callable[[list[str], str], None],
    ) -> None:  # fmt: skip
        """Register the hooks. ``agree_on_order`` and ``compare_calls`` are calls of all ranks: see Zero."""
        self.units = {unit.name: unit for unit in units}
        self.trained = {unit.name: unit.trained for unit in units}
        self.reducer, self.gatherer, self.free_after_forward = reducer, gatherer, free_after_forward
        self.agree_on_order, self.compare_calls = agree_on_order, compare_calls
        self.syncs = True  # False inside no_sync(): gradients accumulate on this rank
        self.is_paused = False  # True: all units are whole, and hooks do nothing
        self.order = list(self.units)  # of the units in the forward pass; a guess before the first one
        self.is_order_agreed = False
        self.units_run: list[str] = []  # the units of this forward pass
        self.pending_calls: list[str] = []  # calls of the forward pass that the backward pass has not reached
        self.open_units: list[str] = []  # units whose backward has begun and whose gradients are not reduced
        self.reduced: set[str] = set()  # units whose gradients were reduced in this backward pass
        # Stage 3: flats of units that were never called, which must not get gradients.
        self.never_whole = {flat for unit in units for flat in unit.trained} if gatherer is not None else set()
        self.calls: list[str] = []  # units called since the ranks last compared their calls (stage 3)
        self.tasks: set[int] = (
            set()
        )  # autograd's ids of the backward passes (they can be nested) that will call `_end`
        for unit in units:
            if unit.name != ROOT:
                unit.module.register_forward_pre_hook(_PreForwardHook(self, unit))
                unit.module.register_forward_hook(_PostForwardHook(self, unit))

    # ---- forward -------------------------------------------------------------------------------------------------

    def begin_forward(self) -> None:
        """Reset the state that an interrupted pass, or one without a backward pass, left behind."""
        if _is_backward():
            return
        if self.tasks:
            raise CommError(BACKWARD_RAISED())
        self.pending_calls, self.open_units, self.units_run = [], [], []
        if self.gatherer is not None and self.free_after_forward:
            self.gatherer.free_all()

    def before_forward(self, unit: Unit) -> None:
        """Gather the unit, and prefetch the next one."""
        recomputes = _is_backward()  # a checkpoint runs the forward again
        if not recomputes:
            self.units_run.append(unit.name)
        if self.gatherer is None:
            return
        self.calls.append(unit.name)
        self.never_whole.difference_update(self.trained[unit.name])
        self.gatherer.gather(unit.name, "backward" if recomputes else "forward")
        if not recomputes:
            self.gatherer.residents[unit.name].busy += 1
            following = self.order.index(unit.name) + 1
            if following < len(self.order):
                self.gatherer.prefetch(self.order[following], "forward")

    def after_forward(self, unit: Unit, output: Any) -> None:
        """Free the unit, and register a hook for the gradients of its output."""
        recomputes = _is_backward()
        if self.gatherer is not None and not recomputes:
            resident = self.gatherer.residents[unit.name]
            resident.busy -= 1
            keep = torch.is_grad_enabled() and not self.free_after_forward
            if not (keep or resident.busy):
                self.gatherer.free(unit.name)
        # A non-reentrant checkpoint recomputes a call that is pending or open already; its output gets no gradient.
        # A reentrant one recomputes a call that was not watched, maybe of a unit with another pending call: only the
        # hook gathers it in time.
        known = recomputes and (unit.name in self.pending_calls or unit.name in self.open_units)
        if torch.is_grad_enabled() and not (known and self.gatherer is None):
            self._watch(unit, output, is_known=known)

    def end_forward(self) -> None:
        """Agree on the order of units after the first pass; free units that were prefetched and not needed."""
        if _is_backward():
            return
        if not self.is_order_agreed:
            self.order = self.agree_on_order(list(dict.fromkeys([*self.units_run, *self.units])))
            self.is_order_agreed = True
        self._compare_ranks("forward")
        if self.gatherer is not None and self.free_after_forward:
            self.gatherer.free_all()

    def _compare_ranks(self, phase: str) -> None:
        """Raise on all ranks if they did not make the same calls (stage 3): they would hold values of other units."""
        if self.gatherer is not None:
            calls, self.calls = self.calls, []
            self.compare_calls(calls, phase)

    def _watch(self, unit: Unit, output: Any, is_known: bool) -> None:
        tensors = list(tensors_in(output))
        if not tensors and (self.gatherer is not None or unit.name == ROOT):
            names = {"unit": unit.name, "module": type(unit.module).__name__, "kind": type(output).__name__}
            raise UsageError(NO_TENSOR_IN_OUTPUT(**names))
        watched = [tensor for tensor in tensors if tensor.requires_grad]
        if not watched:
            return
        if not is_known:
            self.pending_calls.append(unit.name)
        if len(watched) == 1:
            watched[0].register_hook(lambda _: self.before_backward(unit))
        else:
            torch.autograd.graph.register_multi_grad_hook(watched, lambda _: self.before_backward(unit), mode="any")

    # ---- backward ------------------------------------------------------------------------------------------------

    def before_backward(self, unit: Unit) -> None:
        """Gather the unit again, and reduce the gradients of units whose gradients are complete."""
        self._begin_backward()
        if unit.name in self.pending_calls:
            del self.pending_calls[len(self.pending_calls) - 1 - self.pending_calls[::-1].index(unit.name)]
        if self.gatherer is not None:
            finished = [name for name in self.open_units if self._is_finished(name, unit)]
            self.calls.append(unit.name)
            for name in finished:
                self.gatherer.free(name)
            self.gatherer.gather(unit.name, "backward")
            if self.pending_calls:
                self.gatherer.prefetch(self.pending_calls[-1], "backward")
            for name in finished:
                if name not in self.pending_calls:
                    self._reduce(name)
        else:
            self._reduce_in_order(unit)
        if unit.name not in self.open_units:
            self.open_units.append(unit.name)

    def _reduce_in_order(self, unit: Unit) -> None:
        """Reduce complete units in the order of all ranks, units that only other ranks ran included."""
        for name in reversed(self.order[self.order.index(unit.name) + 1 :]):
            if name in self.reduced:
                continue
            if name in self.pending_calls or not self._is_finished(name, unit):
                return
            self._reduce(name)

    def _is_finished(self, name: str, unit: Unit) -> bool:
        """Return whether a unit has all its gradients when another begins: neither encloses the other."""
        return name != unit.name and name not in unit.around and unit.name not in self.units[name].around

    def _begin_backward(self) -> None:
        if torch.is_grad_enabled():
            raise UsageError(SECOND_DERIVATIVE(location="Zero", collective="reduce_scatter"))
        task = torch._C._current_graph_task_id()
        if task not in self.tasks:
            self.tasks.add(task)
            torch.autograd.Variable._execution_engine.queue_callback(lambda: self._end(task))

    def _reduce(self, name: str) -> None:
        if name in self.open_units:
            self.open_units.remove(name)
        self.reduced.add(name)
        if self.syncs:
            self.reducer.reduce(self.trained[name])
        else:
            self.reducer.accumulate(self.trained[name])

    def _end(self, task: int) -> None:
        """Reduce the remaining units, and wait for all."""
        if self.tasks != {task}:
            self.tasks.discard(task)
            return  # a nested backward pass: the outer one continues
        left = list(reversed(self.open_units))
        if self.gatherer is None:
            left = [name for name in reversed(self.order) if name not in self.reduced]
        for name in left:
            self._reduce(name)
        self.reduced.clear()
        if self.gatherer is not None:
            self.gatherer.free_all()
        self.tasks.clear()
        if not self.syncs:
            self._compare_ranks("backward")
            return
        calls, self.calls = self.calls, []
        self.reducer.finish(self.never_whole, calls if self.gatherer is not None else None)


class _PreForwardHook:
    """The hook that torch calls before the forward of a module."""

    def __init__(self, hooks: UnitHooks, unit: Unit) -> None:
        self.hooks, self.unit = hooks, unit

    def __call__(self, module: nn.Module, inputs: Any) -> None:
        if not self.hooks.is_paused:
            self.hooks.before_forward(self.unit)


class _PostForwardHook(_PreForwardHook):
    """The hook that torch calls after the forward of a module."""

    def __call__(self, module: nn.Module, inputs: Any, output: Any = None) -> None:
        if not self.hooks.is_paused:
            self.hooks.after_forward(self.unit, output)


def _is_backward() -> bool:
    return bool(torch._C._current_graph_task_id() != -1)
