"""torch.distributed, on Gloo and on ourselves."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from .buffers import ROOT, Buffers
from .library import Library, Unsupported


class StoreRendezvous(NamedTuple):
    """How ranks that know each other already make a process group."""

    rank: int
    size: int
    host: str  # an address of rank 0
    share: Callable[[str], str]  # returns the text of rank 0; all ranks call it


class TorchDistributed(Library):
    """torch.distributed, with tensors that share the memory of the arrays."""

    backend: str

    def __init__(self, rendezvous: StoreRendezvous | None = None) -> None:
        """Meet the other ranks: by default at a file, since a port might be taken by another process meanwhile."""
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)  # as torchrun does
        if rendezvous is None:
            rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            address = f"file://{os.environ['RENDEZVOUS_FILE']}"
            dist.init_process_group(self.backend, init_method=address, rank=rank, world_size=size)
        else:
            rank, size = rendezvous.rank, rendezvous.size
            # Rank 0 serves the store at a free port, and tells the others.
            own = dist.TCPStore(rendezvous.host, 0, size, True, wait_for_workers=False) if rank == 0 else None
            port = int(rendezvous.share("" if own is None else str(own.port)))
            store = dist.TCPStore(rendezvous.host, port, size, False) if own is None else own
            dist.init_process_group(self.backend, store=store, rank=rank, world_size=size)
        self.torch, self.dist = torch, dist
        self.rank, self.size = rank, size
        self.version = f"torch {torch.__version__}, {self.backend}"

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.dist.barrier()

    def call(self, buffers: Buffers, command: dict[str, Any]) -> Callable[[], object]:
        """Return the collective with its tensors."""
        dist, at_root = self.dist, buffers.rank == ROOT
        if buffers.op == "avg":  # Gloo has none
            raise Unsupported("avg is not measured through torch")
        op = getattr(dist.ReduceOp, command["torch_op"])
        given, got = buffers.tensors()
        if buffers.collective == "all_reduce":
            return functools.partial(dist.all_reduce, got, op)
        if buffers.collective == "broadcast":
            return functools.partial(dist.broadcast, got, ROOT)
        if buffers.collective == "reduce":
            return functools.partial(dist.reduce, got, ROOT, op)
        if buffers.collective == "reduce_scatter":
            return functools.partial(dist.reduce_scatter_tensor, got, given, op)
        if buffers.collective == "all_gather":
            return functools.partial(dist.all_gather_into_tensor, got, given)
        if buffers.collective == "all_to_all":
            return functools.partial(dist.all_to_all_single, got, given)
        if buffers.collective == "gather":
            return functools.partial(dist.gather, given, list(got.chunk(self.size)) if at_root else None, ROOT)
        return functools.partial(dist.scatter, got, list(given.chunk(self.size)) if at_root else None, ROOT)

    def close(self) -> None:
        """End the threads of the backend."""
        self.dist.destroy_process_group()


class Gloo(TorchDistributed):
    """Gloo."""

    backend = "gloo"


class Ours(TorchDistributed):
    """Unisono, as torch users meet it."""

    backend = "unisono"
