"""The two ends of a language model, split by vocabulary: every rank holds a range of the words.

::

    VocabularyEmbedding                              vocabulary_cross_entropy

    ids ── own id? ──> its row, else zeros           logits of own words ──> max        ── all-reduce (max) ─┐
             │                                                                                               │
             └── all-reduce ──> vectors              sum of exp(logit - max), logit of the target <──────────┘
                                                        └── one all-reduce of both ──> loss = log(sum) - target
    backward: nothing
                                                     backward: nothing; softmax - one-hot of the own words

No rank ever holds all logits: with 50,000 words and 8 ranks, each holds 6,250 of them per position.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn
from torch.autograd.function import Function, once_differentiable

from unisono.errors import UsageError
from unisono.message import Template
from unisono.parallel.agreement import require_same
from unisono.parallel.functions import all_reduce_then_nothing, reduce_scatter_then_all_gather
from unisono.parallel.group import Group, group_of
from unisono.parallel.layer_messages import UNKNOWN_ID, UNKNOWN_TARGET, WORDS, WRONG_LOGITS, WRONG_REDUCTION
from unisono.parallel.split import Split, split_features


class VocabularyEmbedding(nn.Module):
    """An embedding of which every rank holds the vectors of some words.

    The whole embedding is the ``nn.Embedding`` that one process creates with the same seed. ``weight`` may be shared
    with a ``ColumnLinear`` of as many outputs (tied weights).

    ``vocabulary``, ``features``: the number of words and the width of their vectors.
    ``group``: the ranks that share the embedding.
    ``sequence_parallel``: return this rank's shard of the sequence, by a reduce-scatter instead of the all-reduce.
    ``name``: its name in the log of ``record()``.
    ``whole``: an ``nn.Embedding``, the same on all ranks, to take the weights from.
    ``device``, ``dtype``: as in ``nn.Embedding``.
    """

    def __init__(
        self, vocabulary: int, features: int, group: Any, *, sequence_parallel: bool = False,
        name: str = "embedding", whole: nn.Embedding | None = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.group = group_of(group)
        self.vocabulary, self.sequence_parallel, self.name = vocabulary, sequence_parallel, name
        self.location = f"VocabularyEmbedding {name}, rank {self.group.rank}"
        self.split = split_features(self.location, WORDS(), self.group, 0, vocabulary)
        self.splits = {"weight": self.split}
        whole = whole or nn.Embedding(vocabulary, features, device=device, dtype=dtype)
        settings = {"vocabulary": vocabulary, "features": features}
        require_same(self.group, f"VocabularyEmbedding {name}", settings, [whole.weight])
        self.weight = nn.Parameter(self.split.cut(whole.weight.detach()), whole.weight.requires_grad)

    @classmethod
    def from_embedding(cls, embedding: nn.Embedding, group: Any, **options: Any) -> VocabularyEmbedding:
        """Split an embedding that is the same on all ranks; ``full_state_dict(module)`` is the reverse.

        ``embedding``: the layer. ``group``: the ranks. ``options``: the other arguments of the class.
        """
        return cls(embedding.num_embeddings, embedding.embedding_dim, group, whole=embedding, **options)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the vectors of ``ids``, which are the same on all ranks."""
        _require_known(UNKNOWN_ID, self.location, ids, self.vocabulary)
        own, rows = _own(ids, self.split.mine)
        addend = torch.where(own.unsqueeze(-1), F.embedding(rows, self.weight), 0)
        name = f"{self.name}.output"
        if not self.sequence_parallel:
            return all_reduce_then_nothing(addend, group=self.group, name=name)
        split = Split(self.group, addend.dim() - 2, addend.shape[-2])
        return reduce_scatter_then_all_gather(addend, split=split, name=name)


def vocabulary_cross_entropy(
    logits: Tensor, targets: Tensor, vocabulary: int, group: Any, *, ignore_index: int = -100,
    reduction: str = "mean", name: str = "loss",
) -> Tensor:  # fmt: skip
    """Return ``torch.nn.functional.cross_entropy`` of logits whose words are split over a group.

    ``logits``: (..., own words), this rank's part. Half-precision logits are summed in float32.
    ``targets``: (...), the same on every rank.
    ``vocabulary``: the number of words of all ranks.
    ``group``: the ranks that share the vocabulary.
    ``ignore_index``, ``reduction``: as in torch ("mean", "sum" or "none").
    ``name``: its name in the log of ``record()``.

    The result is the same on every rank.
    """
    group = group_of(group)
    location = f"vocabulary_cross_entropy {name}, rank {group.rank}"
    split = split_features(location, WORDS(), group, 0, vocabulary)
    if logits.shape != (*targets.shape, split.length):
        shapes = {"found": tuple(logits.shape), "expected": (*targets.shape, split.length)}
        raise UsageError(WRONG_LOGITS(location=location, vocabulary=vocabulary, **shapes))
    if reduction not in ("mean", "sum", "none"):
        raise UsageError(WRONG_REDUCTION(location=location, reduction=reduction))
    counted = targets != ignore_index
    _require_known(UNKNOWN_TARGET, location, targets[counted], vocabulary)
    losses = _CrossEntropy.apply(logits.flatten(0, -2), targets.flatten(), counted.flatten(), split.mine, group, name)
    if reduction == "none":
        return losses.view(targets.shape)
    return losses.sum() / counted.sum() if reduction == "mean" else losses.sum()


class _CrossEntropy(Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, targets: Tensor, counted: Tensor, mine: range, group: Group, name: str
    ) -> Tensor:
        ctx.dtype = logits.dtype
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        largest = logits.amax(dim=-1)  # per position; exp() of a number that is at most zero does not overflow
        group.all_reduce(largest, op="max", name=f"{name}.max", phase="forward")
        exponentials = torch.exp(logits - largest.unsqueeze(-1))
        own, rows = _own(targets, mine)
        chosen = logits.gather(-1, rows.unsqueeze(-1)).squeeze(-1) - largest
        both = torch.stack([exponentials.sum(dim=-1), torch.where(own, chosen, 0)])
        group.all_reduce(both, name=f"{name}.sum and target", phase="forward")
        total, target = both
        ctx.save_for_backward(exponentials.div_(total.unsqueeze(-1)), rows, own, counted)
        return torch.where(counted, total.log() - target, 0)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        softmax, rows, own, counted = ctx.saved_tensors
        one_hot = own.to(softmax.dtype).unsqueeze(-1)
        result = softmax.scatter_add(-1, rows.unsqueeze(-1), -one_hot)
        result *= torch.where(counted, gradient, 0).unsqueeze(-1)
        return result.to(ctx.dtype), None, None, None, None, None


def _own(words: Tensor, mine: range) -> tuple[Tensor, Tensor]:
    """Return a mask of the words in this rank's range, and their rows in it (0 for the others)."""
    own = (words >= mine.start) & (words < mine.stop)
    return own, torch.where(own, words - mine.start, 0)


def _require_known(template: Template, location: str, words: Tensor, vocabulary: int) -> None:
    if words.numel() and (words.min() < 0 or words.max() >= vocabulary):
        wrong = words[(words < 0) | (words >= vocabulary)][0]
        raise UsageError(template(location=location, found=int(wrong), last=vocabulary - 1))
