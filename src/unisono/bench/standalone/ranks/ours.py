"""Unisono."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .buffers import ROOT, Buffers
from .library import Library, Unsupported


class Unisono(Library):
    """Unisono, called through its communicator."""

    def __init__(self, comm: Any = None) -> None:
        """Take a communicator; by default, that of all ranks that the driver has started."""
        import unisono

        self.comm = unisono.connect() if comm is None else comm
        self.rank, self.size = self.comm.rank, self.comm.size
        self.version = f"unisono {unisono.__version__}"

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.comm.barrier()

    def call(self, buffers: Buffers, command: dict[str, Any]) -> Callable[[], object]:
        """Return the collective, bound to its arrays."""
        given, got = buffers.given, buffers.got
        if buffers.is_asynchronous:
            given, got = buffers.tensors()
        elif buffers.dtype == "bfloat16":
            try:
                import ml_dtypes
            except ImportError as error:
                raise Unsupported("bfloat16 needs the package ml_dtypes") from error
            given, got = given.view(ml_dtypes.bfloat16), got.view(ml_dtypes.bfloat16)
        choice = {"algorithm": command["algorithm"]} if command.get("algorithm") else {}
        run = functools.partial(getattr(self.comm, buffers.collective), **choice)
        if buffers.collective in ("all_reduce", "reduce_scatter", "reduce"):
            run = functools.partial(run, op=buffers.op)
        if buffers.in_place:
            return functools.partial(run, got)
        if buffers.collective == "gather" and buffers.rank != ROOT:
            return functools.partial(run, None, given)
        if buffers.collective == "scatter" and buffers.rank != ROOT:
            return functools.partial(run, got, None)
        return functools.partial(run, got, given)

    def close(self) -> None:
        """Close the communicator."""
        self.comm.close()
