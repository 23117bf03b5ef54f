"""The collectives that add: all_reduce, reduce, reduce_scatter."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from unisono import _engine, collectives
from unisono.errors import UnisonoError, UsageError
from unisono.torch_backend import several, sparse
from unisono.torch_backend.caller import Blocks
from unisono.torch_backend.futures import running_callback
from unisono.torch_backend.making import FINISHED, Call, Maker, Wish, wish_of
from unisono.torch_backend.other_devices import also_elsewhere
from unisono.torch_backend.private import profiler_enabled
from unisono.torch_backend.profiling import in_profile
from unisono.torch_backend.reductions import Reduction, is_plain, reduction
from unisono.torch_backend.tensors import (
    Finish,
    Tensor,
    as_list,
    check,
    check_list,
    check_whole,
    contiguous_output,
    copy,
    flat,
    number_type,
    overlap,
)
from unisono.torch_backend.torch_errors import as_torchs, raises_torchs


class Reducing:
    """The part of a process group that adds."""

    _maker: Maker
    _quick: dict[Any, _engine.Plan]  # plans of all-reduces that need nothing before or after

    def allreduce(
        self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, op: Any = None
    ) -> dist.Work:
        """Replace every tensor by its sum (or product, ...) over all ranks."""
        tensors = as_list(tensors)
        if tensors and not tensors[0].is_cpu:
            return self.backend_of(tensors[0].device).allreduce(tensors, opts)  # type: ignore[attr-defined]
        if len(tensors) == 1 and isinstance(opts, dist.AllreduceOptions) and not opts.asyncOp:
            # The short way of the call that everybody makes most.
            tensor, maker = tensors[0], self._maker
            plan = self._quick.get((tensor.numel(), tensor.dtype, hash(opts.reduceOp)))
            if (
                plan is not None and tensor.is_contiguous() and not tensor.is_sparse and running_callback() is None
                and maker.coalescing is None and not profiler_enabled() and not maker.closed
            ):  # fmt: skip
                maker.calls += 1
                place = tensor.data_ptr()
                limit_s = wish_of(opts).limit_s
                try:
                    maker.endpoint.run(plan, place, place, maker.timeout_s if limit_s is None else limit_s)
                except UnisonoError as error:
                    raise as_torchs(error)  # noqa: B904 (it is the same error)
                return FINISHED
        if op is None:
            op = getattr(opts, "reduceOp", opts if opts is not None else dist.ReduceOp.SUM)
        wish = wish_of(opts, timeout)
        if len(tensors) == 1:
            return self._all_reduce(tensors[0], op, wish)
        with in_profile("all_reduce", tensors):
            return several.all_reduce(self, tensors, op, wish)

    @also_elsewhere
    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> dist.Work:
        """Do an all-reduce of every tensor."""
        op, wish = getattr(opts, "reduceOp", dist.ReduceOp.SUM), wish_of(opts)
        with in_profile("all_reduce", tensors):
            return self._maker.together([self._all_reduce(tensor, op, wish) for tensor in tensors], tensors)

    @raises_torchs
    def _all_reduce(self, tensor: Any, op: Any, wish: Wish) -> dist.Work:
        if torch.is_tensor(tensor) and tensor.layout is torch.sparse_coo:
            return sparse.all_reduce(self, tensor, op)
        tensor = check(tensor, "all_reduce")
        asked = reduction(op, tensor.dtype, self._maker.comm.size, "all_reduce")
        memory, finish = contiguous_output(tensor, keep=True)
        if asked.factor is not None:
            memory, finish = asked.before(memory).contiguous(), None
            finish = _copying(tensor, memory)
        finish = _after(memory, asked, finish)
        call = self._in_place(collectives.all_reduce, memory, asked.op, None)
        if finish is None and is_plain(op) and asked.factor is None and asked.divisor == 1:
            key = (tensor.numel(), tensor.dtype, hash(op))
            self._quick[key] = self._maker.main.plan(call.collective, call.blocks, call.dtype, call.op)
        return self._maker.make(call, wish, finish, [tensor])

    @also_elsewhere
    def reduce(self, tensors: Any, opts: Any = None, op: Any = None, timeout: timedelta | None = None) -> dist.Work:
        """Replace the root's tensor by the sum over all ranks; those of the others stay as they are."""
        tensors = as_list(tensors)
        root = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
        op = op if op is not None else getattr(opts, "reduceOp", dist.ReduceOp.SUM)
        wish = wish_of(opts, timeout)
        return self._maker.together([self._reduce(tensor, op, root, wish) for tensor in tensors], tensors)

    def _reduce(self, tensor: Any, op: Any, root: int, wish: Wish) -> dist.Work:
        tensor = check(tensor, "reduce")
        asked = reduction(op, tensor.dtype, self._maker.comm.size, "reduce")
        is_root = root == self._maker.comm.rank
        memory, finish = contiguous_output(tensor, keep=True)
        if asked.factor is not None:
            memory = asked.before(memory).contiguous()
            finish = _copying(tensor, memory)
        call = self._in_place(collectives.reduce, memory, asked.op, root)
        return self._maker.make(call, wish, _after(memory, asked, finish) if is_root else None, [tensor])

    def _in_place(self, collective: Any, memory: Tensor, op: str, root: int | None) -> Call:
        blocks = Blocks((memory.numel(),), (memory.numel(),))
        name = number_type(memory, collective.name)
        return Call(collective.name, collective, blocks, name, memory, memory, op, root)

    @also_elsewhere
    def _reduce_scatter_base(self, out: Any, source: Any, opts: Any = None) -> dist.Work:
        """Sum over all ranks; every rank gets its part."""
        what, size = "reduce_scatter_tensor", self._maker.comm.size
        out, source = check(out, what), check(source, what)
        check_whole(what, ("input", "output"), source, out, size)
        op = getattr(opts, "reduceOp", dist.ReduceOp.SUM)
        return self._reduce_scatter(what, out, source, (out.numel(),) * size, op, wish_of(opts))

    reduce_scatter_single = _reduce_scatter_base

    @also_elsewhere
    def reduce_scatter(
        self, outs: Any, sources: Any, opts: Any = None, timeout: timedelta | None = None
    ) -> dist.Work:
        """Sum lists of tensors over all ranks; every rank gets the one of its place."""
        if torch.is_tensor(outs):
            outs, sources = [outs], [sources]
        op = getattr(opts, "reduceOp", opts if opts is not None else dist.ReduceOp.SUM)
        what, comm, works = "reduce_scatter", self._maker.comm, []
        for out, parts in zip(outs, sources, strict=True):
            parts = check_list(what, "input", parts, check(out, what), comm.size)
            sizes = tuple(part.numel() for part in parts)
            if sizes[comm.rank] != out.numel():
                raise UsageError(
                    f"{what}: input {comm.rank} has {sizes[comm.rank]} elements; expected {out.numel()}, as the "
                    "output"
                )
            works.append(self._reduce_scatter(what, out, flat(parts), sizes, op, wish_of(opts, timeout)))
        return self._maker.together(works, outs)

    @also_elsewhere
    def reduce_scatter_tensor_coalesced(self, outs: Any, sources: Any, opts: Any = None) -> dist.Work:
        """Do a reduce-scatter of every pair."""
        works = [self._reduce_scatter_base(out, source, opts) for out, source in zip(outs, sources, strict=True)]
        return self._maker.together(works, outs)

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def _reduce_scatter(
        self, what: str, out: Tensor, source: Tensor, sizes: tuple[int, ...], op: Any, wish: Wish
    ) -> dist.Work:
        asked = reduction(op, out.dtype, self._maker.comm.size, what)
        memory, finish = contiguous_output(out, keep=False)
        source = asked.before(source).contiguous()
        if overlap(memory, source):
            memory = torch.empty_like(memory)
            finish = _copying(out, memory)
        call = Call(
            what, collectives.reduce_scatter, Blocks(sizes, sizes), number_type(out, what), source, memory, asked.op
        )
        return self._maker.make(call, wish, _after(memory, asked, finish), [out])


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
