"""Forward and backward passes, unit by unit: what is done before and after each.

::

    forward    before unit k: unit k is whole; unit k+1 sets out           (stage 3)
               after unit k:  unit k is freed                              (stage 3)
    backward   before unit k: unit k is whole again; unit k-1 sets out     (stage 3)
                              unit k+1 has all its gradients: it is freed, and they are averaged
               at the end:    what is left is averaged; wait for all

That unit k+1 has all its gradients when unit k begins is a property of autograd: it runs backward what was run
forward, in exactly the reverse order. So no parameter needs a hook of its own, and a parameter that got no gradient
(it was not used) delays nothing. What comes later all the same (a unit that is called twice, a checkpoint that runs
a part of the model again, a weight that is used outside its unit) is averaged at the end and added.

In stage 3 all ranks must run the same units in the same order, as each is gathered from all ranks: compared after
every pass. In stages 1 and 2 a rank may leave units out, or run them in another order: gradients are averaged in one
order, agreed on after the first forward pass, and a unit that is not through holds up those that follow it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from unisono.errors import CommError, UsageError
from unisono.parallel.sharding import Flat
from unisono.parallel.unit_buffers import UnitGatherer
from unisono.parallel.units import ROOT
from unisono.parallel.zero_reducer import ZeroReducer


@dataclass
class Unit:
    """A module and the flats of the parameters that belong to it."""

    name: str
    module: nn.Module
    around: tuple[str, ...]  # the units that its module is inside of
    flats: list[Flat]

    @property
    def trained(self) -> list[Flat]:
        """The flats that get gradients."""
        return [flat for flat in self.flats if flat.trained]


class UnitHooks:
    """Follows the units of a model through a step. Without ``gathering`` their parameters are always whole."""

    def __init__(
        self, units: Sequence[Unit], reducer: ZeroReducer, gatherer: UnitGatherer | None, free_after_forward: bool,
        agree_on_order: Callable[[list[str]], list[str]], compare_calls: Callable[[list[str], str], None],
    ) -> None:  # fmt: skip
        """Take also two calls over all ranks: ``agree`` on one order of units, ``compare`` what was called."""
        self.units = {unit.name: unit for unit in units}
        self.trained = {unit.name: unit.trained for unit in units}
        self.reducer, self.gatherer, self.free_after_forward = reducer, gatherer, free_after_forward
        self.agree_on_order, self.compare_calls = agree_on_order, compare_calls
        self.syncs = True  # False: gradients are left for a later pass
        self.is_paused = False  # True: units are whole, and nothing is to be done
        self.order = list(self.units)  # in which units run forward; a guess before the first pass
        self.is_order_agreed = False
        self.units_run: list[str] = []  # the units of this forward pass
        self.pending_calls: list[str] = []  # calls that have been made forward, and not backward yet
        self.open_units: list[str] = []  # units that run backward now, or did, and whose gradients are not averaged
        self.reduced: set[str] = set()  # in this backward pass
        # In stage 3, what nobody has called yet and must have no gradient.
        self.never_whole = {flat for unit in units for flat in unit.trained} if gatherer is not None else set()
        self.calls: list[str] = []  # what was gathered or averaged since the ranks were last compared (stage 3)
        self.tasks: set[int] = set()  # the backward passes (they can be nested) that will call `_end`
        for unit in units:
            if unit.name != ROOT:
                unit.module.register_forward_pre_hook(_PreForwardHook(self, unit))
                unit.module.register_forward_hook(_PostForwardHook(self, unit))

    # ---- forward -------------------------------------------------------------------------------------------------

    def begin_forward(self) -> None:
        """Forget what a pass that broke off, or was not followed by a backward pass, has left."""
        if _is_backward():
            return
        if self.tasks:
            raise CommError(
                "Zero: the last backward pass on this rank was left by an exception; the other ranks wait for what "
                "it did not send: all ranks must start again"
            )
        self.pending_calls, self.open_units, self.units_run = [], [], []
        if self.gatherer is not None and self.free_after_forward:
            self.gatherer.free_all()

    def before_forward(self, unit: Unit) -> None:
        """Make the unit whole."""
        recomputes = _is_backward()  # a checkpoint runs it once more
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
        """Free the unit, and ask to be called when the gradients of its output come."""
        recomputes = _is_backward()
        if self.gatherer is not None and not recomputes:
            resident = self.gatherer.residents[unit.name]
            resident.busy -= 1
            keep = torch.is_grad_enabled() and not self.free_after_forward
            if not (keep or resident.busy):
                self.gatherer.free(unit.name)
        # A checkpoint that is not reentrant computes a call again that is in the trail, or open, already; this output
        # gets no gradient then. A reentrant one computes a call that was not watched, maybe of a unit that is in the
        # trail for another call: only the hook makes it whole in time.
        known = recomputes and (unit.name in self.pending_calls or unit.name in self.open_units)
        if torch.is_grad_enabled() and not (known and self.gatherer is None):
            self._watch(unit, output, is_known=known)

    def end_forward(self) -> None:
        """Agree on the order of units, once; drop what was prefetched for nothing."""
        if _is_backward():
            return
        if not self.is_order_agreed:
            self.order = self.agree_on_order(list(dict.fromkeys([*self.units_run, *self.units])))
            self.is_order_agreed = True
        self._compare_ranks("forward")
        if self.gatherer is not None and self.free_after_forward:
            self.gatherer.free_all()

    def _compare_ranks(self, phase: str) -> None:
        """Raise on all ranks, in stage 3, if they have not made the same calls: they hold numbers of other units."""
        if self.gatherer is not None:
            calls, self.calls = self.calls, []
            self.compare_calls(calls, phase)

    def _watch(self, unit: Unit, output: Any, is_known: bool) -> None:
        tensors = list(tensors_in(output))
        if not tensors and (self.gatherer is not None or unit.name == ROOT):
            raise UsageError(
                f"unit {unit.name} ({type(unit.module).__name__}) returned a {type(output).__name__} in which no "
                "tensor was found; expected a tensor, or tuples, lists, dicts or dataclasses of tensors"
            )
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
        """Make the unit whole again, and average the gradients of those that are through."""
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
        """Average, in the order of all ranks, the units that are through; also those that only other ranks ran."""
        for name in reversed(self.order[self.order.index(unit.name) + 1 :]):
            if name in self.reduced:
                continue
            if name in self.pending_calls or not self._is_finished(name, unit):
                return
            self._reduce(name)

    def _is_finished(self, name: str, unit: Unit) -> bool:
        """Whether a unit has all its gradients when another begins: not one of which is inside of the other."""
        return name != unit.name and name not in unit.around and unit.name not in self.units[name].around

    def _begin_backward(self) -> None:
        if torch.is_grad_enabled():
            raise UsageError(
                "Zero: backward(create_graph=True); gradients of gradients do not go through a reduce-scatter: use "
                "torch.autograd.grad() for the inner ones"
            )
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
        """Average the rest, and wait."""
        if self.tasks != {task}:
            self.tasks.discard(task)
            return  # a pass within a pass: the outer one goes on
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
    """What torch calls before the forward of a module."""

    def __init__(self, hooks: UnitHooks, unit: Unit) -> None:
        self.hooks, self.unit = hooks, unit

    def __call__(self, module: nn.Module, inputs: Any) -> None:
        if not self.hooks.is_paused:
            self.hooks.before_forward(self.unit)


class _PostForwardHook(_PreForwardHook):
    """What torch calls after it."""

    def __call__(self, module: nn.Module, inputs: Any, output: Any = None) -> None:
        if not self.hooks.is_paused:
            self.hooks.after_forward(self.unit, output)


def _is_backward() -> bool:
    return bool(torch._C._current_graph_task_id() != -1)


def tensors_in(found: Any) -> Iterator[Any]:
    """Return the tensors in tuples, lists, dicts and dataclasses."""
    if torch.is_tensor(found):
        yield found
    elif isinstance(found, dict):
        for each in found.values():
            yield from tensors_in(each)
    elif isinstance(found, list | tuple):
        for each in found:
            yield from tensors_in(each)
    elif dataclasses.is_dataclass(found) and not isinstance(found, type):
        for field in dataclasses.fields(found):
            yield from tensors_in(getattr(found, field.name))
