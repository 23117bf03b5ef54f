"""The group of a communicator."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from unisono.comm import Communicator
from unisono.parallel.group import Group, Work


class CommGroup(Group):
    """The ranks of a communicator."""

    bucket_bytes = 1 << 20

    def __init__(self, comm: Communicator, axis: str = "", algorithms: Mapping[str, Any] | None = None) -> None:
        self.comm = comm
        self.algorithms = dict(algorithms or {})  # by the name of the collective
        self.rank, self.size, self.axis = comm.rank, comm.size, axis
        self.hosts = comm.hosts

    def split(self, color: int, key: int = 0, axis: str = "") -> Group:
        """Return the group of all ranks that pass the same color, in the order of their keys. All ranks call this."""
        part = self.comm.split(color, key)
        assert part is not None
        return CommGroup(part, axis, self.algorithms)

    def duplicate(self) -> Group:
        """Return a group of the same ranks whose calls have a separate order. All ranks call this."""
        return CommGroup(self.comm.duplicate(), self.axis, self.algorithms)

    def all_gather_object(self, value: Any) -> list[Any]:
        """Return the objects of all ranks, in the order of ranks."""
        mine = np.frombuffer(pickle.dumps(value), dtype=np.uint8)
        sizes = np.zeros(self.size, dtype=np.int64)
        self.comm.all_gather(sizes, np.array([len(mine)], dtype=np.int64))
        ends = np.cumsum(sizes)
        everything = np.zeros(ends[-1], dtype=np.uint8)
        self.comm.all_gather(everything, mine, out_sizes=sizes.tolist())
        return [pickle.loads(part.tobytes()) for part in np.split(everything, ends[:-1])]

    def _choose_codec(self, codec: Any, collective: str, tensor_bytes: int) -> Any:
        algorithm = self.algorithms.get(collective)
        return self.comm.choose_codec(codec, collective, tensor_bytes, algorithm=algorithm).codec

    def _all_reduce(self, async_op: bool, tensor: Tensor, op: str, codec: Any) -> Work | None:
        return self.comm.all_reduce(tensor, op=op, async_op=async_op, **self._options("all_reduce", codec))

    def _all_gather(self, async_op: bool, out: Tensor, tensor: Tensor, codec: Any) -> Work | None:
        return self.comm.all_gather(out, tensor, async_op=async_op, **self._options("all_gather", codec))

    def _reduce_scatter(self, async_op: bool, out: Tensor, tensor: Tensor, op: str, codec: Any) -> Work | None:
        return self.comm.reduce_scatter(
            out, tensor, op=op, async_op=async_op, **self._options("reduce_scatter", codec)
        )

    def _all_to_all(
        self, async_op: bool, out: Tensor, tensor: Tensor, out_rows: list[int], in_rows: list[int]
    ) -> Work | None:
        width = tensor[0].numel() if len(tensor) else out[0].numel() if len(out) else 0
        return self.comm.all_to_all(
            out.view(-1), tensor.view(-1), in_sizes=[rows * width for rows in in_rows],
            out_sizes=[rows * width for rows in out_rows], async_op=async_op,
        )  # fmt: skip

    def _broadcast(self, async_op: bool, tensor: Tensor, root: int) -> Work | None:
        return self.comm.broadcast(tensor, root=root, async_op=async_op, **self._options("broadcast", None))

    def _options(self, collective: str, codec: Any) -> dict[str, Any]:
        """Return the options of a call, without those at their defaults, which would keep it off the fast path."""
        options = {} if codec is None else {"codec": codec}
        if collective in self.algorithms:
            options["algorithm"] = self.algorithms[collective]
        return options
