"""Tensor parallel attention: every rank computes some of the heads.

::

    x (whole) ──> qkv: ColumnLinear ──> own heads ──> attention ──> out: RowLinear ──> y (whole)
                  backward: all-reduce                              forward: all-reduce

Heads are independent until ``out`` sums them, so nothing is communicated between the two layers. If the number of
heads is not a multiple of the ranks, the shares differ (4 heads on 3 ranks: 2, 1, 1).
"""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn

from unisono.errors import UsageError
from unisono.parallel.group import group_of
from unisono.parallel.layer_messages import HEADS, TOO_FEW_UNITS, UNEVEN_HEADS, UNSUPPORTED_ATTENTION
from unisono.parallel.random_numbers import own_random_numbers
from unisono.parallel.tensor import ColumnLinear, RowLinear


class ParallelAttention(nn.Module):
    """Self-attention of (batch, sequence, features), split by heads.

    ``features``, ``heads``: of the whole layer; ``features`` is a multiple of ``heads``.
    ``group``: the ranks that share the layer.
    ``causal``: each position attends to earlier positions only.
    ``bias``, ``device``, ``dtype``: as in ``nn.Linear``.
    ``dropout``: the probability of dropping an attention weight; every rank draws different random numbers.
    ``sequence_parallel``: input and output are this rank's shard of the sequence.
    ``name``: its name in the log of ``record()``.
    ``whole``: the linear layers qkv and out, the same on all ranks, to take the weights from.
    """

    def __init__(
        self, features: int, heads: int, group: Any, *, causal: bool = False, bias: bool = True, dropout:
        float = 0.0, sequence_parallel: bool = False, name: str = "attention", device: Any = None, dtype: Any
        = None, whole: tuple[nn.Linear, nn.Linear] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if features % heads:
            raise UsageError(UNEVEN_HEADS(location=f"ParallelAttention {name}", features=features, heads=heads))
        self.group, self.width = group_of(group), features // heads
        if heads < self.group.size:
            parts = {"count": heads, "what": HEADS(), "size": self.group.size}
            raise UsageError(TOO_FEW_UNITS(location=f"ParallelAttention {name}", **parts))
        self.causal, self.dropout = causal, dropout
        qkv, out = whole or (None, None)
        options = {"bias": bias, "sequence_parallel": sequence_parallel, "device": device, "dtype": dtype}
        options["unit"] = self.width
        self.qkv = ColumnLinear(features, 3 * features, group, blocks=3, name=f"{name}.qkv", whole=qkv, **options)
        self.out = RowLinear(features, features, group, name=f"{name}.out", whole=out, **options)

    @classmethod
    def from_attention(cls, attention: nn.MultiheadAttention, group: Any, **options: Any) -> ParallelAttention:
        """Split torch's attention, which is the same on all ranks, dropout included.

        ``attention``: the layer. ``group``: the ranks. ``options``: the other arguments of the class.
        """
        if not attention.batch_first or attention.in_proj_weight is None or attention.bias_k is not None:
            raise UsageError(UNSUPPORTED_ATTENTION())
        features, bias = attention.embed_dim, attention.in_proj_bias is not None
        qkv = nn.Linear(features, 3 * features, bias, device="meta")
        qkv.weight, qkv.bias = attention.in_proj_weight, attention.in_proj_bias
        return cls(
            features, attention.num_heads, group, bias=bias, dropout=attention.dropout,
            whole=(qkv, attention.out_proj), **options,
        )  # fmt: skip

    def forward(self, x: Tensor, length: int | None = None) -> Tensor:
        """Return the attention of ``x``, (batch, sequence, features).

        ``length``: of the whole sequence, as in ``ColumnLinear``.
        """
        # (batch, sequence, 3 * own heads * width) -> 3 of (batch, own heads, sequence, width)
        q, k, v = self.qkv(x, length).unflatten(-1, (3, -1, self.width)).movedim(2, 0).transpose(2, 3)
        if self.training and self.dropout:
            with own_random_numbers(self.group, x.device):
                heads = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=self.causal)
        else:
            heads = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(heads.transpose(1, 2).flatten(2))
