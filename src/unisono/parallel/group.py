"""The group: the few calls that all strategies use, for every kind of communication.

::

    strategy ──> Group ──> CommGroup  ──> unisono.Communicator
                       └─> TorchGroup ──> torch.distributed (NCCL, Gloo, MPI, unisono)

Every call has the name of its tensor and the phase of the step in which it runs, so that ``record()`` can list them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor

from unisono import codecs, collectives
from unisono.compiler import Hosts
from unisono.errors import UsageError
from unisono.parallel.call_log import Entry, TimedWork, add_entry, has_open_log, timed
from unisono.parallel.messages import NOT_A_GROUP


class Work(Protocol):
    """A collective that has been started."""

    def wait(self) -> Any:
        """Wait until it is complete; raise its error if it failed."""


class Done:
    """The work of a call that is already complete."""

    def wait(self) -> None:
        """Return immediately."""


class Group(ABC):
    """Ranks that communicate. All ranks make the same calls in the same order.

    All tensors are contiguous; outputs come first. The arguments that most calls share are:

    ``name``: the name of the tensor in the log of ``record()``.
    ``phase``: the phase of the training step in that log: "start", "forward", "backward", "update" or "state".
    ``codec``: the encoding of float32 numbers on the wire, or None; "auto:bf16" allows one where it pays.
    ``async_op``: return a work immediately; wait for it before you use the tensors. By default a call returns when
    it is complete.
    """

    rank: int
    size: int
    axis: str = ""  # the name of the axis in a mesh
    hosts: Hosts | None = None  # the ranks of each host; None: not known
    bucket_bytes: int = 25 << 20  # the size of a message for which the latency of a call matters little

    def all_reduce(
        self, tensor: Tensor, *, op: str = "sum", name: str, phase: str, codec: Any = None, async_op: bool = False
    ) -> Work:
        """Replace the tensor by a reduction of the tensors of all ranks.

        ``tensor``: the input and the result.
        ``op``: "sum", "avg", "prod", "min", "max", "band", "bor" or "bxor".
        ``name``, ``phase``, ``codec``, ``async_op``: as in the class.
        """
        entry = self._entry("all_reduce", tensor, name, phase, codec)
        return self._make(entry, async_op, self._all_reduce, tensor, op, codec)

    def all_gather(
        self, out: Tensor, tensor: Tensor, *, name: str, phase: str, codec: Any = None, async_op: bool = False
    ) -> Work:
        """Concatenate the tensors of all ranks, which have one size, in the order of ranks.

        ``out``: the result. ``tensor``: the input. ``name``, ``phase``, ``codec``, ``async_op``: as in the class.
        """
        entry = self._entry("all_gather", out, name, phase, codec)
        return self._make(entry, async_op, self._all_gather, out, tensor, codec)

    def reduce_scatter(
        self, out: Tensor, tensor: Tensor, *, op: str = "sum", name: str, phase: str, codec: Any = None,
        async_op: bool = False,
    ) -> Work:  # fmt: skip
        """Reduce the tensors of all ranks, and give each rank an equal part of the result.

        ``out``: this rank's part of the result. ``tensor``: the input. ``op``: as in ``all_reduce``.
        ``name``, ``phase``, ``codec``, ``async_op``: as in the class.
        """
        entry = self._entry("reduce_scatter", tensor, name, phase, codec)
        return self._make(entry, async_op, self._reduce_scatter, out, tensor, op, codec)

    def all_to_all(
        self, out: Tensor, tensor: Tensor, *, out_rows: list[int], in_rows: list[int], name: str, phase: str,
        async_op: bool = False,
    ) -> Work:  # fmt: skip
        """Send rows of the tensor to each rank, and receive rows from each rank.

        ``out``: the received rows, in the order of ranks. ``tensor``: the rows to send, in the order of ranks.
        ``out_rows``: the number of rows from each rank. ``in_rows``: the number of rows to each rank.
        ``name``, ``phase``, ``async_op``: as in the class.
        """
        entry = self._entry("all_to_all", tensor, name, phase, None)
        return self._make(entry, async_op, self._all_to_all, out, tensor, out_rows, in_rows)

    def broadcast(self, tensor: Tensor, *, root: int = 0, name: str, phase: str, async_op: bool = False) -> Work:
        """Replace the tensor by that of the root.

        ``tensor``: the input on the root, the result on the others. ``root``: the rank that sends.
        ``name``, ``phase``, ``async_op``: as in the class.
        """
        entry = self._entry("broadcast", tensor, name, phase, None)
        return self._make(entry, async_op, self._broadcast, tensor, root)

    def __deepcopy__(self, memo: Any) -> Group:
        return self  # a copy of a module communicates with the same ranks

    @abstractmethod
    def split(self, color: int, key: int = 0, axis: str = "") -> Group:
        """Return the group of all ranks that pass the same color. All ranks call this.

        ``color``: a number that identifies the new group. ``key``: ranks are ordered by their keys, then by their
        ranks in this group. ``axis``: the name of the new group in a mesh.
        """

    def duplicate(self) -> Group:
        """Return a group of the same ranks whose calls have a separate order; this group if that is expensive."""
        return self

    @abstractmethod
    def all_gather_object(self, value: Any) -> list[Any]:
        """Return the objects of all ranks, in the order of ranks. It suits small objects of checks, not tensors.

        ``value``: the object of this rank, which is pickled.
        """

    def choose_codec(self, codec: Any, collective: str, tensor_bytes: int) -> Any:
        """Return the codec that a call uses: ``codec``, or the one that it allows if that pays, or None.

        ``collective``: the name of the collective. ``tensor_bytes``: the bytes of the vector, of float32.
        """
        return codec if codecs.find_auto(codec) is None else self._choose_codec(codec, collective, tensor_bytes)

    def _choose_codec(self, codec: Any, collective: str, tensor_bytes: int) -> Any:
        return None

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
        codec = self.choose_codec(codec, collective, size)
        sent = _sent_bytes(collective, tensor.numel(), size, self.size, codec)
        return add_entry(Entry(collective, name, size, phase, self.size, self.axis, str(codec or ""), dtype, sent))

    def _make(self, entry: Entry | None, async_op: bool, call: Any, *arguments: Any) -> Work:
        if entry is None:
            return call(async_op, *arguments) or Done()
        on_cuda = arguments[0].is_cuda
        if async_op:
            work = call(True, *arguments)
        else:
            with timed(entry, on_cuda):  # the rank waits for the whole duration of a blocking call
                work = call(False, *arguments)
        return Done() if work is None else TimedWork(work, entry, on_cuda)


def _sent_bytes(collective: str, count: int, size_bytes: int, size: int, codec: Any) -> int:
    """Return the least that a rank sends, in bytes, for ``count`` elements."""
    found = None if codec is None else codecs.find(codec)
    if found is not None and found.is_topk:  # the encoded numbers of each rank go to all ranks
        return (size - 1) * found.wire_bytes(count)
    wire_bytes = size_bytes if found is None else found.wire_bytes(count)
    return round(collectives.find(collective).least_bytes(size) * wire_bytes)


def group_of(group: Any, algorithms: Mapping[str, Any] | None = None) -> Group:
    """Return the group of a communicator or of a process group of torch.

    ``group``: a communicator, a torch process group, or None for torch's default group.
    ``algorithms``: the algorithms of a communicator by collective, each a name or your own algorithm:
    ``{"all_reduce": my_ring}``. For a process group of torch, pass them to ``Options(algorithms=...)`` instead.
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
