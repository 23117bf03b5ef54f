"""Tensor parallel linear layers: each rank holds a part of the matrix.

::

    ColumnLinear: every rank computes some of the outputs      RowLinear: every rank sums over some of the inputs

          x (whole)                                               x0 | x1 (parts)
      ┌─────┴─────┐       backward: all-reduce                     │    │
    W0·x        W1·x      of the gradient of x                   W0·x0  W1·x1 (addends)
      │           │                                                └─┬──┘   forward: all-reduce
     y0     |    y1  (parts)                                       sum + b (whole)

A column layer, an elementwise function and a row layer form an MLP with one all-reduce in each direction (see
transformer.py). The names are Megatron's, whose matrices are transposed: a "column" is a row of torch's ``weight``.

With ``sequence_parallel``, the wholes at both ends are split along the sequence, and the all-reduces become::

    ColumnLinear   forward: all-gather of x        backward: reduce-scatter of its gradient
    RowLinear      forward: reduce-scatter of y    backward: all-gather of its gradient

which moves the same number of bytes, and everything between two such pairs (norms, dropout, the residual) has 1/size
of the rows.
"""

from __future__ import annotations

from typing import Any, Self

import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn

from unisono.errors import UsageError
from unisono.parallel.agreement import require_same
from unisono.parallel.functions import (
    all_gather_then_reduce_scatter,
    all_gather_then_split,
    all_reduce_then_nothing,
    nothing_then_all_reduce,
    reduce_scatter_then_all_gather,
    split_then_all_gather,
)
from unisono.parallel.group import Group, group_of
from unisono.parallel.layer_messages import (
    INPUTS,
    OUTPUTS,
    UNEVEN_BLOCKS,
    UNITS_OF,
    WRONG_INPUT_SHARE,
    WRONG_INPUT_WIDTH,
    WRONG_SEQUENCE_SHARD,
)
from unisono.parallel.split import Split, split_features


class _SplitLinear(nn.Module):
    """The common part of both layers: their parameters are cut from those of an ``nn.Linear``."""

    def _describe(self, in_features: int, out_features: int, group: Any, sequence_parallel: bool, name: str) -> None:
        self.in_features, self.out_features, self.group = in_features, out_features, group_of(group)
        self.sequence_parallel, self.name = sequence_parallel, name
        self.location = f"{type(self).__name__} {name}, rank {self.group.rank}"

    @classmethod
    def from_linear(cls, linear: nn.Linear, group: Any, **options: Any) -> Self:
        """Split a layer that is the same on all ranks; ``full_state_dict(module)`` is the reverse.

        ``linear``: the layer. ``group``: the ranks. ``options``: the other arguments of the class.
        """
        return cls(linear.in_features, linear.out_features, group, whole=linear, **options)

    def _split(self, what: str, dim: int, features: int, unit: int, blocks: int = 1) -> Split:
        units, odd = divmod(features, blocks * unit)
        if odd:
            parts = {"features": features, "what": what, "multiple": blocks * unit, "blocks": blocks, "unit": unit}
            raise UsageError(UNEVEN_BLOCKS(location=self.location, **parts))
        what = what if unit == 1 else UNITS_OF(unit=unit, what=what)
        return split_features(self.location, what, self.group, dim, units, unit=unit, blocks=blocks)

    def _take(self, whole: nn.Linear, splits: dict[str, Split]) -> None:
        settings = {
            "in_features": whole.in_features,
            "out_features": whole.out_features,
            "bias": whole.bias is not None,
        }
        require_same(self.group, f"{type(self).__name__} {self.name}", settings, [whole.weight, whole.bias])
        self.splits = splits  # full_state_dict() reads it
        for name in ("weight", "bias"):
            tensor = getattr(whole, name)
            if tensor is not None:
                part = splits[name].cut(tensor.detach()) if name in splits else tensor.detach().clone()
                tensor = nn.Parameter(part, requires_grad=tensor.requires_grad)
            self.register_parameter(name, tensor)

    def _require_width(self, x: Tensor, expected: int) -> None:
        if x.shape[-1] != expected:
            sizes = {"location": self.location, "found": x.shape[-1], "expected": expected, "whole": self.in_features}
            template = WRONG_INPUT_WIDTH if expected == self.in_features else WRONG_INPUT_SHARE
            raise UsageError(template(**sizes))

    def extra_repr(self) -> str:
        """Return the sizes of this rank's part, for ``repr``."""
        rows, columns = self.weight.shape
        return f"{columns} of {self.in_features} inputs, {rows} of {self.out_features} outputs"


