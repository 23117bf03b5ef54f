"""The collectives that add: all_reduce, reduce, reduce_scatter."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from unisono import collectives
from unisono.collectives import Collective
from unisono.errors import UsageError
from unisono.torch_backend import fast_path, several, sparse
from unisono.torch_backend.dispatch import Call, CallOptions, GroupDispatcher, Prepared, call_options_of
from unisono.torch_backend.lists import root_of
from unisono.torch_backend.other_devices import dispatch_by_device
from unisono.torch_backend.plan_cache import Blocks
from unisono.torch_backend.profiling import in_profile
from unisono.torch_backend.reductions import Reduction, is_plain, reduction
from unisono.torch_backend.tensors import (
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
from unisono.torch_backend.torch_errors import raises_torchs


class Reducing:
    """The part of a process group that adds."""

    _dispatcher: GroupDispatcher
    _quick: fast_path.Plans

    def allreduce(
        self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, op: Any = None
    ) -> dist.Work:
        """Replace every tensor by its sum (or product, ...) over all ranks."""
        tensors = as_list(tensors)
        if tensors and not tensors[0].is_cpu:
            return self.backend_of(tensors[0].device).allreduce(tensors, opts)  # type: ignore[attr-defined]
        if len(tensors) == 1 and isinstance(opts, dist.AllreduceOptions) and not opts.asyncOp:
            # The fast path of the most frequent call.
            tensor, dispatcher = tensors[0], self._dispatcher
            found = self._quick.get((tensor.numel(), tensor.dtype, hash(opts.reduceOp)))
            if found is not None and fast_path.is_usual(dispatcher):
                plan, nbytes = found
                place = fast_path.address_of_plain(tensor, nbytes)
                if place:
                    return fast_path.run(dispatcher, plan, place, place, opts)
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

    @raises_torchs
    def _all_reduce(self, tensor: Any, op: Any, options: CallOptions) -> dist.Work:
        if _is_sparse(tensor):
            return sparse.all_reduce(self, tensor, op)
        call, finish, result = self._prepare_all_reduce(check(tensor, "all_reduce"), op)
        if finish is None and is_plain(op):
            fast_path.remember(
                self._quick, (tensor.numel(), tensor.dtype, hash(op)), self._dispatcher.plan_of(call), tensor
            )
        return self._dispatcher.make(call, options, finish, result)

    @raises_torchs
    def _all_reduce_together(self, tensors: Sequence[Any], op: Any, options: CallOptions) -> dist.Work:
        tensors = [check(tensor, "all_reduce") for tensor in tensors]
        apart = share_memory(tensors)
        prepared = [self._prepare_all_reduce(tensor, op, apart) for tensor in tensors]
        return self._dispatcher.make_all(prepared, options, tensors)

    def _prepare_all_reduce(self, tensor: Tensor, op: Any, apart: bool = False) -> Prepared:
        asked = reduction(op, tensor.dtype, self._dispatcher.comm.size, "all_reduce")
        return self._prepare(collectives.all_reduce, tensor, asked, None, apart)

    def _prepare(
        self, collective: Collective, tensor: Tensor, asked: Reduction, root: int | None, apart: bool
    ) -> Prepared:
        """Prepare a reduction in place."""
        memory, finish = contiguous_output(tensor, keep=True, apart=apart)
        if asked.factor is not None:
            memory = contiguous_input(asked.before(memory))
            finish = _copying(tensor, memory)
        finish = _after(memory, asked, finish)
        is_written = root is None or root == self._dispatcher.comm.rank
        return Prepared(self._in_place(collective, memory, asked.op, root), finish if is_written else None, [tensor])

    @dispatch_by_device
    def reduce(self, tensors: Any, opts: Any = None, op: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Replace the root's tensor by the sum over all ranks; those of the others stay as they are."""
        tensors = [check(tensor, "reduce") for tensor in as_list(tensors)]
        root = root_of(opts, self._dispatcher.comm.size, "reduce", len(tensors))
        op = op if op is not None else getattr(opts, "reduceOp", dist.ReduceOp.SUM)
        apart, size = len(tensors) > 1 and share_memory(tensors), self._dispatcher.comm.size
        prepared = [
            self._prepare(collectives.reduce, tensor, reduction(op, tensor.dtype, size, "reduce"), root, apart)
            for tensor in tensors
        ]
        tensor, (call, finish, _) = tensors[0], prepared[0]
        if finish is None and is_plain(op) and call.source is tensor:
            key = (fast_path.reduce, tensor.numel(), tensor.dtype, root, hash(op))
            fast_path.remember(self._quick, key, self._dispatcher.plan_of(call), tensor)
        return self._dispatcher.make_all(prepared, call_options_of(opts, timeout), tensors)

    def _in_place(self, collective: Any, memory: Tensor, op: str, root: int | None) -> Call:
        blocks = Blocks((memory.numel(),), (memory.numel(),))
        name = number_type(memory, collective.name)
        return Call(collective.name, collective, blocks, name, memory, memory, op, root)

    @dispatch_by_device
    def _reduce_scatter_base(self, out: Any, source: Any, opts: Any = None) -> dist.Work:
        """Sum over all ranks; every rank gets its part."""
        return self._reduce_scatter_bases([out], [source], opts, short=True)

    reduce_scatter_single = _reduce_scatter_base

    @dispatch_by_device
    def reduce_scatter_tensor_coalesced(self, outs: Any, sources: Any, opts: Any = None) -> dist.Work:
        """Do a reduce-scatter of every pair."""
        return self._reduce_scatter_bases(outs, sources, opts)

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def _reduce_scatter_bases(self, outs: Any, sources: Any, opts: Any, short: bool = False) -> dist.Work:
        what, size = "reduce_scatter_tensor", self._dispatcher.comm.size
        outs, sources = [check(out, what) for out in outs], [check(source, what) for source in sources]
        for out, source in zip(outs, sources, strict=True):
            check_whole(what, ("input", "output"), source, out, size)
        op = getattr(opts, "reduceOp", dist.ReduceOp.SUM)
        sources, apart = read_first(sources, outs)
        prepared = [
            self._prepare_reduce_scatter(what, out, source, (out.numel(),) * size, op, apart)
            for out, source in zip(outs, sources, strict=True)
        ]
        call, finish, _ = prepared[0]
        if short and finish is None and is_plain(op):
            source, out = sources[0], outs[0]
            key = (fast_path.reduce_scatter, source.numel(), source.dtype, out.numel(), out.dtype, hash(op))
            fast_path.remember(self._quick, key, self._dispatcher.plan_of(call), call.source)
        return self._dispatcher.make_all(prepared, call_options_of(opts), outs)

    @dispatch_by_device
    def reduce_scatter(
        self, outs: Any, sources: Any, opts: Any = None, timeout: timedelta | None = None
    ) -> dist.Work:
        """Sum lists of tensors over all ranks; every rank gets the one of its place."""
        if torch.is_tensor(outs):
            outs, sources = [outs], [sources]
        op = getattr(opts, "reduceOp", opts if opts is not None else dist.ReduceOp.SUM)
        what, comm, prepared = "reduce_scatter", self._dispatcher.comm, []
        outs = [check(out, what) for out in outs]
        for out, parts in zip(outs, sources, strict=True):
            parts = check_list(what, "input", parts, out, comm.size)
            sizes = tuple(part.numel() for part in parts)
            if sizes[comm.rank] != out.numel():
                raise UsageError(
                    f"{what}: input {comm.rank} has {sizes[comm.rank]} elements; expected {out.numel()}, as the "
                    "output"
                )
            prepared.append(self._prepare_reduce_scatter(what, out, flat(parts), sizes, op, len(outs) > 1))
        return self._dispatcher.make_all(prepared, call_options_of(opts, timeout), outs)

    def _prepare_reduce_scatter(
        self, what: str, out: Tensor, source: Tensor, sizes: tuple[int, ...], op: Any, apart: bool
    ) -> Prepared:
        asked = reduction(op, out.dtype, self._dispatcher.comm.size, what)
        source = contiguous_input(asked.before(source))
        memory, finish = contiguous_output(out, keep=False, apart=apart or share_memory([out, source]))
        call = Call(
            what, collectives.reduce_scatter, Blocks(sizes, sizes), number_type(out, what), source, memory, asked.op
        )
        return Prepared(call, _after(memory, asked, finish), [out])


def _is_sparse(tensor: Any) -> bool:
    return torch.is_tensor(tensor) and tensor.layout is torch.sparse_coo


def _copying(to: Tensor, source: Tensor) -> Finish:
    return lambda: copy(to, source)


def _after(memory: Tensor, asked: Reduction, finish: Finish | None) -> Finish | None:
    """Return what is to be done with the result of a reduction, and then with what it is in."""
    if asked.divisor == 1:
        return finish

    def both() -> None:
        asked.after(memory)
        if finish is not None:
            finish()

    return both
