"""A tensor parallel transformer.

::

    x ─┬─ norm ─ qkv ─ heads ─ out ── all-reduce ──> + ─┬─ norm ─ up ─ gelu ─ down ── all-reduce ──> + ──> x
       └─────────────────────────────────────────────┘  └─────────────────────────────────────────┘
    backward: an all-reduce of the gradient of the input of ``up``, and one of that of ``qkv``

    per block: 2 all-reduces forward, 2 backward, each of batch * sequence * features numbers
    ends:      embedding 1 forward; head 1 backward; loss 2 small ones forward

With ``sequence_parallel`` each of the large ones becomes a reduce-scatter and an all-gather, before and after a norm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from unisono.errors import UsageError
from unisono.parallel.attention import ParallelAttention
from unisono.parallel.functions import nothing_then_all_reduce
from unisono.parallel.group import Group, group_of
from unisono.parallel.layer_messages import SEQUENCE_TOO_LONG
from unisono.parallel.random_numbers import SplitDropout
from unisono.parallel.sequence import SequenceLayerNorm
from unisono.parallel.split import Split
from unisono.parallel.tensor import ColumnLinear, RowLinear
from unisono.parallel.vocabulary import VocabularyEmbedding, vocabulary_cross_entropy


class ParallelMLP(nn.Module):
    """A column layer, an elementwise function and a row layer: one all-reduce in each direction.

    ``features``, ``hidden``: the outer and the inner width.
    ``group``: the ranks that share the layers.
    ``activation``: the elementwise function (default: GELU).
    ``name``: its name in the log of ``record()``.
    ``options``: further arguments of both layers.
    """

    def __init__(
        self, features: int, hidden: int, group: Any, *, activation: Callable[[Tensor], Tensor] | None = None,
        name: str = "mlp", **options: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self.up = ColumnLinear(features, hidden, group, name=f"{name}.up", **options)
        self.activation = activation or nn.GELU()
        self.down = RowLinear(hidden, features, group, name=f"{name}.down", **options)

    def forward(self, x: Tensor, length: int | None = None) -> Tensor:
        """Apply both layers to ``x``; ``length`` as in ``ColumnLinear``."""
        return self.down(self.activation(self.up(x, length)))


class ParallelBlock(nn.Module):
    """A block of a transformer, with the norms before attention and MLP.

    ``features``, ``heads``, ``group``, ``causal``, ``sequence_parallel``: as in ``ParallelAttention``.
    ``hidden``: the inner width of the MLP (default: 4 * ``features``).
    ``dropout``: the probability of dropping an attention weight, or an output of attention and MLP.
    ``name``: its name in the log of ``record()``.
    ``options``: further arguments of all layers (``bias``, ``device``, ``dtype``).
    """

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
        """Apply attention, then the MLP, to ``x``; ``length`` as in ``ColumnLinear``."""
        x = x + self.dropout(self.attention(self.norm1(x), length))
        return x + self.dropout(self.mlp(self.norm2(x), length))


class ParallelTransformer(nn.Module):
    """A language model, split over the ranks of a group: embedding, positions, blocks, norm, head.

    All ranks pass the same ids. Create it on every rank after the same ``torch.manual_seed``.

    ``vocabulary``: the number of words.
    ``features``, ``heads``, ``layers``: the width, the number of attention heads and of blocks.
    ``longest``: the longest sequence, in positions.
    ``group``: the ranks that share the model.
    ``dropout``, ``causal``, ``sequence_parallel``, ``device``, ``dtype``: as in ``ParallelBlock``.
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
        """Return the loss of ``targets`` for the words ``ids``; without targets, the logits of this rank's words."""
        length = ids.shape[1]
        if length > self.positions.num_embeddings:
            raise UsageError(SEQUENCE_TOO_LONG(found=length, longest=self.positions.num_embeddings))
        positions = self.positions.weight[:length]
        if self.sequence_parallel:  # each rank adds those of its shard: the gradient is a sum over the ranks
            mine = Split(self.group, 0, length).mine
            positions = nothing_then_all_reduce(positions, group=self.group, name="positions")[mine.start : mine.stop]
        x = self.embedding(ids) + positions
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
