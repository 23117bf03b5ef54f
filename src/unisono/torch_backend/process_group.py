"""The process group: what torch calls, method by method.

Names are torch's. Where it has two for the same thing, an older and a newer one, both are here.
"""

from __future__ import annotations

import atexit
import sys
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C._autograd import _profiler_enabled

from unisono import collectives
from unisono.collectives import Collective
from unisono.comm.communicator import Communicator
from unisono.compiler import Lengths
from unisono.errors import UsageError
from unisono.torch_backend import barriers, caller, futures, helpers, other_devices, side_lane, sparse, work
from unisono.torch_backend.barriers import monitored_barrier
from unisono.torch_backend.caller import Caller
from unisono.torch_backend.dynamo import keep_out
from unisono.torch_backend.functional import register_kernels
from unisono.torch_backend.futures import running_callback
from unisono.torch_backend.meeting import meet_through_store
from unisono.torch_backend.options import Options
from unisono.torch_backend.other_devices import also_elsewhere, make_backend
from unisono.torch_backend.reductions import NAMES, Reduction, reduction
from unisono.torch_backend.registration import NAME
from unisono.torch_backend.side_lane import SideLane
from unisono.torch_backend.tensors import (
    KNOWN,
    Finish,
    Tensor,
    adjacent,
    check,
    contiguous_output,
    copy,
    flat,
    moved_as,
    number_type,
    spread,
)
from unisono.torch_backend.work import FOREVER_S, AllPending, EngineCall, FinishedWork, Pending, PendingWork

NO_LIMIT = timedelta(0)
FINISHED = FinishedWork()


class BackendFacts:
    """What torch's Python code asks of a backend."""

    supports_splitting = False
    supports_coalescing = False
    supports_shrinking = False
    supports_time_estimate = False

    def __init__(self, options: Options) -> None:
        self.options = options

    def supports_tensor_alloc(self, device: Any) -> bool:
        """Whether it hands out memory of its own."""
        return False

    def name(self) -> str:
        """Return the name of the backend."""
        return NAME

    def _set_sequence_number_for_group(self) -> None:
        pass


def _is_async(opts: Any) -> bool:
    return bool(getattr(opts, "asyncOp", True))


