"""The group: the few calls that all strategies are made of, on whatever moves the bytes.

::

    strategy ──> Group ──> CommGroup  ──> unisono.Communicator
                       └─> TorchGroup ──> torch.distributed (NCCL, Gloo, MPI, unisono)

Every call says which tensor it is for and in which phase of a step it runs, so that ``record()`` can list them.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor

from unisono import codecs, collectives
from unisono.errors import UsageError
from unisono.parallel.call_log import Entry, TimedWork, add_entry, has_open_log
from unisono.parallel.messages import NOT_A_GROUP


class Work(Protocol):
    """A collective that has been started."""

    def wait(self) -> Any:
        """Wait until it is over; raise what went wrong with it."""


class Done:
    """The work of a call that is over already."""

    def wait(self) -> None:
        """Return at once."""


class Group(ABC):
    """Ranks that communicate. Each rank makes the same calls in the same order.

    All tensors are contiguous; outputs come first. With ``async_op`` a call returns at once, and the tensors must be
    left alone until its work has been waited for; without, it returns when it is over.
    """

    rank: int
    size: int
    axis: str = ""  # its name in a mesh
    bucket_bytes: int = 25 << 20  # what should travel at once, so that the latency of a call matters little

    def all_reduce(
        self, tensor: Tensor, *, op: str = "sum", name: str, phase: str, codec: Any = None, async_op: bool = False
    ) -> Work:
        """Replace the tensor by the sum of those of all ranks, or by their avg, prod, min, max, band, bor or bxor."""
        entry = self._entry("all_reduce", tensor, name, phase, codec)
        return self._make(entry, async_op, self._all_reduce, tensor, op, codec)

    def all_gather(
        self, out: Tensor, tensor: Tensor, *, name: str, phase: str, codec: Any = None, async_op: bool = False
    ) -> Work:
        """Put the tensors of all ranks, all of one size, one after the other into ``out``."""
        entry = self._entry("all_gather", out, name, phase, codec)
        return self._make(entry, async_op, self._all_gather, out, tensor, codec)

    def reduce_scatter(
        self, out: Tensor, tensor: Tensor, *, op: str = "sum", name: str, phase: str, codec: Any = None,
        async_op: bool = False,
    ) -> Work:  # fmt: skip
        """Sum the tensors of all ranks and put this rank's part, one of ``size`` equal ones, into ``out``."""
        entry = self._entry("reduce_scatter", tensor, name, phase, codec)
        return self._make(entry, async_op, self._reduce_scatter, out, tensor, op, codec)

    def all_to_all(
        self, out: Tensor, tensor: Tensor, *, out_rows: list[int], in_rows: list[int], name: str, phase: str,
        async_op: bool = False,
    ) -> Work:  # fmt: skip
        """Send ``in_rows[d]`` rows of the tensor to rank d; ``out_rows[s]`` rows of ``out`` come from rank s."""
        entry = self._entry("all_to_all", tensor, name, phase, None)
        return self._make(entry, async_op, self._all_to_all, out, tensor, out_rows, in_rows)

    def broadcast(self, tensor: Tensor, *, root: int = 0, name: str, phase: str, async_op: bool = False) -> Work:
        """Replace the tensor by that of the root."""
        entry = self._entry("broadcast", tensor, name, phase, None)
        return self._make(entry, async_op, self._broadcast, tensor, root)

    def __deepcopy__(self, memo: Any) -> Group:
        return self  # a copy of a module communicates with the same ranks

    @abstractmethod
    def split(self, color: int, key: int = 0, axis: str = "") -> Group:
        """Make the group of all ranks that give this color, in the order of their keys. All ranks call this."""

    def duplicate(self) -> Group:
        """Return a group of the same ranks whose calls have an order of their own; itself where that is dear."""
        return self

    @abstractmethod
    def all_gather_object(self, value: Any) -> list[Any]:
        """Return the objects of all ranks, by rank: a small Python object of each. For checks, not for tensors."""

    @abstractmethod
    def _all_reduce(self, async_op: bool, tensor: Tensor, op: str, codec: Any) -> Work | None: ...
    @abstractmethod
    def _all_gather(self, async_op: bool, out: Tensor, tensor: Tensor, codec: Any) -> Work | None: ...
    @abstractmethod
    def _reduce_scatter(self, async_op: bool, out: Tensor, tensor: Tensor, op: str, codec: Any) -> Work | None: ...
    @abstractmethod
    def _all_to_all(
        self, async_op: bool, out: Tensor, tensor: Tensor, out_rows: list[int], in_rows: list[int]
    ) -> Work | None: ...
    @abstractmethod
    def _broadcast(self, async_op: bool, tensor: Tensor, root: int) -> Work | None: ...

    def _entry(self, collective: str, tensor: Tensor, name: str, phase: str, codec: Any) -> Entry | None:
        if not has_open_log():
            return None
        size = tensor.numel() * tensor.element_size()
        dtype = str(tensor.dtype).removeprefix("torch.")
        sent = _sent_bytes(collective, tensor.numel(), size, self.size, codec)
        return add_entry(Entry(collective, name, size, phase, self.size, self.axis, str(codec or ""), dtype, sent))

    def _make(self, entry: Entry | None, async_op: bool, call: Any, *arguments: Any) -> Work:
        if entry is None:
            return call(async_op, *arguments) or Done()
        began = time.perf_counter()
        work = call(async_op, *arguments)
        if work is None:  # it was a blocking call: the rank stood still for all of it
            entry.waited_s += time.perf_counter() - began
            return Done()
        return TimedWork(work, entry)


def _sent_bytes(collective: str, count: int, size_bytes: int, size: int, codec: Any) -> int:
    """Return what a rank sends at least, of ``count`` elements."""
    found = None if codec is None else codecs.find(codec)
    if found is not None and found.is_topk:  # all pieces go to all ranks
        return (size - 1) * found.wire_bytes(count)
    wire_bytes = size_bytes if found is None else found.wire_bytes(count)
    return round(collectives.find(collective).least_bytes(size) * wire_bytes)


def group_of(group: Any, algorithms: Mapping[str, Any] | None = None) -> Group:
    """Return the group of a communicator or of a process group of torch; None is torch's default group.

    ``algorithms`` gives the algorithm of a collective of a communicator, as a name or as an algorithm of your own:
    ``{"all_reduce": my_ring}``. A process group of torch takes them in ``Options(algorithms=...)`` instead.
    """
    from unisono.comm import Communicator
    from unisono.parallel.over_comm import CommGroup
    from unisono.parallel.over_torch import TorchGroup, is_process_group

    if isinstance(group, Group):
        return group
    if isinstance(group, Communicator):
        return CommGroup(group, algorithms=algorithms)
    if group is None or is_process_group(group):
        return TorchGroup(group)
    raise UsageError(NOT_A_GROUP(group=repr(group)))
