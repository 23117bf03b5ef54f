"""Any MPI, through mpi4py."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .buffers import ROOT, Buffers
from .library import Library, Unsupported


class Mpi(Library):
    """mpi4py on buffers, with counts and types given, which is its fastest form."""

    def __init__(self) -> None:
        import mpi4py

        mpi4py.rc.thread_level = "single"  # no locks: the best case for every implementation
        from mpi4py import MPI

        self.mpi, self.comm = MPI, MPI.COMM_WORLD
        self.rank, self.size = self.comm.Get_rank(), self.comm.Get_size()
        self.version = MPI.Get_library_version().splitlines()[0].split(",")[0]

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.comm.Barrier()

    def datatype(self, buffers: Buffers) -> Any:
        """Return the type of MPI; for what moves without being added, another of the same width will do."""
        if buffers.dtype in ("float16", "bfloat16"):
            if buffers.collective not in ("all_reduce", "reduce", "reduce_scatter"):
                return self.mpi.UINT16_T
            name = {"float16": "FLOAT16_T", "bfloat16": "BFLOAT16_T"}[buffers.dtype]
            found = getattr(self.mpi, name, self.mpi.DATATYPE_NULL)
            if found == self.mpi.DATATYPE_NULL:
                raise Unsupported(f"this MPI has no {buffers.dtype}")
            return found
        names = {"float32": "FLOAT", "float64": "DOUBLE", "int32": "INT32_T", "int64": "INT64_T"}
        return getattr(self.mpi, names[buffers.dtype])

    def call(self, buffers: Buffers, command: dict[str, Any]) -> Callable[[], object]:
        """Return the collective with its buffers."""
        kind = self.datatype(buffers)
        if command["mpi_op"] is None:
            raise Unsupported(f"MPI has no {buffers.op}")
        op = getattr(self.mpi, command["mpi_op"])
        per_rank, at_root, comm = buffers.block, buffers.rank == ROOT, self.comm
        given: Any = [buffers.given, len(buffers.given), kind]
        got: Any = [buffers.got, len(buffers.got), kind]
        if buffers.collective == "all_reduce":
            return functools.partial(comm.Allreduce, self.mpi.IN_PLACE, got, op)
        if buffers.collective == "broadcast":
            return functools.partial(comm.Bcast, got, ROOT)
        if buffers.collective == "reduce":
            return functools.partial(comm.Reduce, *((self.mpi.IN_PLACE, got) if at_root else (given, None)), op, ROOT)
        if buffers.collective == "reduce_scatter":
            # mpi4py wants the elements of a block on both sides
            return functools.partial(comm.Reduce_scatter_block, [buffers.given, per_rank, kind], got, op)
        if buffers.collective == "all_gather":
            return functools.partial(comm.Allgather, given, [buffers.got, per_rank, kind])
        if buffers.collective == "all_to_all":
            return functools.partial(comm.Alltoall, [buffers.given, per_rank, kind], [buffers.got, per_rank, kind])
        if buffers.collective == "gather":
            return functools.partial(comm.Gather, given, [buffers.got, per_rank, kind] if at_root else None, ROOT)
        return functools.partial(comm.Scatter, [buffers.given, per_rank, kind] if at_root else None, got, ROOT)
