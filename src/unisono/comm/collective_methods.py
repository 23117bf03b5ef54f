"""The collectives of a communicator as methods: the full path of a call, and the documentation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from unisono import collectives
from unisono.comm.arguments import Given
from unisono.comm.call_request import CallRequest
from unisono.comm.dispatch import Dispatcher
from unisono.comm.gpu_work import GpuWork
from unisono.comm.restoring import call_restoring
from unisono.comm.work import Work

Sizes = Sequence[int]
Method = TypeVar("Method", bound=Callable[..., Any])
# The end of every docstring. The paragraph on codecs is for collectives that move data.
ALGORITHM = """
``algorithm`` is the name of an algorithm ("ring", "my_file.py:zigzag"), your algorithm, or a schedule; by
default, the best algorithm known."""
CODEC = """
``codec`` encodes float32 numbers in fewer bits while they travel: "fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8",
for all_reduce also "topk:0.01", or a ``codecs.Codec``; "auto:bf16" allows a codec where a link between hosts is slow.
By default, numbers travel unchanged."""
OTHERS = """
With ``async_op``, the call returns a Work at once; by default, it returns None when it is over. ``timeout`` is the
number of seconds that it may wait; by default, that of the communicator.

It raises UsageError if the arguments cannot work and ScheduleError if the algorithm fails its proof, both before any
byte moves. If communication fails it raises a CommError: CollectiveTimeout, PeerLost, MismatchError or Aborted; with
``async_op``, ``Work.wait`` raises it. A call on CUDA arrays is enqueued on the current stream and returns at once
(with ``async_op``, it returns a GpuWork); its error is raised by a later call, or by ``synchronize``."""


def _with_common_keywords(method: Method) -> Method:
    """Add the description of the keywords that all collectives take to the docstring of a method."""
    codec = CODEC if "codec" in (method.__kwdefaults__ or ()) else ""
    method.__doc__ = f"{inspect.cleandoc(method.__doc__ or '')}\n{ALGORITHM}{codec}{OTHERS}"
    return method


class CollectiveMethods:
    """One method for each collective. All make their calls through ``dispatcher``, which plans and runs them."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher

    @_with_common_keywords
    def all_reduce(
        self, array: Any, *, op: str = "sum", algorithm: Any = None, codec: Any = None, async_op: bool = False,
        timeout: float | None = None, on_failure: str | None = None,
    ) -> Work | GpuWork | None:  # fmt: skip
        """Replace ``array`` by the sum of the arrays of all ranks, in place.

        ``op`` is the reduction: "sum" (default), "prod", "max", "min", "avg", "band", "bor" or "bxor". For example::

            x = np.full(4, comm.rank, dtype=np.float32)
            comm.all_reduce(x)
            comm.all_reduce(x, op="max", algorithm="ring")

        ``on_failure`` states what ``array`` holds if the call fails: with "restore" what it held before, for which it
        is copied first (arrays on the CPU only); by default (None), its contents are undefined.
        """
        request = CallRequest(collectives.all_reduce, op, None, algorithm, codec)
        call = partial(self.dispatcher.call, request, Given(array), async_op=async_op, timeout=timeout)
        if on_failure is None:
            return call()
        made: Work | None = call_restoring(array, on_failure, call)
        return made

    @_with_common_keywords
    def broadcast(
        self, array: Any, *, root: int = 0, algorithm: Any = None, codec: Any = None, async_op: bool = False,
        timeout: float | None = None,
    ) -> Work | GpuWork | None:  # fmt: skip
        """Replace ``array`` by the array of rank ``root`` (default 0), in place."""
        request = CallRequest(collectives.broadcast, None, root, algorithm, codec)
        return self.dispatcher.call(request, Given(array), async_op=async_op, timeout=timeout)

    @_with_common_keywords
    def reduce(
        self, array: Any, *, root: int = 0, op: str = "sum", algorithm: Any = None, codec: Any = None,
        async_op: bool = False, timeout: float | None = None,
    ) -> Work | GpuWork | None:  # fmt: skip
        """Replace ``array`` on rank ``root`` (default 0) by the sum of the arrays of all ranks.

        The arrays of the other ranks stay unchanged. ``op`` is the reduction, as in ``all_reduce`` (default "sum").
        """
        request = CallRequest(collectives.reduce, op, root, algorithm, codec)
        return self.dispatcher.call(request, Given(array), async_op=async_op, timeout=timeout)

    @_with_common_keywords
    def all_gather(
        self, out: Any, array: Any, *, out_sizes: Sizes | None = None, algorithm: Any = None, codec: Any = None,
        async_op: bool = False, timeout: float | None = None,
    ) -> Work | GpuWork | None:  # fmt: skip
        """Put the ``array`` of every rank, in the order of ranks, into ``out``.

        With ``out_sizes``, rank r contributes ``out_sizes[r]`` elements; the list is the same on every rank. By
        default, all arrays have the same length. For example::

            out = np.empty(4 * comm.size)
            comm.all_gather(out, np.full(4, float(comm.rank)))
        """
        request = CallRequest(collectives.all_gather, None, None, algorithm, codec)
        return self.dispatcher.call(request, Given(out, array, out_sizes), async_op=async_op, timeout=timeout)

    @_with_common_keywords
    def reduce_scatter(
        self, out: Any, array: Any, *, op: str = "sum", in_sizes: Sizes | None = None, algorithm: Any = None,
        codec: Any = None, async_op: bool = False, timeout: float | None = None,
    ) -> Work | GpuWork | None:  # fmt: skip
        """Sum the ``array`` of every rank and put this rank's part of the sum into ``out``.

        ``op`` is the reduction, as in ``all_reduce`` (default "sum"). With ``in_sizes``, the part of rank r has
        ``in_sizes[r]`` elements; the list is the same on every rank. By default, all parts have the same length.
        """
        request = CallRequest(collectives.reduce_scatter, op, None, algorithm, codec)
        return self.dispatcher.call(request, Given(out, array, in_sizes), async_op=async_op, timeout=timeout)

    @_with_common_keywords
    def all_to_all(
        self, out: Any, array: Any, *, in_sizes: Sizes | None = None, out_sizes: Sizes | None = None,
        algorithm: Any = None, codec: Any = None, async_op: bool = False, timeout: float | None = None,
    ) -> Work | GpuWork | None:  # fmt: skip
        """Send part d of ``array`` to rank d; part s of ``out`` comes from rank s.

        With ``in_sizes`` and ``out_sizes``, ``in_sizes[d]`` elements go to rank d and ``out_sizes[s]`` come from rank
        s. By default, all parts have the same length.
        """
        request = CallRequest(collectives.all_to_all, None, None, algorithm, codec)
        given = Given(out, array, in_sizes, out_sizes)
        return self.dispatcher.call(request, given, async_op=async_op, timeout=timeout)

    @_with_common_keywords
    def gather(
        self, out: Any, array: Any, *, root: int = 0, out_sizes: Sizes | None = None, algorithm: Any = None,
        codec: Any = None, async_op: bool = False, timeout: float | None = None,
    ) -> Work | GpuWork | None:  # fmt: skip
        """Put the ``array`` of every rank, in the order of ranks, into the ``out`` of rank ``root`` (default 0).

        On the other ranks, ``out`` is None. With ``out_sizes``, rank r contributes ``out_sizes[r]`` elements; by
        default, all arrays have the same length.
        """
        request = CallRequest(collectives.gather, None, root, algorithm, codec)
        return self.dispatcher.call(request, Given(out, array, out_sizes), async_op=async_op, timeout=timeout)

    @_with_common_keywords
    def scatter(
        self, out: Any, array: Any, *, root: int = 0, in_sizes: Sizes | None = None, algorithm: Any = None,
        codec: Any = None, async_op: bool = False, timeout: float | None = None,
    ) -> Work | GpuWork | None:  # fmt: skip
        """Put part r of the ``array`` of rank ``root`` (default 0) into the ``out`` of rank r.

        On the other ranks, ``array`` is None. With ``in_sizes``, part r has ``in_sizes[r]`` elements; by default, all
        parts have the same length.
        """
        request = CallRequest(collectives.scatter, None, root, algorithm, codec)
        return self.dispatcher.call(request, Given(out, array, in_sizes), async_op=async_op, timeout=timeout)

    @_with_common_keywords
    def barrier(
        self, *, algorithm: Any = None, async_op: bool = False, timeout: float | None = None
    ) -> Work | GpuWork | None:
        """Wait until every rank has called this. It does not wait for GPUs: ``synchronize`` does."""
        request = CallRequest(collectives.barrier, algorithm=algorithm)
        return self.dispatcher.call(request, Given(), async_op=async_op, timeout=timeout)
