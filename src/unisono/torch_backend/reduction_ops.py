"""The collectives that reduce: all_reduce, reduce, reduce_scatter."""

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
from unisono.torch_backend import fast_path, several, sparse, tensor_messages
from unisono.torch_backend.dispatch import GroupDispatcher
from unisono.torch_backend.lists import root_of
from unisono.torch_backend.other_devices import dispatch_by_device
from unisono.torch_backend.profiling import in_profile
from unisono.torch_backend.reductions import Reduction, reduction
from unisono.torch_backend.tensor_call import CallOptions, TensorCall, call_options_of
from unisono.torch_backend.tensors import (
    INPUT,
    OUTPUT,
    Finish,
    Tensor,
    as_list,
    check,
    check_list,
    check_whole,
    contiguous_input,
    contiguous_output,
    copy,
    flat,
    number_type,
    read_first,
    share_memory,
)
from unisono.torch_backend.torch_errors import raises_torch_errors


class ReductionOps:
    """The part of a process group that reduces."""

    _dispatcher: GroupDispatcher

    def allreduce(
        self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, op: Any = None
    ) -> dist.Work:
        """Replace every tensor by its sum (or product, ...) over all ranks."""
        tensors = as_list(tensors)
        other = self.other_backend_of(tensors[0]) if tensors else None  # type: ignore[attr-defined]
        if other is not None:
            return other.allreduce(tensors, opts)
        if len(tensors) == 1 and isinstance(opts, dist.AllreduceOptions):
            work = fast_path.all_reduce(self, tensors[0], opts)
            if work is not None:
                return work
        if op is None:
            op = getattr(opts, "reduceOp", opts if opts is not None else dist.ReduceOp.SUM)
        options = call_options_of(opts, timeout)
        if len(tensors) == 1:
            return self._all_reduce(tensors[0], op, options)
        with in_profile("all_reduce", tensors):
            return several.all_reduce(self, tensors, op, options)

    @dispatch_by_device
    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> dist.Work:
        """Do an all-reduce of every tensor."""
        op, options = getattr(opts, "reduceOp", dist.ReduceOp.SUM), call_options_of(opts)
        with in_profile("all_reduce", tensors):
            return self._all_reduce_together(tensors, op, options)

    @raises_torch_errors
    def _all_reduce(self, tensor: Any, op: Any, options: CallOptions) -> dist.Work:
        if _is_sparse(tensor):
            return sparse.all_reduce(self, tensor, op)
        call = self._prepare_all_reduce(check(tensor, "all_reduce"), op)
        fast_path.remember(self._dispatcher, call, tensor)
        return self._dispatcher.call(call, options)

    @raises_torch_errors
    def _all_reduce_together(self, tensors: Sequence[Any], op: Any, options: CallOptions) -> dist.Work:
        tensors = [check(tensor, "all_reduce") for tensor in tensors]
        apart = share_memory(tensors)
        calls = [self._prepare_all_reduce(tensor, op, apart) for tensor in tensors]
        return self._dispatcher.call_all(calls, options, tensors)

    def _prepare_all_reduce(self, tensor: Tensor, op: Any, apart: bool = False) -> TensorCall:
        requested = reduction(op, tensor.dtype, self._dispatcher.comm.size, "all_reduce")
        return self._prepare(collectives.all_reduce, tensor, requested, None, apart)

    def _prepare(
        self, collective: Collective, tensor: Tensor, requested: Reduction, root: int | None, apart: bool
    ) -> TensorCall:
        """Prepare a reduction in place."""
        memory, finish = contiguous_output(tensor, keep=True, apart=apart)
        if requested.factor is not None:
            memory = contiguous_input(requested.before(memory))
            finish = _copying(tensor, memory)
        finish = _after(memory, requested, finish)
        is_written = root is None or root == self._dispatcher.comm.rank
        lengths = Lengths((memory.numel(),), (memory.numel(),))
        dtype = number_type(memory, collective.name)
        request = self._dispatcher.request(collective, lengths, dtype, requested.op, root)
        return TensorCall(collective.name, request, memory, memory, [tensor], finish if is_written else None)

    @dispatch_by_device
    def reduce(self, tensors: Any, opts: Any = None, op: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Replace the root's tensor by the sum over all ranks; those of the others stay as they are."""
        tensors = [check(tensor, "reduce") for tensor in as_list(tensors)]
        root = root_of(opts, self._dispatcher.comm.size, "reduce", len(tensors))
        op = op if op is not None else getattr(opts, "reduceOp", dist.ReduceOp.SUM)
        apart, size = len(tensors) > 1 and share_memory(tensors), self._dispatcher.comm.size
        calls = [
            self._prepare(collectives.reduce, tensor, reduction(op, tensor.dtype, size, "reduce"), root, apart)
            for tensor in tensors
        ]
        fast_path.remember(self._dispatcher, calls[0], tensors[0])
        return self._dispatcher.call_all(calls, call_options_of(opts, timeout), tensors)

    @dispatch_by_device
    def _reduce_scatter_base(self, out: Any, source: Any, opts: Any = None) -> dist.Work:
        """Sum over all ranks; every rank gets its part."""
        return self._reduce_scatter_bases([out], [source], opts, repeatable=True)

    reduce_scatter_single = _reduce_scatter_base

    @dispatch_by_device
    def reduce_scatter_tensor_coalesced(self, outs: Any, sources: Any, opts: Any = None) -> dist.Work:
        """Do a reduce-scatter of every pair."""
        return self._reduce_scatter_bases(outs, sources, opts)

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def _reduce_scatter_bases(self, outs: Any, sources: Any, opts: Any, repeatable: bool = False) -> dist.Work:
        name, size = "reduce_scatter_tensor", self._dispatcher.comm.size
        outs, sources = [check(out, name) for out in outs], [check(source, name) for source in sources]
        for out, source in zip(outs, sources, strict=True):
            check_whole(name, (INPUT, OUTPUT), source, out, size)
        op = getattr(opts, "reduceOp", dist.ReduceOp.SUM)
        sources, apart = read_first(sources, outs)
        calls = [
            self._prepare_reduce_scatter(name, out, source, (out.numel(),) * size, op, apart)
            for out, source in zip(outs, sources, strict=True)
        ]
        if repeatable:
            fast_path.remember(self._dispatcher, calls[0], outs[0], sources[0])
        return self._dispatcher.call_all(calls, call_options_of(opts), outs)

    @dispatch_by_device
    def reduce_scatter(
        self, outs: Any, sources: Any, opts: Any = None, timeout: timedelta | None = None
    ) -> dist.Work:
        """Sum lists of tensors over all ranks; rank r gets tensor r."""
        if torch.is_tensor(outs):
            outs, sources = [outs], [sources]
        op = getattr(opts, "reduceOp", opts if opts is not None else dist.ReduceOp.SUM)
        name, comm, calls = "reduce_scatter", self._dispatcher.comm, []
        outs = [check(out, name) for out in outs]
        for out, parts in zip(outs, sources, strict=True):
            parts = check_list(name, INPUT, parts, out, comm.size)
            sizes = tuple(part.numel() for part in parts)
            if sizes[comm.rank] != out.numel():
                raise UsageError(
                    tensor_messages.INPUT_UNLIKE_OUTPUT(
                        call=name, index=comm.rank, count=sizes[comm.rank], expected=out.numel()
                    )
                )
            calls.append(self._prepare_reduce_scatter(name, out, flat(parts), sizes, op, len(outs) > 1))
        return self._dispatcher.call_all(calls, call_options_of(opts, timeout), outs)

    def _prepare_reduce_scatter(
        self, name: str, out: Tensor, source: Tensor, sizes: tuple[int, ...], op: Any, apart: bool
    ) -> TensorCall:
        requested = reduction(op, out.dtype, self._dispatcher.comm.size, name)
        source = contiguous_input(requested.before(source))
        memory, finish = contiguous_output(out, keep=False, apart=apart or share_memory([out, source]))
        dtype = number_type(out, name)
        request = self._dispatcher.request(collectives.reduce_scatter, Lengths(sizes, sizes), dtype, requested.op)
        return TensorCall(name, request, source, memory, [out], _after(memory, requested, finish))


def _is_sparse(tensor: Any) -> bool:
    return torch.is_tensor(tensor) and tensor.layout is torch.sparse_coo


def _copying(to: Tensor, source: Tensor) -> Finish:
    return lambda: copy(to, source)


def _after(memory: Tensor, requested: Reduction, finish: Finish | None) -> Finish | None:
    """Return what completes the result of a reduction, and then does what remains for its memory."""
    if requested.divisor == 1:
        return finish

    def both() -> None:
        requested.after(memory)
        if finish is not None:
            finish()

    return both
