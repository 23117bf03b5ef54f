"""The collectives that only move: broadcast, all_gather, gather, scatter, all_to_all; and the barrier."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from unisono import collectives
from unisono.collectives import Collective
from unisono.errors import UsageError
from unisono.torch_backend import fast_path, several
from unisono.torch_backend.dispatch import Call, CallOptions, GroupDispatcher, Prepared, call_options_of
from unisono.torch_backend.lists import root_of
from unisono.torch_backend.other_devices import dispatch_by_device
from unisono.torch_backend.plan_cache import Blocks
from unisono.torch_backend.profiling import in_profile
from unisono.torch_backend.tensors import (
    Tensor,
    as_list,
    check,
    check_equal,
    check_list,
    check_whole,
    contiguous_input,
    contiguous_output,
    elements_of_rows,
    flat,
    in_one_piece,
    moved_as,
    read_first,
    separate,
    share_memory,
)
from unisono.torch_backend.torch_errors import raises_torchs


class Moving:
    """The part of a process group that moves."""

    _dispatcher: GroupDispatcher
    _quick: fast_path.Plans

    @dispatch_by_device
    def broadcast(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Replace every tensor by the root's."""
        tensors = as_list(tensors)
        if len(tensors) != 1:
            return several.broadcast(self, tensors, opts, timeout)
        root = root_of(opts, self._dispatcher.comm.size, "broadcast")
        return self._broadcast(tensors[0], root, call_options_of(opts, timeout))

    def _broadcast(self, tensor: Any, root: int, options: CallOptions) -> dist.Work:
        tensor = check(tensor, "broadcast")
        is_root = root == self._dispatcher.comm.rank
        memory, finish = contiguous_output(tensor, keep=is_root)
        call = self._move("broadcast", collectives.broadcast, memory, memory, (tensor.numel(),), root)
        if finish is None:
            self._remember((fast_path.broadcast, tensor.numel(), tensor.dtype, root), call)
        return self._dispatcher.make(call, options, None if is_root else finish, [tensor])

    def _remember(self, key: Any, call: Call) -> None:
        """Keep the plan of a call for the short way."""
        fast_path.remember(self._quick, key, self._dispatcher.plan_of(call), call.source)

    def _move(
        self, what: str, collective: Collective, source: Tensor, out: Tensor, sizes: tuple[int, ...],
        root: int | None = None, out_sizes: tuple[int, ...] | None = None, equal: bool = True,
    ) -> Call:  # fmt: skip
        """Describe a call: with so many elements in each block, the same in the result unless told otherwise."""
        name, each = moved_as(source)
        blocks = sizes if each == 1 else tuple(size * each for size in sizes)
        out_blocks = blocks if out_sizes is None else tuple(size * each for size in out_sizes)
        return Call(what, collective, Blocks(blocks, out_blocks, equal=equal), name, source, out, None, root)

    @dispatch_by_device
    def _allgather_base(self, out: Any, source: Any, opts: Any = None) -> dist.Work:
        """Put the tensors of all ranks one after the other into one."""
        call, finish, result = self._prepare_gathering_into(out, source)
        key = (fast_path.all_gather_into, source.numel(), source.dtype, out.numel(), out.dtype)
        self._remember(key, call)
        return self._dispatcher.make(call, call_options_of(opts), finish, result)

    all_gather_single = _allgather_base

    @dispatch_by_device
    def allgather_into_tensor_coalesced(self, outs: Any, sources: Any, opts: Any = None) -> dist.Work:
        """Gather several pairs."""
        what = "all_gather_into_tensor"
        outs, sources = [check(out, what) for out in outs], [check(source, what) for source in sources]
        sources, apart = read_first(sources, outs)
        prepared = [
            self._prepare_gathering_into(out, source, apart) for out, source in zip(outs, sources, strict=True)
        ]
        return self._dispatcher.make_all(prepared, call_options_of(opts), outs)

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def _prepare_gathering_into(self, out: Any, source: Any, apart: bool = False) -> Prepared:
        what, size = "all_gather_into_tensor", self._dispatcher.comm.size
        out, source = check(out, what), check(source, what)
        check_whole(what, ("output", "input"), out, source, size)
        memory, finish = contiguous_output(out, keep=False, apart=apart)
        call = self._gathering(what, collectives.all_gather, memory, source, (source.numel(),) * size)
        return Prepared(call, finish, [out])

    def _gathering(
        self, what: str, collective: Collective, memory: Tensor, source: Tensor, sizes: tuple[int, ...],
        root: int | None = None,
    ) -> Call:  # fmt: skip
        """Describe a call whose result has this rank's input in it: that may already lie where it belongs."""
        source = contiguous_input(source)
        start, place, element = memory.data_ptr(), source.data_ptr(), source.itemsize
        meets = place < start + sum(sizes) * element and start < place + source.nbytes
        if meets and place != start + sum(sizes[: self._dispatcher.comm.rank]) * element:
            source = separate(source)
        return self._move(what, collective, source, memory, sizes, root)

    @dispatch_by_device
    def allgather(self, outs: Any, sources: Any, opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Give every rank the tensors of all ranks, in a list; they may differ in length."""
        if torch.is_tensor(sources):
            outs, sources = [outs], [sources]
        elif len(sources) != 1:
            return several.all_gather(self, outs, sources, opts)
        return self._allgather(outs, sources, call_options_of(opts, timeout))

    @dispatch_by_device
    def allgather_coalesced(self, out_lists: Any, sources: Any, opts: Any = None) -> dist.Work:
        """Gather several tensors: ``out_lists[rank][tensor]``."""
        size = self._dispatcher.comm.size
        outs = [[out_lists[rank][place] for rank in range(size)] for place in range(len(sources))]
        with in_profile("all_gather", sources):
            return self._allgather(outs, sources, call_options_of(opts))

    def _allgather(self, outs: Any, sources: Any, options: CallOptions) -> dist.Work:
        what, comm = "all_gather", self._dispatcher.comm
        sources = [check(source, what) for source in sources]
        lists = [
            check_list(what, "output", parts, source, comm.size) for parts, source in zip(outs, sources, strict=True)
        ]
        for parts, source in zip(lists, sources, strict=True):
            if parts[comm.rank].numel() != source.numel():
                raise UsageError(
                    f"{what}: invalid tensor size at index {comm.rank}: output {comm.rank} has "
                    f"{parts[comm.rank].numel()} elements; expected {source.numel()}, as the input"
                )
        results = [tensor for parts in lists for tensor in parts]
        (sources, apart), prepared = read_first(sources, results), []
        for parts, source in zip(lists, sources, strict=True):
            memory, finish = in_one_piece(parts, apart)
            sizes = tuple(part.numel() for part in parts)
            call = self._gathering(what, collectives.all_gather, memory, source, sizes)
            prepared.append(Prepared(call, finish, parts))
            if len(set(sizes)) == 1:
                self._remember((fast_path.all_gather, source.numel(), source.dtype, len(parts)), call)
        return self._dispatcher.make_all(prepared, options, results)

    @dispatch_by_device
    def gather(self, outs: Any, sources: Any, opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Give the root the tensors of all ranks, in a list."""
        if torch.is_tensor(sources):
            outs, sources = [outs] if outs else [], [sources]
        comm = self._dispatcher.comm
        root = root_of(opts, comm.size, "gather")
        source = check(sources[0], "gather")
        sizes, options = (source.numel(),) * comm.size, call_options_of(opts, timeout)
        if root != comm.rank:
            source = contiguous_input(source)
            return self._dispatcher.make(
                self._move("gather", collectives.gather, source, source, sizes, root), options, None, []
            )
        parts = check_list("gather", "output", outs[0] if outs else [], source, comm.size)
        check_equal("gather", "output", parts, source)
        memory, finish = in_one_piece(parts)
        call = self._gathering("gather", collectives.gather, memory, source, sizes, root)
        return self._dispatcher.make(call, options, finish, parts)

    @dispatch_by_device
    def scatter(self, outs: Any, sources: Any, opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Give every rank its tensor of the root's list."""
        if torch.is_tensor(outs):
            outs, sources = [outs], [sources] if sources else []
        comm = self._dispatcher.comm
        root = root_of(opts, comm.size, "scatter")
        out = check(outs[0], "scatter")
        memory, finish = contiguous_output(out, keep=False)
        source = memory
        if root == comm.rank:
            parts = check_list("scatter", "input", sources[0] if sources else [], out, comm.size)
            check_equal("scatter", "input", parts, out)
            source = flat(parts)
        call = self._move("scatter", collectives.scatter, source, memory, (out.numel(),) * comm.size, root)
        return self._dispatcher.make(call, call_options_of(opts, timeout), finish, [out])

    @dispatch_by_device
    def alltoall_base(
        self, out: Any, source: Any, out_splits: Any = None, splits: Any = None, opts: Any = None,
        timeout: timedelta | None = None,
    ) -> dist.Work:  # fmt: skip
        """Exchange rows: so many go to each rank, so many come from each."""
        what, size = "all_to_all_single", self._dispatcher.comm.size
        out, source = check(out, what), check(source, what)
        if out.dtype != source.dtype:
            raise UsageError(
                f"{what}: the input is {source.dtype} and the output {out.dtype}; expected the same type"
            )
        sizes = elements_of_rows(what, "input", source, splits, size)
        out_sizes = elements_of_rows(what, "output", out, out_splits, size)
        if not (splits or out_splits) and out.numel() != source.numel():
            raise UsageError(
                f"{what}: the input has {source.numel()} elements and the output {out.numel()}; expected as many, or "
                "the splits"
            )
        memory, finish = contiguous_output(out, keep=False)
        source = separate(source) if share_memory([memory, source]) else contiguous_input(source)
        call = self._exchange(what, source, memory, sizes, out_sizes, equal=not (splits or out_splits))
        if call.blocks.equal:
            self._remember((fast_path.all_to_all, source.shape, source.dtype, out.shape, out.dtype), call)
        return self._dispatcher.make(call, call_options_of(opts, timeout), finish, [out])

    all_to_all_single = alltoall_base

    @dispatch_by_device
    def alltoall(self, outs: Any, sources: Any, opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Send tensor d to rank d; tensor s comes from rank s."""
        what, size = "all_to_all", self._dispatcher.comm.size
        parts = check_list(what, "input", sources, sources[0] if sources else None, size)
        targets = check_list(what, "output", outs, outs[0] if outs else None, size)
        if parts[0].dtype != targets[0].dtype:
            raise UsageError(
                f"{what}: input and output tensors must have the same type; found {parts[0].dtype} and "
                f"{targets[0].dtype}"
            )
        mine = self._dispatcher.comm.rank
        if parts[mine].numel() != targets[mine].numel():
            raise UsageError(
                f"{what}: invalid tensor size at index {mine}, which stays on this rank: the input has "
                f"{parts[mine].numel()} elements and the output {targets[mine].numel()}"
            )
        memory, finish = in_one_piece(targets)
        sizes, out_sizes = tuple(part.numel() for part in parts), tuple(target.numel() for target in targets)
        call = self._exchange(what, flat(parts), memory, sizes, out_sizes, equal=False)
        return self._dispatcher.make(call, call_options_of(opts, timeout), finish, targets)

    def _exchange(
        self, what: str, source: Tensor, out: Tensor, sizes: tuple[int, ...], out_sizes: tuple[int, ...], equal: bool
    ) -> Call:
        return self._move(what, collectives.all_to_all, source, out, sizes, out_sizes=out_sizes, equal=equal)

    @raises_torchs
    def barrier(self, opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Wait until every rank has come here."""
        if isinstance(opts, timedelta):
            opts, timeout = None, opts
        nothing = torch.empty(0, dtype=torch.uint8, device="cpu")
        call = self._move("barrier", collectives.barrier, nothing, nothing, (0,))
        options: CallOptions = call_options_of(opts, timeout)
        return self._dispatcher.make(call, options, None, [])
