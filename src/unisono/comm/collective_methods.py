"""The collectives of a communicator as methods: what they take, and what they do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unisono import collectives
from unisono.comm.dispatch import Calls
from unisono.comm.work import Work

Sizes = Sequence[int]


class CollectiveMethods:
    """One method for each collective. All make their calls through ``calls``."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls  # for code that builds on a communicator

    def all_reduce(
        self, array: Any, *, op: str = "sum", algorithm: Any = None, codec: Any = None, async_op: bool = False,
        timeout: float | None = None,
    ) -> Work | None:  # fmt: skip
        """Replace the array by the sum (or product, ...) of the arrays of all ranks."""
        return self.calls.make(
            collectives.all_reduce, array, None, op, None, algorithm, async_op, timeout, codec=codec
        )

    def broadcast(
        self, array: Any, *, root: int = 0, algorithm: Any = None, codec: Any = None, async_op: bool = False,
        timeout: float | None = None,
    ) -> Work | None:  # fmt: skip
        """Replace the array by that of the root."""
        return self.calls.make(
            collectives.broadcast, array, None, None, root, algorithm, async_op, timeout, codec=codec
        )

    def reduce(
        self, array: Any, *, root: int = 0, op: str = "sum", algorithm: Any = None, codec: Any = None,
        async_op: bool = False, timeout: float | None = None,
    ) -> Work | None:  # fmt: skip
        """Replace the root's array by the sum of the arrays of all ranks; those of the others stay as they are."""
        return self.calls.make(collectives.reduce, array, None, op, root, algorithm, async_op, timeout, codec=codec)

    def all_gather(
        self, out: Any, array: Any, *, out_sizes: Sizes | None = None, algorithm: Any = None, codec: Any = None,
        async_op: bool = False, timeout: float | None = None,
    ) -> Work | None:  # fmt: skip
        """Put the arrays of all ranks, one after the other, into ``out``.

        With ``out_sizes``, rank r gives ``out_sizes[r]`` elements; the same list on every rank.
        """
        return self.calls.make(
            collectives.all_gather, out, array, None, None, algorithm, async_op, timeout, sizes=out_sizes, codec=codec
        )

    def reduce_scatter(
        self, out: Any, array: Any, *, op: str = "sum", in_sizes: Sizes | None = None, algorithm: Any = None,
        codec: Any = None, async_op: bool = False, timeout: float | None = None,
    ) -> Work | None:  # fmt: skip
        """Sum the arrays of all ranks and put this rank's part of the sum into ``out``.

        With ``in_sizes``, the part of rank r has ``in_sizes[r]`` elements; the same list on every rank.
        """
        return self.calls.make(
            collectives.reduce_scatter, out, array, op, None, algorithm, async_op, timeout, sizes=in_sizes,
            codec=codec,
        )  # fmt: skip

    def all_to_all(
        self, out: Any, array: Any, *, in_sizes: Sizes | None = None, out_sizes: Sizes | None = None,
        algorithm: Any = None, codec: Any = None, async_op: bool = False, timeout: float | None = None,
    ) -> Work | None:  # fmt: skip
        """Send part d of the array to rank d; part s of ``out`` comes from rank s.

        With sizes, ``in_sizes[d]`` elements go to rank d and ``out_sizes[s]`` come from rank s.
        """
        return self.calls.make(
            collectives.all_to_all, out, array, None, None, algorithm, async_op, timeout, sizes=in_sizes,
            out_sizes=out_sizes, codec=codec,
        )  # fmt: skip

    def gather(
        self, out: Any, array: Any, *, root: int = 0, out_sizes: Sizes | None = None, algorithm: Any = None,
        codec: Any = None, async_op: bool = False, timeout: float | None = None,
    ) -> Work | None:  # fmt: skip
        """Put the arrays of all ranks, one after the other, into the root's ``out``; None elsewhere."""
        return self.calls.make(
            collectives.gather, out, array, None, root, algorithm, async_op, timeout, sizes=out_sizes, codec=codec
        )

    def scatter(
        self, out: Any, array: Any, *, root: int = 0, in_sizes: Sizes | None = None, algorithm: Any = None,
        codec: Any = None, async_op: bool = False, timeout: float | None = None,
    ) -> Work | None:  # fmt: skip
        """Give each rank its part of the root's array; ``array`` is None elsewhere."""
        return self.calls.make(
            collectives.scatter, out, array, None, root, algorithm, async_op, timeout, sizes=in_sizes, codec=codec
        )

    def barrier(self, *, algorithm: Any = None, async_op: bool = False, timeout: float | None = None) -> Work | None:
        """Wait until every rank has called this."""
        return self.calls.barrier(algorithm, async_op, timeout)
