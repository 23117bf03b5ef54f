"""The group of a process group of torch.distributed, with any backend."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from torch import Tensor

from unisono.comm import Communicator
from unisono.errors import UsageError
from unisono.parallel.group import Group
from unisono.parallel.messages import NO_CODEC_IN_BACKEND, NO_PROCESS_GROUP, RANKS_NOT_ASCENDING
from unisono.reductions import REDUCTIONS, check_op
from unisono.torch_backend.process_group import UnisonoProcessGroup

WITHOUT_AVG = ("gloo", "mpi")  # backends that cannot average
# Of backends with a lower latency than the others; of ours also where it serves only some devices of a group.
BUCKET_BYTES = {"gloo": 4 << 20}
OWN_BUCKET_BYTES = 1 << 20


def is_process_group(group: Any) -> bool:
    """Tell whether a value is a process group of torch.distributed."""
    return isinstance(group, dist.ProcessGroup)


class TorchGroup(Group):
    """The ranks of a process group of torch.distributed; None is the default group."""

    def __init__(self, group: Any = None, axis: str = "") -> None:
        if not dist.is_initialized():
            raise UsageError(NO_PROCESS_GROUP())
        self.group = group or dist.group.WORLD
        self.rank, self.size, self.axis = dist.get_rank(self.group), dist.get_world_size(self.group), axis
        backend = dist.get_backend(self.group)
        self.averages = backend not in WITHOUT_AVG
        self.bucket_bytes = BUCKET_BYTES.get(backend, Group.bucket_bytes)
        if isinstance(self.group, UnisonoProcessGroup):
            self.hosts = self.group.communicator.hosts
            self.bucket_bytes = OWN_BUCKET_BYTES

    def split(self, color: int, key: int = 0, axis: str = "") -> Group:
        """Return the group of all ranks that pass the same color, in the order of their keys. All ranks call this."""
        requests = self.all_gather_object((color, key, dist.get_rank()))
        members = [rank for each, _, rank in sorted(requests) if each == color]
        if members != sorted(members):
            raise UsageError(RANKS_NOT_ASCENDING(members=members))
        mine = dist.new_group(members, use_local_synchronization=True)  # without the ranks of other groups
        return TorchGroup(mine, axis)

    def all_gather_object(self, value: Any) -> list[Any]:
        """Return the objects of all ranks, in the order of ranks."""
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value, group=self.group)
        return found

    def _choose_codec(self, codec: Any, collective: str, tensor_bytes: int) -> Any:
        return self._comm_for(codec).choose_codec(codec, collective, tensor_bytes).codec

    def _all_reduce(self, async_op: bool, tensor: Tensor, op: str, codec: Any) -> Any:
        if codec is not None:
            return self._comm_for(codec).all_reduce(tensor, op=op, codec=codec, async_op=async_op)
        work = dist.all_reduce(tensor, op=self._op(op, tensor), group=self.group, async_op=async_op)
        return self._divided(work, op, tensor)

    def _all_gather(self, async_op: bool, out: Tensor, tensor: Tensor, codec: Any) -> Any:
        if codec is not None:
            return self._comm_for(codec).all_gather(out, tensor, codec=codec, async_op=async_op)
        return dist.all_gather_into_tensor(out, tensor, group=self.group, async_op=async_op)

    def _reduce_scatter(self, async_op: bool, out: Tensor, tensor: Tensor, op: str, codec: Any) -> Any:
        if codec is not None:
            return self._comm_for(codec).reduce_scatter(out, tensor, op=op, codec=codec, async_op=async_op)
        work = dist.reduce_scatter_tensor(out, tensor, op=self._op(op, tensor), group=self.group, async_op=async_op)
        return self._divided(work, op, out)

    def _all_to_all(
        self, async_op: bool, out: Tensor, tensor: Tensor, out_rows: list[int], in_rows: list[int]
    ) -> Any:
        return dist.all_to_all_single(out, tensor, out_rows, in_rows, group=self.group, async_op=async_op)

    def _broadcast(self, async_op: bool, tensor: Tensor, root: int) -> Any:
        return dist.broadcast(tensor, group=self.group, group_src=root, async_op=async_op)

    def _comm_for(self, codec: Any) -> Communicator:
        """Return the communicator of Unisono's backend: torch's calls have no codecs."""
        if not isinstance(self.group, UnisonoProcessGroup):
            raise UsageError(NO_CODEC_IN_BACKEND(codec=repr(str(codec)), backend=dist.get_backend(self.group)))
        return self.group.communicator

    def _op(self, op: str, tensor: Tensor) -> Any:
        """Return torch's constant of a reduction; reject reductions that a communicator rejects."""
        name = check_op(op, str(tensor.dtype).removeprefix("torch."))
        return getattr(dist.ReduceOp, REDUCTIONS["sum" if name == "avg" and not self.averages else name].torch)

    def _divided(self, work: Any, op: str, out: Tensor) -> Any:
        """Divide the sum, if the backend cannot average."""
        if op != "avg" or self.averages:
            return work
        if work is None:
            out.div_(self.size)
            return None
        return _Dividing(work, out, self.size)


class _Dividing:
    """A work whose result is divided once it is complete."""

    def __init__(self, work: Any, out: Tensor, size: int) -> None:
        self.work, self.out, self.size = work, out, size

    def wait(self) -> None:
        """Wait for the sum; divide it, once."""
        self.work.wait()
        if self.size != 1:
            self.out.div_(self.size)
            self.size = 1
