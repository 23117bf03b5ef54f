"""torch's reductions in terms of ours. Some need preparation of the input or completion of the result."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch.distributed import ReduceOp

from unisono.errors import UsageError
from unisono.message import listed
from unisono.reductions import REDUCTIONS
from unisono.torch_backend import messages

KINDS = ReduceOp.RedOpType
NAMES = {getattr(KINDS, each.torch): each.name for each in REDUCTIONS.values()}  # ours, by torch's
SCALED_SUM = "PREMUL_SUM"  # torch's sum of inputs that are multiplied by a factor first

WITHOUT_DIVISION = (torch.uint16, torch.uint32, torch.uint64)  # in torch


class Reduction(NamedTuple):
    """The reduction of a call."""

    op: str  # our name of it
    factor: Any = None  # by which the input is multiplied first
    divisor: int = 1  # by which the result is divided, towards zero: an average of integers

    def before(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the input of the reduction, of the same type as the user's tensor."""
        return tensor if self.factor is None else (tensor.detach() * self.factor).to(tensor.dtype)

    def after(self, tensor: torch.Tensor) -> None:
        """Complete the result, in place."""
        if self.divisor == 1:
            return
        with torch.inference_mode():  # the tensor may have been made in it
            if tensor.dtype in WITHOUT_DIVISION:
                tensor.copy_(_divided(tensor, self.divisor))
            else:
                tensor.div_(self.divisor, rounding_mode="trunc")


def _divided(tensor: torch.Tensor, divisor: int) -> torch.Tensor:
    """Return the quotients of unsigned numbers, computed with the signed ones that torch can divide."""
    if tensor.dtype is not torch.uint64:
        return torch.div(tensor.to(torch.int64), divisor, rounding_mode="floor").to(tensor.dtype)
    bits = tensor.view(torch.int64)
    half = (bits >> 1) & 0x7FFF_FFFF_FFFF_FFFF  # not negative
    quotient = torch.div(half, divisor, rounding_mode="floor") * 2
    remainder = bits - quotient * divisor  # below 2 * divisor, though products and numbers wrap around
    return (quotient + (remainder >= divisor)).view(torch.uint64)


def reduction(op: Any, dtype: torch.dtype, size: int, name_of_call: str) -> Reduction:
    """Return the reduction of one of torch's; raise UsageError if there is none."""
    kind = getattr(op, "op", op)
    if kind == getattr(KINDS, SCALED_SUM):
        return Reduction("sum", factor=op.__getstate__()[1])
    name = NAMES.get(kind)
    if name is None:
        names = listed([*(each.torch for each in REDUCTIONS.values()), SCALED_SUM])
        raise UsageError(messages.NO_SUCH_OP(call=name_of_call, op=op, names=names))
    if name == "avg" and not (dtype.is_floating_point or dtype.is_complex):
        if dtype is torch.bool:
            raise UsageError(messages.AVERAGE_OF_BOOLEANS(call=name_of_call))
        return Reduction("sum", divisor=size)
    return Reduction(name)


# By the hash of torch's ReduceOp, which is computed from its kind alone. A scaled sum is not among them.
PLAIN = {hash(ReduceOp(kind)): name for kind, name in NAMES.items()}


def plain_name(op: Any) -> str | None:
    """Return our name of a reduction that is stated by its kind alone; None for any other."""
    return PLAIN.get(hash(op))
