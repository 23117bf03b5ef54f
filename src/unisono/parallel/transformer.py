"""A transformer on several ranks: what tensor parallel is for.

::

    x ─┬─ norm ─ qkv ─ heads ─ out ── all-reduce ──> + ─┬─ norm ─ up ─ gelu ─ down ── all-reduce ──> + ──> x
       └─────────────────────────────────────────────┘  └─────────────────────────────────────────┘
    backward, an all-reduce where the gradient leaves ``up``, and one where it leaves ``qkv``

    per block: 2 all-reduces forward, 2 backward, each of batch * sequence * features numbers
    ends:      embedding 1 forward; head 1 backward; loss 2 small ones forward

With ``sequence_parallel`` each of the large ones is a reduce-scatter and an all-gather, at the two ends of a
norm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from unisono.errors import UsageError
from unisono.parallel.attention import ParallelAttention
from unisono.parallel.functions import nothing_then_all_reduce
from unisono.parallel.group import Group, group_of
from unisono.parallel.random_numbers import SplitDropout
from unisono.parallel.sequence import SequenceLayerNorm
from unisono.parallel.split import Split
from unisono.parallel.tensor import ColumnLinear, RowLinear
from unisono.parallel.vocabulary import VocabularyEmbedding, vocabulary_cross_entropy


class ParallelMLP(nn.Module):
    """A column, something elementwise, a row: one all-reduce forward, one backward."""

    def __init__(
        self, features: int, hidden: int, group: Any, *, activation: Callable[[Tensor], Tensor] | None = None,
        name: str = "mlp", **options: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self.up = ColumnLinear(features, hidden, group, name=f"{name}.up", **options)
        self.activation = activation or nn.GELU()
        self.down = RowLinear(hidden, features, group, name=f"{name}.down", **options)

    def forward(self, x: Tensor, length: int | None = None) -> Tensor:
        """Apply both; ``length`` as for ``ColumnLinear``."""
        return self.down(self.activation(self.up(x, length)))


class ParallelBlock(nn.Module):
    """A block of a transformer, the norms first."""

    def __init__(
        self, features: int, heads: int, group: Any, *, hidden: int | None = None, causal: bool = True,
        dropout: float = 0.0, sequence_parallel: bool = False, name: str = "block", **options: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        group = group_of(group)
        options["sequence_parallel"] = sequence_parallel
        kind: dict[str, Any] = {word: options[word] for word in ("device", "dtype") if word in options}
        self.norm1 = _norm(features, group, sequence_parallel, f"{name}.norm1", kind)
        self.attention = ParallelAttention(
            features, heads, group, causal=causal, dropout=dropout, name=f"{name}.attention", **options
        )
        self.norm2 = _norm(features, group, sequence_parallel, f"{name}.norm2", kind)
        self.mlp = ParallelMLP(features, hidden or 4 * features, group, name=f"{name}.mlp", **options)
        self.dropout = SplitDropout(dropout, group) if sequence_parallel else nn.Dropout(dropout)

    def forward(self, x: Tensor, length: int | None = None) -> Tensor:
        """Attend, then think."""
        x = x + self.dropout(self.attention(self.norm1(x), length))
        return x + self.dropout(self.mlp(self.norm2(x), length))


class ParallelTransformer(nn.Module):
    """A language model, split over the ranks of a group: embedding, positions, blocks, norm, head.

    All ranks get the same ids. It is made alike on every rank, after the same ``torch.manual_seed``.
    """

    def __init__(
        self, vocabulary: int, features: int, heads: int, layers: int, longest: int, group: Any, *,
        dropout: float = 0.0, causal: bool = True, sequence_parallel: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.group, self.vocabulary, self.sequence_parallel = group_of(group), vocabulary, sequence_parallel
        kind = {"device": device, "dtype": dtype}
        options = kind | {"sequence_parallel": sequence_parallel}
        self.embedding = VocabularyEmbedding(vocabulary, features, self.group, **options)
        self.positions = nn.Embedding(longest, features, **kind)
        self.blocks = nn.ModuleList(
            ParallelBlock(
                features, heads, self.group, causal=causal, dropout=dropout, name=f"blocks.{number}", **options
            )
            for number in range(layers)
        )
        self.norm = _norm(features, self.group, sequence_parallel, "norm", kind)
        self.head = ColumnLinear(features, vocabulary, self.group, bias=False, name="head", **options)

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> Tensor:
        """Return the loss; without targets, the logits of this rank's words."""
        length = ids.shape[1]
        if length > self.positions.num_embeddings:
            raise UsageError(f"a sequence of {length}; expected at most {self.positions.num_embeddings}")
        places = self.positions.weight[:length]
        if self.sequence_parallel:  # every rank adds those of its shard: the gradient is a sum over the ranks
            mine = Split(self.group, 0, length).mine
            places = nothing_then_all_reduce(places, group=self.group, name="positions")[mine.start : mine.stop]
        x = self.embedding(ids) + places
        for block in self.blocks:
            x = block(x, length)
        logits = self.head(self.norm(x), length)
        if targets is None:
            return logits
        return vocabulary_cross_entropy(logits, targets, self.vocabulary, self.group)


def _norm(features: int, group: Group, sequence_parallel: bool, name: str, kind: dict[str, Any]) -> nn.LayerNorm:
    if sequence_parallel:
        return SequenceLayerNorm(features, group, name=name, **kind)
    return nn.LayerNorm(features, **kind)
