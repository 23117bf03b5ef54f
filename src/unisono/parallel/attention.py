"""Attention by heads: every rank has some of the heads.

::

    x (whole) ──> qkv: ColumnLinear ──> own heads ──> attention ──> out: RowLinear ──> y (whole)
                  backward: all-reduce                              forward: all-reduce

Heads do not know of each other until ``out`` adds them up, so between the two layers nothing is communicated.
Heads that do not divide by the ranks are shared out unequally (4 heads on 3 ranks: 2, 1, 1).
"""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F  # noqa: N812 (as everybody calls it)
from torch import Tensor, nn

from unisono.errors import UsageError
from unisono.parallel.group import group_of
from unisono.parallel.random_numbers import own_random_numbers
from unisono.parallel.tensor import ColumnLinear, RowLinear


class ParallelAttention(nn.Module):
    """Self-attention of (batch, sequence, features), split by heads.

    ``dropout``: of the attention weights; every rank draws its own numbers. With ``sequence_parallel``, input
    and output are this rank's shard of the sequence.
    """

    def __init__(
        self, features: int, heads: int, group: Any, *, causal: bool = False, bias: bool = True, dropout:
        float = 0.0, sequence_parallel: bool = False, name: str = "attention", device: Any = None, dtype: Any
        = None, whole: tuple[nn.Linear, nn.Linear] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if features % heads:
            raise UsageError(f"ParallelAttention {name}: {features} features; expected a multiple of {heads} heads")
        self.group, self.width = group_of(group), features // heads
        if heads < self.group.size:
            raise UsageError(
                f"ParallelAttention {name}: {heads} heads on {self.group.size} ranks; expected at least one for "
                f"every rank: use a group of at most {heads} ranks"
            )
        self.causal, self.dropout = causal, dropout
        qkv, out = whole or (None, None)
        options = {"bias": bias, "sequence_parallel": sequence_parallel, "device": device, "dtype": dtype}
        options["unit"] = self.width
        self.qkv = ColumnLinear(features, 3 * features, group, blocks=3, name=f"{name}.qkv", whole=qkv, **options)
        self.out = RowLinear(features, features, group, name=f"{name}.out", whole=out, **options)

    @classmethod
    def from_attention(cls, attention: nn.MultiheadAttention, group: Any, **options: Any) -> ParallelAttention:
        """Split torch's attention, which all ranks have; its dropout is taken over."""
        if not attention.batch_first or attention.in_proj_weight is None or attention.bias_k is not None:
            raise UsageError(
                "ParallelAttention.from_attention: expected nn.MultiheadAttention with batch_first=True, keys and "
                "values as wide as queries, and no add_bias_kv"
            )
        features, bias = attention.embed_dim, attention.in_proj_bias is not None
        qkv = nn.Linear(features, 3 * features, bias, device="meta")
        qkv.weight, qkv.bias = attention.in_proj_weight, attention.in_proj_bias
        return cls(
            features, attention.num_heads, group, bias=bias, dropout=attention.dropout,
            whole=(qkv, attention.out_proj), **options,
        )  # fmt: skip

    def forward(self, x: Tensor, length: int | None = None) -> Tensor:
        """Attend. ``length``: of the whole sequence, as for ``ColumnLinear``."""
        # (batch, sequence, 3 * own heads * width) -> 3 of (batch, own heads, sequence, width)
        q, k, v = self.qkv(x, length).unflatten(-1, (3, -1, self.width)).movedim(2, 0).transpose(2, 3)
        if self.training and self.dropout:
            with own_random_numbers(self.group, x.device):
                heads = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=self.causal)
        else:
            heads = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(heads.transpose(1, 2).flatten(2))