class UnisonoProcessGroup(dist.ProcessGroup):
    """A group of ranks, as torch.distributed knows it, on a communicator of ours."""

    def __init__(self, comm: Communicator, store: Any, timeout: timedelta, options: Options) -> None:
        super().__init__(comm.rank, comm.size)
        self._comm = comm
        self._store = store
        self._options = options
        self._main = Caller(comm, options.algorithms)
        aside = comm.split(0, comm.rank)
        assert aside is not None
        self._aside = Caller(aside, options.algorithms)
        self._lane = SideLane(aside)
        self._endpoint = self._main.endpoint
        self._timeout_s = timeout.total_seconds()
        self._quick: dict[Any, Any] = {}  # plans of all-reduces
        self._calls = 0
        self._barriers = 0
        self._sequence_number = 0
        self._coalescing: list[dist.Work] | None = None
        self._name, self._description = "", "undefined"
        self._facts = BackendFacts(options)
        self._closed = False
        self._others: dict[str, Any] = {}  # backends of other devices
        self._unfinished: weakref.WeakSet[PendingWork] = weakref.WeakSet()
        register_kernels()
        self._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.CUSTOM)
        self._set_default_backend(dist.ProcessGroup.BackendType.CUSTOM)
        _open_groups.add(self)

    @classmethod
    def from_store(cls, asked: Any, options: Any) -> UnisonoProcessGroup:
        """Meet the other ranks through torch's store."""
        if options is not None and not isinstance(options, Options):
            raise UsageError(
                f"pg_options={options!r}; the backend unisono expects unisono.torch_backend.Options, or none"
            )
        options = options or Options()
        seconds = asked.timeout.total_seconds()
        comm = meet_through_store(asked.store, asked.group_rank, asked.group_size, seconds, options.staging_bytes)
        comm.calls.link.endpoint.timeout_s = seconds
        return cls(comm, asked.store, asked.timeout, options)

    # ---- what torch wants to know ------------------------------------------------------------------------------

    def getBackendName(self) -> str:  # noqa: N802
        """Return our name."""
        return NAME

    name = _get_backend_name = getBackendName

    def getSize(self) -> int:  # noqa: N802
        """Return how many ranks there are."""
        return self._comm.size

    def getRank(self) -> int:  # noqa: N802
        """Return which of them this is."""
        return self._comm.rank

    def getGroupName(self) -> str:  # noqa: N802
        """Return the name that torch gave the group."""
        return self._name

    def setGroupName(self, name: str) -> None:  # noqa: N802
        """Name the group."""
        self._name = name

    def getGroupDesc(self) -> str:  # noqa: N802
        """Return what torch says of the group."""
        return self._description

    def setGroupDesc(self, description: str) -> None:  # noqa: N802
        """Describe the group."""
        self._description = description

    _set_group_name, _set_group_desc = setGroupName, setGroupDesc
    group_name = property(getGroupName)
    group_desc = property(getGroupDesc)

    def get_group_store(self) -> Any:
        """Return the store of the group."""
        return self._store

    def _get_backend(self, device: Any) -> Any:
        return self._facts if torch.device(device).type == "cpu" else self.backend_of(torch.device(device))

    def backend_of(self, device: torch.device) -> Any:
        """Return the backend for tensors that are not on the CPU."""
        found = self._others.get(device.type)
        if found is None:
            limit = timedelta(seconds=self._timeout_s)
            found = make_backend(device, self._store, self._comm.rank, self._comm.size, limit)
            self._others[device.type] = found
        return found

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence_number

    def _set_sequence_number_for_group(self) -> None:
        self._sequence_number = 0

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long a call may wait."""
        self._timeout_s = timeout.total_seconds()
        self._endpoint.timeout_s = self._aside.endpoint.timeout_s = self._timeout_s

    _set_default_timeout = set_timeout

    # ---- how a call is made ------------------------------------------------------------------------------------

    def _limit(self, opts: Any, timeout: timedelta | None = None) -> float:
        timeout = timeout if timeout is not None else getattr(opts, "timeout", None)
        return timeout.total_seconds() if timeout is not None and timeout > NO_LIMIT else self._timeout_s

    def _start(
        self, collective: Collective, lengths: Lengths, dtype: str, op: str | None, root: int | None, source: Tensor,
        out: Tensor, limit_s: float,
    ) -> tuple[Pending, str]:  # fmt: skip
        """Have the engine make a call in the background; also return the key for what its callbacks do."""
        addresses = source.data_ptr(), out.data_ptr()
        callback = running_callback()
        if callback is not None:
            key = callback.key_of_next_call()
            side = self._aside
            plan = side.plan(collective, lengths, dtype, op, root)
            kept = (source, out)

            def make(kept: Any = kept) -> None:
                side.endpoint.run(plan, *addresses, limit_s)

            return self._lane.submit(f"{self._name} {key}", make), key
        self._sequence_number += 1
        self._calls += 1
        plan = self._main.plan(collective, lengths, dtype, op, root)
        self._endpoint.raise_if_broken()
        completion = self._endpoint.start(plan, *addresses, limit_s, (source, out))
        return EngineCall(self._endpoint, completion), f"{self._name}#{self._calls}"

    def _call(
        self, what: str, collective: Collective, lengths: Lengths, dtype: str, op: str | None, root: int | None,
        source: Tensor, out: Tensor, opts: Any, finish: Finish | None, result: Sequence[Tensor],
        timeout: timedelta | None = None,
    ) -> dist.Work:  # fmt: skip
        """Make a call: now, on this thread, or in the background, as torch wants it."""
        if _profiler_enabled():
            with torch.profiler.record_function(f"unisono:{what}"):
                return self._call_now(
                    what, collective, lengths, dtype, op, root, source, out, opts, finish, result, timeout
                )
        return self._call_now(what, collective, lengths, dtype, op, root, source, out, opts, finish, result, timeout)

    def _call_now(
        self, what: str, collective: Collective, lengths: Lengths, dtype: str, op: str | None, root: int | None,
        source: Tensor, out: Tensor, opts: Any, finish: Finish | None, result: Sequence[Tensor],
        timeout: timedelta | None,
    ) -> dist.Work:  # fmt: skip
        self._check_open(what)
        limit_s = self._limit(opts, timeout)
        if not _is_async(opts) and running_callback() is None and self._coalescing is None:
            self._sequence_number += 1
            self._calls += 1
            plan = self._main.plan(collective, lengths, dtype, op, root)
            self._endpoint.run(plan, source.data_ptr(), out.data_ptr(), limit_s)
            if finish is not None:
                finish()
            return FINISHED
        pending, key = self._start(collective, lengths, dtype, op, root, source, out, limit_s)
        return self._background(PendingWork(pending, result, finish, f"{what} of {self._name}", key))

    def _background(self, work: PendingWork) -> PendingWork:
        self._unfinished.add(work)
        if self._coalescing is not None:
            self._coalescing.append(work)
        return work

    def _check_open(self, what: str) -> None:
        if self._closed:
            raise UsageError(f"{what}: the process group {self._name} was destroyed")

    def _together(self, works: list[dist.Work], result: Sequence[Tensor]) -> dist.Work:
        """Return one work for several."""
        waiting = [work for work in works if isinstance(work, PendingWork)]
        if not waiting:
            return FINISHED

        def finish() -> None:
            for work in waiting:
                work.wait()

        parts = [work._pending for work in waiting]
        return PendingWork(AllPending(parts), result, finish, f"calls of {self._name}", waiting[0]._key)

    # ---- reductions --------------------------------------------------------------------------------------------

    def allreduce(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Replace every tensor by its sum (or product, ...) over all ranks."""
        if isinstance(tensors, Tensor):
            tensors = [tensors]
        if tensors and not tensors[0].is_cpu:
            return self.backend_of(tensors[0].device).allreduce(tensors, opts)
        if len(tensors) == 1 and isinstance(opts, dist.AllreduceOptions) and not opts.asyncOp:
            tensor = tensors[0]
            plan = self._quick.get((tensor.numel(), tensor.dtype, hash(opts.reduceOp)))  # a hash is quicker than itself
            if (
                plan is not None and tensor.is_contiguous() and not tensor.is_sparse
                and running_callback() is None and self._coalescing is None and not _profiler_enabled()
            ):  # fmt: skip
                self._sequence_number += 1
                self._calls += 1
                place = tensor.data_ptr()
                self._endpoint.run(plan, place, place, self._limit(opts))
                return FINISHED
        op = getattr(opts, "reduceOp", opts if opts is not None else dist.ReduceOp.SUM)
        works = [self._reduce_in_place("all_reduce", t, op, None, opts, timeout) for t in tensors]
        return works[0] if len(works) == 1 else self._together(works, tensors)

    @also_elsewhere
    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> dist.Work:
        """Do an all-reduce of every tensor."""
        return self.allreduce(tensors, opts)

    @also_elsewhere
    def reduce(self, tensors: Any, opts: Any = None, op: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Replace the root's tensor by the sum over all ranks."""
        if isinstance(tensors, Tensor):
            tensors = [tensors]
        root = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
        op = op if op is not None else getattr(opts, "reduceOp", dist.ReduceOp.SUM)
        works = [self._reduce_in_place("reduce", tensor, op, root, opts, timeout) for tensor in tensors]
        return self._together(works, tensors) if len(works) != 1 else works[0]

    def _reduce_in_place(
        self, what: str, tensor: Any, op: Any, root: int | None, opts: Any, timeout: timedelta | None
    ) -> dist.Work:
        if isinstance(tensor, Tensor) and tensor.layout is torch.sparse_coo and root is None:
            return sparse.all_reduce(self, tensor, op)
        tensor = check(tensor, what)
        if tensor.is_complex():
            if op not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
                number_type(tensor, what)
        asked = reduction(op, tensor.dtype, self._comm.size, what)
        memory, finish = contiguous_output(tensor, keep=True)
        if asked.factor is not None or (root is not None and finish is None and root != self._comm.rank):
            # What a root gets is for the root alone; what the others pass must stay as it is.
            memory = asked.before(memory).contiguous()
            if root is None or root == self._comm.rank:
                kept = memory
                finish = lambda: copy(tensor, kept)  # noqa: E731
            else:
                finish = None
        elif root is not None and root != self._comm.rank:
            finish = None
        if asked.divisor > 1 and (root is None or root == self._comm.rank):
            finish = _after(memory, asked, finish)
        name = number_type(tensor, what)
        lengths = Lengths((memory.numel(),), (memory.numel(),))
        collective = collectives.all_reduce if root is None else collectives.reduce
        if root is None and finish is None and NAMES.get(getattr(op, "op", op)) == asked.op:
            key = (tensor.numel(), tensor.dtype, hash(op))
            self._quick[key] = self._main.plan(collective, lengths, name, asked.op, root)
        return self._call(what, collective, lengths, name, asked.op, root, memory, memory, opts, finish, [tensor],
                          timeout)  # fmt: skip

    @also_elsewhere
    def _reduce_scatter_base(self, out: Any, source: Any, opts: Any = None) -> dist.Work:
        """Sum over all ranks; every rank gets its part."""
        what = "reduce_scatter_tensor"
        out, source = check(out, what), check(source, what)
        if source.numel() != out.numel() * self._comm.size or source.dtype != out.dtype:
            raise UsageError(
                f"{what}: the input has {source.numel()} {source.dtype} and the output {out.numel()} {out.dtype}; "
                f"expected {self._comm.size} times as many, of the same type"
            )
        op = getattr(opts, "reduceOp", dist.ReduceOp.SUM)
        return self._scatter_sum(what, out, source, [out.numel()] * self._comm.size, op, opts, [out])

    reduce_scatter_single = _reduce_scatter_base

    def _scatter_sum(
        self, what: str, out: Tensor, source: Tensor, sizes: list[int], op: Any, opts: Any, result: list[Tensor],
        timeout: timedelta | None = None,
    ) -> dist.Work:  # fmt: skip
        asked = reduction(op, out.dtype, self._comm.size, what)
        memory, finish = contiguous_output(out, keep=False)
        source = asked.before(source).contiguous()
        if _overlap(memory, source):
            kept = memory
            memory = torch.empty_like(kept)
            apart, rest = memory, finish

            def finish() -> None:
                copy(kept, apart)
                if rest is not None:
                    rest()

        finish = _after(memory, asked, finish)
        name = number_type(out, what)
        lengths = Lengths(tuple(sizes), tuple(sizes))
        return self._call(what, collectives.reduce_scatter, lengths, name, asked.op, None, source, memory, opts, finish,
                          result, timeout)  # fmt: skip

    @also_elsewhere
    def reduce_scatter(
        self, outs: Any, sources: Any, opts: Any = None, timeout: timedelta | None = None
    ) -> dist.Work:
        """Sum lists of tensors over all ranks; every rank gets the one of its place."""
        if isinstance(outs, Tensor):
            outs, sources = [outs], [sources]
        op = getattr(opts, "reduceOp", opts if opts is not None else dist.ReduceOp.SUM)
        works = []
        for out, parts in zip(outs, sources, strict=True):
            parts = self._checked_list("reduce_scatter", "input", parts, out)
            sizes = [part.numel() for part in parts]
            if sizes[self._comm.rank] != out.numel():
                raise UsageError(
                    f"reduce_scatter: input {self._comm.rank} has {sizes[self._comm.rank]} elements; expected "
                    f"{out.numel()}, as the output"
                )
            works.append(
                self._scatter_sum("reduce_scatter", check(out, "reduce_scatter"), flat(parts), sizes, op, opts, [out],
                                  timeout)
            )  # fmt: skip
        return works[0] if len(works) == 1 else self._together(works, outs)

    @also_elsewhere
    def reduce_scatter_tensor_coalesced(self, outs: Any, sources: Any, opts: Any = None) -> dist.Work:
        """Do a reduce-scatter of every pair."""
        works = [self._reduce_scatter_base(out, source, opts) for out, source in zip(outs, sources, strict=True)]
        return self._together(works, outs)

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    # ---- what is only moved ------------------------------------------------------------------------------------

    @also_elsewhere
    def broadcast(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Replace every tensor by the root's."""
        if isinstance(tensors, Tensor):
            tensors = [tensors]
        root = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
        works = []
        for tensor in tensors:
            tensor = check(tensor, "broadcast")
            memory, finish = contiguous_output(tensor, keep=root == self._comm.rank)
            name, each = moved_as(tensor)
            lengths = Lengths((tensor.numel() * each,), (tensor.numel() * each,))
            works.append(
                self._call("broadcast", collectives.broadcast, lengths, name, None, root, memory, memory, opts,
                           finish if root != self._comm.rank else None, [tensor], timeout)
            )  # fmt: skip
        return works[0] if len(works) == 1 else self._together(works, tensors)

    @also_elsewhere
    def _allgather_base(self, out: Any, source: Any, opts: Any = None) -> dist.Work:
        """Put the tensors of all ranks one after the other into one."""
        what = "all_gather_into_tensor"
        out, source = check(out, what), check(source, what)
        if out.numel() != source.numel() * self._comm.size or source.dtype != out.dtype:
            raise UsageError(
                f"{what}: the output has {out.numel()} {out.dtype} and the input {source.numel()} {source.dtype}; "
                f"expected {self._comm.size} times as many, of the same type"
            )
        return self._gather_all(what, out, source, [source.numel()] * self._comm.size, opts, None, [out])

    all_gather_single = _allgather_base

    def _gather_all(
        self, what: str, out: Tensor, source: Tensor, sizes: list[int], opts: Any, then: Finish | None,
        result: Sequence[Tensor], timeout: timedelta | None = None,
    ) -> dist.Work:  # fmt: skip
        memory, finish = contiguous_output(out, keep=False)
        source = source.contiguous()
        name, each = moved_as(source)
        own = memory.data_ptr() + sum(sizes[: self._comm.rank]) * source.element_size()
        if _overlap(memory, source) and source.data_ptr() != own:
            source = source.clone()
        blocks = tuple(size * each for size in sizes)
        return self._call(what, collectives.all_gather, Lengths(blocks, blocks), name, None, None, source, memory, opts,
                          then or finish, result, timeout)  # fmt: skip

    @also_elsewhere
    def allgather(self, outs: Any, sources: Any, opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Give every rank the tensors of all ranks, in a list."""
        if isinstance(sources, Tensor):
            outs, sources = [outs], [sources]
        works = []
        for parts, source in zip(outs, sources, strict=True):
            source = check(source, "all_gather")
            parts = self._checked_list("all_gather", "output", parts, source)
            sizes = [part.numel() for part in parts]
            if sizes[self._comm.rank] != source.numel():
                raise UsageError(
                    f"all_gather: output {self._comm.rank} has {sizes[self._comm.rank]} elements; expected "
                    f"{source.numel()}, as the input"
                )
            out, then = self._in_one_piece(parts)
            works.append(self._gather_all("all_gather", out, source, sizes, opts, then, parts, timeout))
        return works[0] if len(works) == 1 else self._together(works, [t for parts in outs for t in parts])

    @also_elsewhere
    def allgather_coalesced(self, out_lists: Any, sources: Any, opts: Any = None) -> dist.Work:
        """Gather several tensors: ``out_lists[rank][tensor]``."""
        outs = [[out_lists[rank][place] for rank in range(self._comm.size)] for place in range(len(sources))]
        return self.allgather(outs, sources, opts)

    @also_elsewhere
    def allgather_into_tensor_coalesced(self, outs: Any, sources: Any, opts: Any = None) -> dist.Work:
        """Gather several pairs."""
        works = [self._allgather_base(out, source, opts) for out, source in zip(outs, sources, strict=True)]
        return self._together(works, outs)

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    @also_elsewhere
    def gather(self, outs: Any, sources: Any, opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Give the root the tensors of all ranks, in a list."""
        root = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
        if isinstance(sources, Tensor):
            outs, sources = [outs] if outs else [], [sources]
        source = check(sources[0], "gather").contiguous()
        name, each = moved_as(source)
        blocks = (source.numel() * each,) * self._comm.size
        out, then, parts = source, None, []
        if root == self._comm.rank:
            parts = self._checked_list("gather", "output", outs[0] if outs else [], source)
            self._check_equal("gather", "output", parts, source)
            out, then = self._in_one_piece(parts)
        return self._call("gather", collectives.gather, Lengths(blocks, blocks), name, None, root, source, out, opts,
                          then, parts, timeout)  # fmt: skip

    @also_elsewhere
    def scatter(self, outs: Any, sources: Any, opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Give every rank its tensor of the root's list."""
        root = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
        if isinstance(outs, Tensor):
            outs, sources = [outs], [sources] if sources else []
        out = check(outs[0], "scatter")
        memory, finish = contiguous_output(out, keep=False)
        name, each = moved_as(out)
        blocks = (out.numel() * each,) * self._comm.size
        source = memory
        if root == self._comm.rank:
            parts = self._checked_list("scatter", "input", sources[0] if sources else [], out)
            self._check_equal("scatter", "input", parts, out)
            source = flat(parts)
        return self._call("scatter", collectives.scatter, Lengths(blocks, blocks), name, None, root, source, memory,
                          opts, finish, [out], timeout)  # fmt: skip

    @also_elsewhere
    def alltoall_base(
        self, out: Any, source: Any, out_splits: Any = None, splits: Any = None, opts: Any = None,
        timeout: timedelta | None = None,
    ) -> dist.Work:  # fmt: skip
        """Exchange rows: so many go to each rank, so many come from each."""
        what = "all_to_all_single"
        out, source = check(out, what), check(source, what)
        if out.dtype != source.dtype:
            raise UsageError(f"{what}: the input is {source.dtype} and the output {out.dtype}; expected the same type")
        sizes = _elements_of_rows(what, "input", source, splits, self._comm.size)
        out_sizes = _elements_of_rows(what, "output", out, out_splits, self._comm.size)
        memory, finish = contiguous_output(out, keep=False)
        source = source.contiguous()
        if _overlap(memory, source):
            source = source.clone()
        return self._exchange(what, memory, source, sizes, out_sizes, bool(splits or out_splits), opts, finish, [out],
                              timeout)  # fmt: skip

    all_to_all_single = alltoall_base

    @also_elsewhere
    def alltoall(self, outs: Any, sources: Any, opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Send tensor d to rank d; tensor s comes from rank s."""
        if not outs and not sources:
            raise UsageError(f"all_to_all: no tensors; expected {self._comm.size} to send and to receive")
        parts = self._checked_list("all_to_all", "input", sources, sources[0])
        targets = self._checked_list("all_to_all", "output", outs, sources[0])
        sizes, out_sizes = [part.numel() for part in parts], [target.numel() for target in targets]
        out, then = self._in_one_piece(targets)
        return self._exchange("all_to_all", out, flat(parts), sizes, out_sizes, True, opts, then, targets, timeout)

    def _exchange(
        self, what: str, out: Tensor, source: Tensor, sizes: list[int], out_sizes: list[int], unequal: bool, opts: Any,
        finish: Finish | None, result: Sequence[Tensor], timeout: timedelta | None,
    ) -> dist.Work:  # fmt: skip
        name, each = moved_as(source)
        rows = tuple(size * each for size in sizes), tuple(size * each for size in out_sizes)
        return self._call(what, collectives.all_to_all, Lengths(*rows, equal=not unequal), name, None, None, source, out,
                          opts, finish, result, timeout)  # fmt: skip

    def _in_one_piece(self, parts: list[Tensor]) -> tuple[Tensor, Finish | None]:
        """Return memory for all of them, and what is to be done once it is full."""
        total = sum(part.numel() for part in parts)
        if total and adjacent(parts):
            return parts[0], None
        memory = torch.empty(total, dtype=parts[0].dtype)
        return memory, lambda: spread(parts, memory)

    def _checked_list(self, what: str, name: str, parts: Any, like: Any) -> list[Tensor]:
        if len(parts) != self._comm.size:
            raise UsageError(f"{what}: {len(parts)} tensors as {name}; expected {self._comm.size}, one for each rank")
        for place, part in enumerate(parts):
            if check(part, f"{what}: {name} {place}").dtype != like.dtype:
                raise UsageError(f"{what}: {name} {place} is {part.dtype}; expected {like.dtype}")
        return list(parts)

    def _check_equal(self, what: str, name: str, parts: list[Tensor], like: Tensor) -> None:
        for place, part in enumerate(parts):
            if part.numel() != like.numel():
                raise UsageError(f"{what}: {name} {place} has {part.numel()} elements; expected {like.numel()}")

    # ---- barriers and messages ---------------------------------------------------------------------------------

    def barrier(self, opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Wait until every rank has come here."""
        if isinstance(opts, timedelta):
            opts, timeout = None, opts
        nothing = torch.empty(0, dtype=torch.uint8)
        return self._call("barrier", collectives.barrier, Lengths((0,), (0,)), "uint8", None, None, nothing, nothing,
                          opts, None, [], timeout)  # fmt: skip

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Wait for all ranks; rank 0 says who is missing."""
        self._barriers += 1
        seconds = timeout.total_seconds() if timeout is not None and timeout > NO_LIMIT else self._timeout_s
        monitored_barrier(self._store, self._comm.rank, self._comm.size, self._barriers, seconds, wait_all_ranks)

    @also_elsewhere
    def send(self, tensors: Any, dst: int, tag: int = 0) -> dist.Work:
        """Send a tensor to a rank."""
        tensor = check(tensors[0], "send").contiguous()
        return self._transfer("send", tensor, None, [], lambda given: self._comm.send(
            given, dst, tag=tag, async_op=True, timeout=self._timeout_s))  # fmt: skip

    @also_elsewhere
    def recv(self, tensors: Any, src: int | None, tag: int = 0) -> dist.Work:
        """Receive a tensor from a rank."""
        memory, finish = contiguous_output(check(tensors[0], "recv"), keep=False)
        return self._transfer("recv", memory, finish, tensors, lambda given: self._comm.recv(
            given, src, tag=tag, async_op=True, timeout=self._timeout_s))  # fmt: skip

    def recv_anysource(self, tensors: Any, tag: int = 0) -> dist.Work:
        """Receive a tensor from whoever sends one."""
        return self.recv(tensors, None, tag)

    def _transfer(
        self, what: str, tensor: Tensor, finish: Finish | None, result: Sequence[Tensor], start: Callable[[Any], Any]
    ) -> dist.Work:
        self._check_open(what)
        moved = tensor.detach() if tensor.dtype in KNOWN else tensor.detach().view(-1).view(torch.uint8)
        return self._background(PendingWork(Transfer(start(moved)), result, finish, what))

    # ---- several at once ---------------------------------------------------------------------------------------

    def _start_coalescing(self, device: Any) -> None:
        self._coalescing = []

    def _end_coalescing(self, device: Any) -> dist.Work:
        works, self._coalescing = self._coalescing or [], None
        return self._together(works, [])

    # ---- the end -----------------------------------------------------------------------------------------------

    def split_group(
        self, new_ranks: list[int], timeout: timedelta | None = None, opts: Any = None, group_name: str | None = None,
        group_desc: str | None = None, device_types: Any = None,
    ) -> UnisonoProcessGroup | None:  # fmt: skip
        """Make a group of some of our ranks. All of them must call this, each with the group that it belongs to."""
        mine = self._comm.rank in new_ranks
        comm = self._comm.split(min(new_ranks) if mine else None, new_ranks.index(self._comm.rank) if mine else 0)
        if comm is None:
            return None
        store = dist.PrefixStore(f"{group_name or 'split'}/", self._store)
        limit = timeout if timeout is not None else timedelta(seconds=self._timeout_s)
        group = UnisonoProcessGroup(comm, store, limit, opts if isinstance(opts, Options) else self._options)
        group.set_timeout(limit)
        group._name, group._description = group_name or "", group_desc or "undefined"
        return group

    def shutdown(self) -> None:
        """Finish what was started, and leave."""
        if not self._closed:
            self._closed = True
            self._lane.close()
            self._comm.close()
            self._aside.comm.close()
            for backend in self._others.values():
                backend.shutdown()

    def abort(self) -> None:
        """Break off all calls, on all ranks."""
        if not self._closed:
            self._comm.abort("the process group was aborted")
            self._aside.comm.abort("the process group was aborted")
            self.shutdown()


class Transfer:
    """A message on its way."""

    def __init__(self, work: Any) -> None:
        self.work = work

    def done(self) -> bool:
        """Whether it is over."""
        return bool(self.work.done())

    def wait(self, seconds: float) -> bool:
        """Wait until it is over, or the time."""
        return bool(self.work._endpoint.wait(self.work._completion, min(seconds, FOREVER_S)))

    def error(self) -> Exception | None:
        """Return what went wrong."""
        error: Exception | None = self.work.exception()
        return error

    def source_rank(self) -> int:
        """Return who sent it."""
        return int(self.work.source_rank())


def _after(memory: Tensor, asked: Reduction, finish: Finish | None) -> Finish | None:
    """Return what is to be done with the result of a reduction."""
    if asked.divisor == 1:
        return finish

    def both() -> None:
        asked.after(memory)
        if finish is not None:
            finish()

    return both


def _overlap(first: Tensor, second: Tensor) -> bool:
    start, other = first.data_ptr(), second.data_ptr()
    return start < other + second.nbytes and other < start + first.nbytes


def _elements_of_rows(what: str, name: str, tensor: Tensor, splits: Any, size: int) -> list[int]:
    """Return how many elements go to, or come from, each rank."""
    rows = tensor.shape[0] if tensor.dim() else 1
    if not splits:
        if rows % size:
            raise UsageError(f"{what}: {rows} rows of the {name} do not divide into {size} equal parts; give the splits")
        splits = [rows // size] * size
    if len(splits) != size or sum(splits) != rows or min(splits) < 0:
        raise UsageError(
            f"{what}: {name}_split_sizes={list(splits)}; expected {size} numbers of rows that make {rows} together"
        )
    each = tensor.numel() // rows if rows else 0
    return [count * each for count in splits]


_open_groups: weakref.WeakSet[UnisonoProcessGroup] = weakref.WeakSet()


@atexit.register
def _leave_all() -> None:
    # Whoever exits with calls under way will not finish them: the others are told rather than kept waiting.
    for group in list(_open_groups):
        if not group._closed and any(not work.is_completed() for work in list(group._unfinished)):
            group.abort()


keep_out(barriers, caller, futures, helpers, other_devices, side_lane, sparse, work, sys.modules[__name__])
