"""Tensors that hold the same values in unusual memory layouts, for comparisons with plain tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

GAP = 77  # in memory between the elements, where a call must not write


class Made(NamedTuple):
    """A tensor, and all the memory that it is part of."""

    tensor: torch.Tensor
    base: torch.Tensor


class Subclass(torch.Tensor):
    pass


def _filled(shape: Any, like: torch.Tensor) -> torch.Tensor:
    return torch.full(shape, GAP, dtype=torch.float64).to(like.dtype)


def _in(base: torch.Tensor, view: torch.Tensor, values: torch.Tensor) -> Made:
    view.copy_(values)
    return Made(view, base)


def plain(values: torch.Tensor) -> Made:
    made = values.clone(memory_format=torch.contiguous_format)
    return Made(made, made)


def behind_others(values: torch.Tensor) -> Made:
    base = _filled((values.numel() + 5,), values)
    return _in(base, base[3 : 3 + values.numel()].view(values.shape), values)


def every_second(values: torch.Tensor) -> Made:
    base = _filled((*values.shape, 2), values)
    return _in(base, base[..., 1], values)


def transposed(values: torch.Tensor) -> Made:
    base = _filled(tuple(reversed(values.shape)), values)
    return _in(base, base.permute(*range(values.dim() - 1, -1, -1)), values)


def columns(values: torch.Tensor) -> Made:
    base = _filled((values.numel(), 3), values)
    return _in(base, base[:, 1].as_strided(values.shape, [3 * step for step in values.stride()], 1), values)


def interleaved(values: torch.Tensor) -> Made:
    """Return a view whose strides suggest overlaps, though none exist: 2 x 3 elements with strides 3 and 2."""
    if values.shape[-2:] != (2, 3):
        return every_second(values)
    base = _filled((values.numel() // 6, 8), values)
    shape, strides = values.shape, [*(8 * step // 6 for step in values.stride()[:-2]), 3, 2]
    return _in(base, base.as_strided(shape, strides), values)


def negative_bit(values: torch.Tensor) -> Made:
    base = (-values).contiguous()
    return Made(torch._neg_view(base), base)


def imaginary_part(values: torch.Tensor) -> Made:
    base = torch.complex(torch.full(values.shape, float(GAP), dtype=values.dtype), -values)
    return Made(base.conj().imag, base)


def conjugate_bit(values: torch.Tensor) -> Made:
    base = values.conj().resolve_conj()
    return Made(base.conj(), base)


def both_bits_with_gaps(values: torch.Tensor) -> Made:
    base = _filled((*values.shape, 2), values)
    return _in(base, torch._neg_view(base[..., 0].conj()), values)


def parameter(values: torch.Tensor) -> Made:
    made = torch.nn.Parameter(values.clone(), requires_grad=values.is_floating_point() or values.is_complex())
    return Made(made, made)


def computed(values: torch.Tensor) -> Made:
    made = torch.nn.Parameter(values.clone()) * 1
    return Made(made, made)


def made_in_inference_mode(values: torch.Tensor) -> Made:
    with torch.inference_mode():
        return plain(values)


def every_second_in_inference_mode(values: torch.Tensor) -> Made:
    with torch.inference_mode():
        return every_second(values)


def subclass(values: torch.Tensor) -> Made:
    base = values.clone()
    return Made(base.as_subclass(Subclass), base)


def shared(values: torch.Tensor) -> Made:
    made = values.clone().share_memory_()
    return Made(made, made)


def unaligned(values: torch.Tensor) -> Made:
    memory = bytearray(values.nbytes + 1) or bytearray(1)
    if not values.numel():
        return plain(values)
    flat = torch.frombuffer(memory, dtype=values.dtype, offset=1, count=values.numel())
    return _in(flat, flat.view(values.shape), values)


def lazily_cloned(values: torch.Tensor) -> Made:
    made = torch._lazy_clone(values.clone())
    return Made(made, made)


# Kinds that every call accepts as input and as output.
ANY = (
    plain, behind_others, every_second, transposed, columns, interleaved, subclass, shared, unaligned, lazily_cloned,
    made_in_inference_mode, every_second_in_inference_mode, parameter,
)  # fmt: skip
SIGNED = (negative_bit,)
REAL = (imaginary_part, computed)
COMPLEX = (conjugate_bit, both_bits_with_gaps, computed)


def kinds_for(dtype: torch.dtype) -> tuple[Callable[[torch.Tensor], Made], ...]:
    """Return the kinds that a tensor of this type can have."""
    if dtype.is_complex:
        return ANY + ((*SIGNED, *COMPLEX) if dtype is not torch.complex32 else ())
    if dtype in (torch.float32, torch.float64):
        return ANY + SIGNED + REAL
    return ANY + (SIGNED if dtype in (torch.int32, torch.int64, torch.bfloat16, torch.float16) else ())


# Kinds that a call can read, but not write.
def expanded(count: int) -> torch.Tensor:
    return torch.ones(1).expand(count)


def overlapping(count: int) -> torch.Tensor:
    assert count % 2 == 0
    return torch.arange(float(count)).as_strided((count // 2, 2), (1, 1))


# Kinds that no call accepts.
def freed(count: int) -> torch.Tensor:
    made = torch.ones(count)
    made.untyped_storage().resize_(0)
    return made


def freed_behind_others(count: int) -> torch.Tensor:
    made = torch.ones(count + 2)[2:]
    made.untyped_storage().resize_(0)
    return made


def shrunk(count: int) -> torch.Tensor:
    made = torch.ones(count)
    made.untyped_storage().resize_(4)
    return made


def quantized(count: int) -> torch.Tensor:
    return torch.quantize_per_tensor(torch.ones(count), 0.5, 1, torch.quint8)


def meta(count: int) -> torch.Tensor:
    return torch.ones(count, device="meta")


def mkldnn(count: int) -> torch.Tensor:
    return torch.ones(count).to_mkldnn()


def compressed_rows(count: int) -> torch.Tensor:
    return torch.eye(count).to_sparse_csr()


def nested(count: int) -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(count - 1), torch.ones(1)])


def jagged(count: int) -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(count - 1), torch.ones(1)], layout=torch.jagged)


def fake(count: int) -> torch.Tensor:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(count)


def masked(count: int) -> torch.Tensor:
    from torch.masked import masked_tensor

    return masked_tensor(torch.ones(count), torch.ones(count, dtype=torch.bool))


class Wrapper(torch.Tensor):
    """A tensor without memory that represents another one, like DTensor."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Wrapper:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.ops.aten.detach.default:
            return args[0]
        raise NotImplementedError(function)


def wrapper(count: int) -> torch.Tensor:
    return Wrapper(torch.ones(count))


def batched(count: int) -> torch.Tensor:
    return torch._C._functorch._add_batch_dim(torch.ones(3, count), 0, 1)


def zero_tensor(count: int) -> torch.Tensor:
    return torch._efficientzerotensor(count)


ONLY_READ = (expanded, overlapping)
REFUSED = (
    freed, freed_behind_others, shrunk, quantized, meta, mkldnn, compressed_rows, nested, jagged, fake, masked,
    wrapper, batched, zero_tensor,
)  # fmt: skip
