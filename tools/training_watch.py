"""Watch a training step on one rank: its events, and the memory that the rank holds at each.

A *moment* is an event that a reader wants to see: a layer was computed, a collective was started, a gathered layer
was freed. At each one the real tensors are measured, in bytes, layer by layer:

    parameters    that stay on this rank
    gradients     that exist: local ones, averaged ones, those being sent
    optimizer     the state of Adam (without its counters, 4 bytes for each tensor)
    gathered      parameters of other ranks, for a short time (ZeRO-3)
    activations   saved by autograd for the backward pass

and, for the whole rank, allocated memory that is empty at the moment (buckets and buffers).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

import unisono
from unisono.parallel import Log, record
from unisono.parallel.call_log import Entry
from unisono.parallel.over_comm import CommGroup

KINDS = ("parameters", "gradients", "optimizer", "gathered", "activations")


class Watch:
    """Collects the moments of a step; ``measure`` returns bytes by kind for each layer, and those that are empty."""

    def __init__(self, layers: dict[str, nn.Module]) -> None:
        self.layers = list(layers)
        self.activations = Activations(layers)
        self.measure: Callable[[], tuple[list[dict[str, int]], int]] = lambda: ([], 0)
        self.members: Callable[[str], list[tuple[str, list[int]]]] = lambda name: []
        self.moments: list[dict[str, Any]] = []
        self.collectives: list[dict[str, Any]] = []
        self.open: list[int] = []  # collectives that run
        self.phase = "forward"
        self.is_on = False
        self.running: int | None = None  # the layer that is in its forward pass
        self.shapes: dict[str, list[int]] = {}  # of inputs and outputs, by name
        for number, layer in enumerate(layers.values()):
            self._follow(number, layer)

    @contextmanager
    def step(self) -> Iterator[Log]:
        """Watch what happens inside the block."""
        with self.activations, record() as log:
            self.is_on, self.phase = True, "forward"
            yield log
            self.is_on = False
        found = [(each["collective"], each["name"], each["bytes"]) for each in self.collectives]
        told = [entry for entry in log if entry.name not in COMPARISONS]
        assert found == [(entry.collective, entry.name, entry.bytes) for entry in told]

    def note(self, what: str, layer: int | None = None, collective: int | None = None) -> None:
        """Record an event, and the memory that the rank holds."""
        if not self.is_on:
            return
        by_layer, empty = self.measure()
        for held, kept in zip(by_layer, self.activations.bytes_by_layer(), strict=True):
            held["activations"] = kept
        self.moments.append({
            "what": what, "phase": self.phase, "layer": layer, "collective": collective, "open": list(self.open),
            "held": [[held.get(kind, 0) for kind in KINDS] for held in by_layer], "empty": empty,
        })  # fmt: skip

    def begin(self, entry: Entry, is_async: bool) -> int:
        """Record a collective that has started or, if the rank waited for it, has finished."""
        number = len(self.collectives)
        members = self.members(entry.name)
        self.collectives.append({
            "collective": entry.collective, "name": entry.name, "bytes": entry.bytes, "sent_bytes": entry.sent_bytes,
            "phase": entry.phase, "async": is_async, "members": members, "layers": self.layers_of(members),
        })  # fmt: skip
        self.open.append(number)
        self.phase = entry.phase
        self.note("collective", collective=number)
        return number

    def end(self, number: int) -> None:
        """Take note that a collective is over."""
        if number in self.open:
            self.open.remove(number)

    def layers_of(self, members: list[tuple[str, list[int]]]) -> list[int]:
        """Return the layers that tensors belong to, by their names."""
        numbers = {n for n, layer in enumerate(self.layers) for name, _ in members if name.startswith(f"{layer}.")}
        return sorted(numbers)

    def before(self, entry: Entry) -> None:
        """Take note of what a layer has computed before its own collective."""
        if self.running is not None and entry.name.startswith(f"{self.layers[self.running]}."):
            number, self.running = self.running, None
            self.note("compute", layer=number)

    def _follow(self, number: int, layer: nn.Module) -> None:
        missing: set[int] = set()  # parameters whose gradients have not come

        def entered(*_: Any) -> None:
            self.running = number
            missing.update(id(parameter) for parameter in layer.parameters())

        def left(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            name = self.layers[number]
            self.shapes |= {f"{name}.input": list(inputs[0].shape), f"{name}.output": list(output.shape)}
            if self.running == number:
                self.running = None
                self.note("compute", layer=number)

        def gradient_came(parameter: Tensor) -> None:
            missing.remove(id(parameter))
            if not missing:
                went_back()

        def went_back(*_: Any) -> None:
            self.phase = "backward"
            self.note("compute", layer=number)

        layer.register_forward_pre_hook(entered)
        layer.register_forward_hook(left)
        for parameter in layer.parameters():
            parameter.register_post_accumulate_grad_hook(gradient_came)
        if not list(layer.parameters()):
            layer.register_full_backward_hook(went_back)


class Activations:
    """The tensors that autograd saves, by the first layer that saved them; parameters are not activations."""

    def __init__(self, layers: dict[str, nn.Module]) -> None:
        self.count, self.layer = len(layers), 0
        self.live: weakref.WeakSet[_Kept] = weakref.WeakSet()
        self.others: Callable[[], list[Tensor]] = list
        self.hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)
        for number, layer in enumerate(layers.values()):
            layer.register_forward_pre_hook(self._entered(number))

    def __enter__(self) -> None:
        self.hooks.__enter__()

    def __exit__(self, *problem: object) -> None:
        self.hooks.__exit__(*problem)

    def bytes_by_layer(self) -> list[int]:
        """Return the bytes that are saved now, counting each piece of memory once."""
        found = [0] * self.count
        seen: set[int] = set()
        for kept in sorted(self.live, key=lambda each: each.layer):
            storage = kept.tensor.untyped_storage()
            if storage.data_ptr() not in seen:
                seen.add(storage.data_ptr())
                found[kept.layer] += storage.nbytes()
        return found

    def _entered(self, number: int) -> Callable[..., None]:
        def enter(*_: Any) -> None:
            self.layer = number

        return enter

    def _pack(self, tensor: Tensor) -> Any:
        places = {other.untyped_storage().data_ptr() for other in self.others()}
        if tensor.untyped_storage().data_ptr() in places:
            return tensor
        kept = _Kept(tensor, self.layer)
        self.live.add(kept)
        return kept

    def _unpack(self, found: Any) -> Tensor:
        return found.tensor if isinstance(found, _Kept) else found


class _Kept:
    """A tensor that autograd saves; only autograd refers to this object."""

    def __init__(self, tensor: Tensor, layer: int) -> None:
        self.tensor, self.layer = tensor, layer


# Small collectives by which the ranks of Zero compare their state: no part of the page.
COMPARISONS = ("(order of the units)", "(which gradients are late)", "(late gradients, order of the units)")


class WatchedGroup(CommGroup):
    """A group that reports its collectives."""

    def __init__(self, comm: unisono.Communicator, watch: Watch) -> None:
        super().__init__(comm)
        self.watch = watch

    def duplicate(self) -> WatchedGroup:
        """Return a group of the same ranks that reports too."""
        return WatchedGroup(self.comm.duplicate(), self.watch)

    def _make(self, entry: Entry | None, async_op: bool, call: Any, *arguments: Any) -> Any:
        if entry is None or not self.watch.is_on or entry.name in COMPARISONS:
            return super()._make(entry, async_op, call, *arguments)
        self.watch.before(entry)
        work = super()._make(entry, async_op, call, *arguments)
        number = self.watch.begin(entry, async_op)
        if entry.collective == "all_to_all":
            self.watch.collectives[number]["rows"] = list(arguments[-1])
        if not async_op:
            self.watch.end(number)
        return _WatchedWork(work, lambda: self.watch.end(number))


class _WatchedWork:
    """A work that reports when it has been waited for."""

    def __init__(self, work: Any, over: Callable[[], None]) -> None:
        self.work, self.over = work, over

    def wait(self) -> None:
        """Wait until the collective is over."""
        self.work.wait()
        self.over()
