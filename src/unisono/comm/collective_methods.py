"""The collectives of a communicator as methods: the long path of a call, and the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unisono import collectives
from unisono.comm.arguments import Given
from unisono.comm.call_request import CallRequest
from unisono.comm.dispatch import Dispatcher
from unisono.comm.work import Work

Sizes = Sequence[int]


class CollectiveMethods:
    """One method for each collective. All make their calls through ``dispatcher``."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher

    def all_reduce(
        self, array: Any, *, op: str = "sum", algorithm: Any = None, codec: Any = None, async_op: bool = False,
        timeout: float | None = None,
    ) -> Work | None:  # fmt: skip
        """Replace the array by the sum of the arrays of all ranks.

        ``op`` is "sum", "prod", "max", "min", "avg", "band", "bor" or "bxor".
        """
        request = CallRequest(collectives.all_reduce, op, None, algorithm, codec)
        return self.dispatcher.call(request, Given(array), async_op=async_op, timeout=timeout)

    def broadcast(
        self, array: Any, *, root: int = 0, algorithm: Any = None, codec: Any = None, async_op: bool = False,
        timeout: float | None = None,
    ) -> Work | None:  # fmt: skip
        """Replace the array by that of the root."""
        request = CallRequest(collectives.broadcast, None, root, algorithm, codec)
        return self.dispatcher.call(request, Given(array), async_op=async_op, timeout=timeout)

    def reduce(
        self, array: Any, *, root: int = 0, op: str = "sum", algorithm: Any = None, codec: Any = None,
        async_op: bool = False, timeout: float | None = None,
    ) -> Work | None:  # fmt: skip
        """Replace the root's array by the sum of the arrays of all ranks; the other arrays stay unchanged.

        ``op`` is that of ``all_reduce``.
        """
        request = CallRequest(collectives.reduce, op, root, algorithm, codec)
        return self.dispatcher.call(request, Given(array), async_op=async_op, timeout=timeout)

    def all_gather(
        self, out: Any, array: Any, *, out_sizes: Sizes | None = None, algorithm: Any = None, codec: Any = None,
        async_op: bool = False, timeout: float | None = None,
    ) -> Work | None:  # fmt: skip
        """Put the arrays of all ranks, one after the other, into ``out``.

        With ``out_sizes``, rank r contributes ``out_sizes[r]`` elements; the list is the same on every rank.
        """
        request = CallRequest(collectives.all_gather, None, None, algorithm, codec)
        return self.dispatcher.call(request, Given(out, array, out_sizes), async_op=async_op, timeout=timeout)

    def reduce_scatter(
        self, out: Any, array: Any, *, op: str = "sum", in_sizes: Sizes | None = None, algorithm: Any = None,
        codec: Any = None, async_op: bool = False, timeout: float | None = None,
    ) -> Work | None:  # fmt: skip
        """Sum the arrays of all ranks and put this rank's part of the sum into ``out``.

        ``op`` is that of ``all_reduce``. With ``in_sizes``, the part of rank r has ``in_sizes[r]`` elements; the list
        is the same on every rank.
        """
        request = CallRequest(collectives.reduce_scatter, op, None, algorithm, codec)
        return self.dispatcher.call(request, Given(out, array, in_sizes), async_op=async_op, timeout=timeout)

    def all_to_all(
        self, out: Any, array: Any, *, in_sizes: Sizes | None = None, out_sizes: Sizes | None = None,
        algorithm: Any = None, codec: Any = None, async_op: bool = False, timeout: float | None = None,
    ) -> Work | None:  # fmt: skip
        """Send part d of the array to rank d; part s of ``out`` comes from rank s.

        With sizes, ``in_sizes[d]`` elements go to rank d and ``out_sizes[s]`` come from rank s.
        """
        request = CallRequest(collectives.all_to_all, None, None, algorithm, codec)
        given = Given(out, array, in_sizes, out_sizes)
        return self.dispatcher.call(request, given, async_op=async_op, timeout=timeout)

    def gather(
        self, out: Any, array: Any, *, root: int = 0, out_sizes: Sizes | None = None, algorithm: Any = None,
        codec: Any = None, async_op: bool = False, timeout: float | None = None,
    ) -> Work | None:  # fmt: skip
        """Put the arrays of all ranks, one after the other, into the root's ``out``, which is None elsewhere."""
        request = CallRequest(collectives.gather, None, root, algorithm, codec)
        return self.dispatcher.call(request, Given(out, array, out_sizes), async_op=async_op, timeout=timeout)

    def scatter(
        self, out: Any, array: Any, *, root: int = 0, in_sizes: Sizes | None = None, algorithm: Any = None,
        codec: Any = None, async_op: bool = False, timeout: float | None = None,
    ) -> Work | None:  # fmt: skip
        """Give each rank its part of the root's array; ``array`` is None elsewhere."""
        request = CallRequest(collectives.scatter, None, root, algorithm, codec)
        return self.dispatcher.call(request, Given(out, array, in_sizes), async_op=async_op, timeout=timeout)

    def barrier(self, *, algorithm: Any = None, async_op: bool = False, timeout: float | None = None) -> Work | None:
        """Wait until every rank has called this."""
        request = CallRequest(collectives.barrier, algorithm=algorithm)
        return self.dispatcher.call(request, Given(), async_op=async_op, timeout=timeout)
