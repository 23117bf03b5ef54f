"""The collectives that only move data: broadcast, all_gather, gather, scatter, all_to_all; and the barrier."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from unisono import collectives
from unisono.collectives import Collective
from unisono.compiler import Lengths
from unisono.errors import UsageError
from unisono.torch_backend import fast_path, several, tensor_messages
from unisono.torch_backend.dispatch import GroupDispatcher
from unisono.torch_backend.lists import root_of
from unisono.torch_backend.other_devices import dispatch_by_device
from unisono.torch_backend.profiling import in_profile
from unisono.torch_backend.tensor_call import CallOptions, TensorCall, call_options_of
from unisono.torch_backend.tensors import (
    INPUT,
    OUTPUT,
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
from unisono.torch_backend.torch_errors import raises_torch_errors


class MovementOps:
    """The part of a process group that moves data without reducing it."""

    _dispatcher: GroupDispatcher

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
        call = self._move("broadcast", collectives.broadcast, memory, memory, (tensor.numel(),), [tensor], root)
        if finish is None:
            fast_path.remember(self._dispatcher, call, tensor)
        return self._dispatcher.call(call.then(None if is_root else finish), options)

    def _move(
        self, name: str, collective: Collective, source: Tensor, out: Tensor, sizes: tuple[int, ...],
        result: Sequence[Tensor], root: int | None = None, out_sizes: tuple[int, ...] | None = None,
        known_to_all: bool = True,
    ) -> TensorCall:  # fmt: skip
        """Describe a call on blocks of these sizes, in elements; ``out_sizes`` if those of the result differ."""
        dtype, each = moved_as(source)
        blocks = sizes if each == 1 else tuple(size * each for size in sizes)
        out_blocks = blocks if out_sizes is None else tuple(size * each for size in out_sizes)
        lengths = Lengths(blocks, out_blocks, known_to_all)
        return TensorCall(name, self._dispatcher.request(collective, lengths, dtype, None, root), source, out, result)

    @dispatch_by_device
    def _allgather_base(self, out: Any, source: Any, opts: Any = None) -> dist.Work:
        """Put the tensors of all ranks one after the other into one."""
        call = self._prepare_gathering_into(out, source)
        fast_path.remember(self._dispatcher, call, out, source)
        return self._dispatcher.call(call, call_options_of(opts))

    all_gather_single = _allgather_base

    @dispatch_by_device
    def allgather_into_tensor_coalesced(self, outs: Any, sources: Any, opts: Any = None) -> dist.Work:
        """Gather the tensors of several pairs."""
        name = "all_gather_into_tensor"
        outs, sources = [check(out, name) for out in outs], [check(source, name) for source in sources]
        sources, apart = read_first(sources, outs)
        calls = [self._prepare_gathering_into(out, source, apart) for out, source in zip(outs, sources, strict=True)]
        return self._dispatcher.call_all(calls, call_options_of(opts), outs)

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def _prepare_gathering_into(self, out: Any, source: Any, apart: bool = False) -> TensorCall:
        name, size = "all_gather_into_tensor", self._dispatcher.comm.size
        out, source = check(out, name), check(source, name)
        check_whole(name, (OUTPUT, INPUT), out, source, size)
        memory, finish = contiguous_output(out, keep=False, apart=apart)
        sizes = (source.numel(),) * size
        return self._gathering(name, collectives.all_gather, memory, source, sizes, [out]).then(finish)

    def _gathering(
        self, name: str, collective: Collective, memory: Tensor, source: Tensor, sizes: tuple[int, ...],
        result: Sequence[Tensor], root: int | None = None,
    ) -> TensorCall:  # fmt: skip
        """Describe a call whose result contains this rank's input, which may already be in its final position."""
        source = contiguous_input(source)
        start, address, element = memory.data_ptr(), source.data_ptr(), source.itemsize
        overlaps = address < start + sum(sizes) * element and start < address + source.nbytes
        if overlaps and address != start + sum(sizes[: self._dispatcher.comm.rank]) * element:
            source = separate(source)
        return self._move(name, collective, source, memory, sizes, result, root)

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
        outs = [[out_lists[rank][index] for rank in range(size)] for index in range(len(sources))]
        with in_profile("all_gather", sources):
            return self._allgather(outs, sources, call_options_of(opts))

    def _allgather(self, outs: Any, sources: Any, options: CallOptions) -> dist.Work:
        name, comm = "all_gather", self._dispatcher.comm
        sources = [check(source, name) for source in sources]
        lists = [
            check_list(name, OUTPUT, parts, source, comm.size) for parts, source in zip(outs, sources, strict=True)
        ]
        for parts, source in zip(lists, sources, strict=True):
            count = parts[comm.rank].numel()
            if count != source.numel():
                raise UsageError(
                    tensor_messages.OUTPUT_UNLIKE_INPUT(
                        call=name, index=comm.rank, count=count, expected=source.numel()
                    )
                )
        results = [tensor for parts in lists for tensor in parts]
        (sources, apart), calls = read_first(sources, results), []
        for parts, source in zip(lists, sources, strict=True):
            memory, finish = in_one_piece(parts, apart)
            sizes = tuple(part.numel() for part in parts)
            call = self._gathering(name, collectives.all_gather, memory, source, sizes, parts)
            if finish is not None and len(set(sizes)) == 1:
                fast_path.remember(self._dispatcher, call, memory, source)
            calls.append(call.then(finish))
        return self._dispatcher.call_all(calls, options, results)

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
            return self._dispatcher.call(
                self._move("gather", collectives.gather, source, source, sizes, [], root), options
            )
        parts = check_list("gather", OUTPUT, outs[0] if outs else [], source, comm.size)
        check_equal("gather", OUTPUT, parts, source)
        memory, finish = in_one_piece(parts)
        call = self._gathering("gather", collectives.gather, memory, source, sizes, parts, root)
        return self._dispatcher.call(call.then(finish), options)

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
            parts = check_list("scatter", INPUT, sources[0] if sources else [], out, comm.size)
            check_equal("scatter", INPUT, parts, out)
            source = flat(parts)
        sizes = (out.numel(),) * comm.size
        call = self._move("scatter", collectives.scatter, source, memory, sizes, [out], root)
        return self._dispatcher.call(call.then(finish), call_options_of(opts, timeout))

    @dispatch_by_device
    def alltoall_base(
        self, out: Any, source: Any, out_splits: Any = None, splits: Any = None, opts: Any = None,
        timeout: timedelta | None = None,
    ) -> dist.Work:  # fmt: skip
        """Exchange rows of two tensors: ``splits`` go to each rank, ``out_splits`` come from each."""
        name, size = "all_to_all_single", self._dispatcher.comm.size
        out, source = check(out, name), check(source, name)
        if out.dtype != source.dtype:
            raise UsageError(tensor_messages.TYPES_DIFFER(call=name, input=source.dtype, output=out.dtype))
        sizes = elements_of_rows(name, INPUT, source, splits, size)
        out_sizes = elements_of_rows(name, OUTPUT, out, out_splits, size)
        has_splits = bool(splits or out_splits)
        if not has_splits and out.numel() != source.numel():
            raise UsageError(tensor_messages.COUNTS_DIFFER(call=name, input=source.numel(), output=out.numel()))
        memory, finish = contiguous_output(out, keep=False)
        given = source
        source = separate(source) if share_memory([memory, source]) else contiguous_input(source)
        call = self._exchange(name, source, memory, sizes, out_sizes, [out], known_to_all=not has_splits)
        if not has_splits and finish is None:
            fast_path.remember(self._dispatcher, call, out, given)
        return self._dispatcher.call(call.then(finish), call_options_of(opts, timeout))

    all_to_all_single = alltoall_base

    @dispatch_by_device
    def alltoall(self, outs: Any, sources: Any, opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Send tensor d to rank d; tensor s comes from rank s."""
        name, size = "all_to_all", self._dispatcher.comm.size
        parts = check_list(name, INPUT, sources, sources[0] if sources else None, size)
        targets = check_list(name, OUTPUT, outs, outs[0] if outs else None, size)
        if parts[0].dtype != targets[0].dtype:
            types = {"input": parts[0].dtype, "output": targets[0].dtype}
            raise UsageError(tensor_messages.LIST_TYPES_DIFFER(call=name, **types))
        mine = self._dispatcher.comm.rank
        counts = {"input": parts[mine].numel(), "output": targets[mine].numel()}
        if counts["input"] != counts["output"]:
            raise UsageError(tensor_messages.OWN_PART_DIFFERS(call=name, index=mine, **counts))
        memory, finish = in_one_piece(targets)
        sizes, out_sizes = tuple(part.numel() for part in parts), tuple(target.numel() for target in targets)
        call = self._exchange(name, flat(parts), memory, sizes, out_sizes, targets, known_to_all=False)
        return self._dispatcher.call(call.then(finish), call_options_of(opts, timeout))

    def _exchange(
        self, name: str, source: Tensor, out: Tensor, sizes: tuple[int, ...], out_sizes: tuple[int, ...],
        result: Sequence[Tensor], known_to_all: bool,
    ) -> TensorCall:  # fmt: skip
        return self._move(
            name, collectives.all_to_all, source, out, sizes, result, out_sizes=out_sizes, known_to_all=known_to_all
        )

    @raises_torch_errors
    def barrier(self, opts: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Wait until every rank has called this, and until everything in the streams of every rank has run."""
        if isinstance(opts, timedelta):
            opts, timeout = None, opts
        self._dispatcher.finish_on_gpu(getattr(opts, "device", None))
        nothing = torch.empty(0, dtype=torch.uint8, device="cpu")
        call = self._move("barrier", collectives.barrier, nothing, nothing, (0,), [])
        return self._dispatcher.call(call, call_options_of(opts, timeout))
