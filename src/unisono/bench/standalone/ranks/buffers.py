"""The arrays of one collective on one rank, and the check of their contents."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from .patterns import STORED, encode, pattern, reduced, stretch

ROOT = 0


class Buffers:
    """The arrays of one case on one rank: input, output, and expected output."""

    is_asynchronous = False  # whether a call may return before it is done

    def __init__(self, command: dict[str, Any], rank: int, size: int) -> None:
        self.collective, self.op, self.dtype = command["collective"], command["op"], command["dtype"]
        self.rank, self.size, self.count = rank, size, command["count"]
        self.block = self.count // size
        kind = STORED[self.dtype]
        whole, part, at_root = self.count, self.block, rank == ROOT
        # Elements of input and output; the same array where the collective works in place.
        lengths: dict[str, tuple[int, int]] = {
            "all_gather": (part, whole), "reduce_scatter": (whole, part), "all_to_all": (whole, whole),
            "gather": (part, whole if at_root else 0), "scatter": (whole if at_root else 0, part),
        }  # fmt: skip
        self.in_place = self.collective not in lengths
        given, got = lengths.get(self.collective, (whole, whole))
        self.given = np.zeros(given, kind)
        self.got = self.given if self.in_place else np.zeros(got, kind)
        self.clear()

    def tensors(self) -> tuple[Any, Any]:
        """Return the input and the output as tensors that share their memory."""
        torch = importlib.import_module("torch")  # by name: only an environment with torch has it
        kind = getattr(torch, self.dtype)
        given = torch.from_numpy(self.given).view(kind)
        return given, given if self.in_place else torch.from_numpy(self.got).view(kind)

    def synchronize(self) -> None:
        """Wait until all calls are done; on a CPU they are."""

    def clear(self) -> None:
        """Fill the arrays with zeros; the first time, this also touches every page."""
        self.given.fill(0)
        self.got.fill(0)

    def fill(self) -> None:
        """Write the test vector."""
        self.got.fill(0)
        start = self.rank * self.block if self.collective in ("all_gather", "gather") else 0
        if self.collective not in ("broadcast", "scatter") or self.rank == ROOT:
            mine = encode(pattern(self.rank, self.size, self.op), self.dtype)
            self.given[:] = stretch(mine, start, len(self.given))

    def wrong(self) -> int:
        """Count the wrong elements."""
        if self.collective == "reduce" and self.rank != ROOT:
            return 0  # the contents are undefined there
        mine = self.rank * self.block
        if self.collective in ("all_reduce", "reduce", "reduce_scatter"):
            start = mine if self.collective == "reduce_scatter" else 0
            expected = [(reduced(self.size, self.op), start, len(self.got))]
        elif self.collective in ("broadcast", "scatter"):
            start = mine if self.collective == "scatter" else 0
            expected = [(pattern(ROOT, self.size, self.op), start, len(self.got))]
        else:  # a block from each rank
            pieces = range(self.size) if len(self.got) else range(0)
            expected = [
                (
                    pattern(s, self.size, self.op),
                    mine if self.collective == "all_to_all" else s * self.block,
                    self.block,
                )
                for s in pieces
            ]
        found, place = 0, 0
        for period, start, length in expected:
            should = stretch(encode(period, self.dtype), start, length)
            found += int(np.count_nonzero(self.got[place : place + length] != should))
            place += length
        return found