class ColumnLinear(_SplitLinear):
    """A linear layer of which every rank computes some of the outputs.

    The whole layer is the ``nn.Linear`` that one process creates with the same seed.

    ``in_features``, ``out_features``, ``bias``, ``device``, ``dtype``: as in ``nn.Linear``, of the whole layer.
    ``group``: the ranks that share the layer.
    ``gather_output``: return all outputs (one more all-gather in the forward pass).
    ``sequence_parallel``: the input is this rank's shard of the sequence.
    ``blocks``: the number of blocks of outputs, each of which is split (3 for queries, keys and values).
    ``unit``: the number of outputs that stay together on a rank (the width of a head).
    ``name``: its name in the log of ``record()``.
    ``whole``: an ``nn.Linear``, the same on all ranks, to take the weights from.
    """

    def __init__(
        self, in_features: int, out_features: int, group: Any, *, bias: bool = True, gather_output: bool = False,
        sequence_parallel: bool = False, blocks: int = 1, unit: int = 1, name: str = "column",
        whole: nn.Linear | None = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._describe(in_features, out_features, group, sequence_parallel, name)
        self.gather_output = gather_output
        self.split = self._split(OUTPUTS(), 0, out_features, unit, blocks)
        whole = whole or nn.Linear(in_features, out_features, bias, device, dtype)
        self._take(whole, {"weight": self.split, "bias": self.split})

    def forward(self, x: Tensor, length: int | None = None) -> Tensor:
        """Return this rank's outputs.

        ``x``: the input, (..., in_features).
        ``length``: with ``sequence_parallel``, the length of the whole sequence, if it is not a multiple of the
        ranks.
        """
        self._require_width(x, self.in_features)
        if self.sequence_parallel:
            split = sequence_split(self.group, x, length, self.location)
            x = all_gather_then_reduce_scatter(x, split=split, name=f"{self.name}.input")
        else:
            x = nothing_then_all_reduce(x, group=self.group, name=f"{self.name}.input")
        y = F.linear(x, self.weight, self.bias)
        if not self.gather_output:
            return y
        return all_gather_then_split(y, split=self.split.along(y.dim() - 1), name=f"{self.name}.output")


class RowLinear(_SplitLinear):
    """A linear layer of which every rank has some of the inputs, and computes one addend of the outputs.

    The whole layer is the ``nn.Linear`` that one process creates with the same seed.

    ``in_features``, ``out_features``, ``bias``, ``device``, ``dtype``: as in ``nn.Linear``, of the whole layer.
    ``group``: the ranks that share the layer.
    ``input_is_split``: False if the input is whole; it is then split here (one more all-gather in the backward pass).
    ``sequence_parallel``: the output is this rank's shard of the sequence.
    ``unit``: the number of inputs that stay together on a rank (the width of a head).
    ``name``: its name in the log of ``record()``.
    ``whole``: an ``nn.Linear``, the same on all ranks, to take the weights from.
    """

    def __init__(
        self, in_features: int, out_features: int, group: Any, *, bias: bool = True, input_is_split: bool = True,
        sequence_parallel: bool = False, unit: int = 1, name: str = "row", whole: nn.Linear | None = None,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._describe(in_features, out_features, group, sequence_parallel, name)
        self.input_is_split = input_is_split
        self.split = self._split(INPUTS(), 1, in_features, unit)
        whole = whole or nn.Linear(in_features, out_features, bias, device, dtype)
        self._take(whole, {"weight": self.split})  # the bias is added to the sum, so every rank holds the whole bias

    def forward(self, x: Tensor) -> Tensor:
        """Return all outputs; with ``sequence_parallel``, those of this rank's shard of the sequence.

        ``x``: this rank's part of the input or, without ``input_is_split``, the whole input.
        """
        self._require_width(x, self.split.length if self.input_is_split else self.in_features)
        if not self.input_is_split:
            x = split_then_all_gather(x, split=self.split.along(x.dim() - 1), name=f"{self.name}.input")
        addend, bias, name = F.linear(x, self.weight), self.bias, f"{self.name}.output"
        if self.sequence_parallel:
            split = Split(self.group, addend.dim() - 2, addend.shape[-2])
            y = reduce_scatter_then_all_gather(addend, split=split, name=name)
            if bias is not None:  # each rank adds it to different rows: the gradients are addends
                bias = nothing_then_all_reduce(bias, group=self.group, name=f"{self.name}.bias")
        else:
            y = all_reduce_then_nothing(addend, group=self.group, name=name)
        return y if bias is None else y + bias.to(y.dtype)  # they differ under autocast


def sequence_split(group: Group, shard: Tensor, length: int | None, location: str) -> Split:
    """Return the split of a sequence, the last dimension but one, from this rank's shard of it."""
    found = shard.shape[-2]
    split = Split(group, shard.dim() - 2, found * group.size if length is None else length)
    if split.length != found:
        sizes = {"found": found, "expected": split.length, "length": length, "size": group.size}
        raise UsageError(WRONG_SEQUENCE_SHARD(location=location, **sizes))
    return split
