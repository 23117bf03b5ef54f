"""The two ends of a language model, split by vocabulary: every rank knows a range of the words.

::

    VocabularyEmbedding                              vocabulary_cross_entropy

    ids ── own ids? ──> own row, else zero           logits of own words ──> max        ── all-reduce (max) ─┐
             │                                                                                               │
             └── all-reduce ──> vectors              sum of exp(logit - max), logit of the target <──────────┘
                                                        └── one all-reduce of both ──> loss = log(sum) - target
    backward: nothing
                                                     backward: nothing; softmax - one-hot of the own words

The logits are never whole anywhere: for 50,000 words and 8 ranks each holds 6,250 of them per position.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (as everybody calls it)
from torch import Tensor, nn
from torch.autograd.function import Function, once_differentiable

from unisono.errors import UsageError
from unisono.parallel.agreement import require_same
from unisono.parallel.functions import all_reduce_then_nothing, reduce_scatter_then_all_gather
from unisono.parallel.group import Group, group_of
from unisono.parallel.split import Split, split_features


class VocabularyEmbedding(nn.Module):
    """An embedding of which every rank has the vectors of some words.

    The whole is what ``nn.Embedding`` makes on one process with the same seed. With ``sequence_parallel`` the
    result is this rank's shard of the sequence, by a reduce-scatter in place of the all-reduce. Its
    ``weight`` may also be that of a ``ColumnLinear`` to as many outputs (tied weights).
    """

    def __init__(
        self, vocabulary: int, features: int, group: Any, *, sequence_parallel: bool = False,
        name: str = "embedding", whole: nn.Embedding | None = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.group = group_of(group)
        self.vocabulary, self.sequence_parallel, self.name = vocabulary, sequence_parallel, name
        self.who = f"VocabularyEmbedding {name}, rank {self.group.rank}"
        self.split = split_features(self.who, "words", self.group, 0, vocabulary)
        self.splits = {"weight": self.split}
        whole = whole or nn.Embedding(vocabulary, features, device=device, dtype=dtype)
        facts = {"vocabulary": vocabulary, "features": features}
        require_same(self.group, f"VocabularyEmbedding {name}", facts, [whole.weight])
        self.weight = nn.Parameter(self.split.cut(whole.weight.detach()), whole.weight.requires_grad)

    @classmethod
    def from_embedding(cls, embedding: nn.Embedding, group: Any, **options: Any) -> VocabularyEmbedding:
        """Split an embedding that all ranks have. Back: ``full_state_dict(module)``."""
        return cls(embedding.num_embeddings, embedding.embedding_dim, group, whole=embedding, **options)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the vectors of the ids, which are the same on every rank."""
        _require_known(self.who, "an id", ids, self.vocabulary)
        own, places = _own(ids, self.split.mine)
        addend = torch.where(own.unsqueeze(-1), F.embedding(places, self.weight), 0)
        name = f"{self.name}.output"
        if not self.sequence_parallel:
            return all_reduce_then_nothing(addend, group=self.group, name=name)
        split = Split(self.group, addend.dim() - 2, addend.shape[-2])
        return reduce_scatter_then_all_gather(addend, split=split, name=name)


def vocabulary_cross_entropy(
    logits: Tensor, targets: Tensor, vocabulary: int, group: Any, *, ignore_index: int = -100,
    reduction: str = "mean", name: str = "loss",
) -> Tensor:  # fmt: skip
    """Return ``torch.nn.functional.cross_entropy`` of logits (..., own words) whose words are split over the group.

    ``targets`` (...) are the same on every rank, and so is the result. Half-precision logits are summed in
    float32.
    """
    group = group_of(group)
    who = f"vocabulary_cross_entropy {name}, rank {group.rank}"
    split = split_features(who, "words", group, 0, vocabulary)
    if logits.shape != (*targets.shape, split.length):
        raise UsageError(
            f"{who}: logits of shape {tuple(logits.shape)}; expected {(*targets.shape, split.length)}: the shape of "
            f"the targets, and this rank's share of {vocabulary} words"
        )
    if reduction not in ("mean", "sum", "none"):
        raise UsageError(f"{who}: reduction={reduction!r}; expected 'mean', 'sum' or 'none'")
    counted = targets != ignore_index
    _require_known(who, "a target", targets[counted], vocabulary)
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
        largest = logits.amax(dim=-1)  # of a position; nothing overflows in exp() of what is at most zero
        group.all_reduce(largest, op="max", name=f"{name}.max", phase="forward")
        exponentials = torch.exp(logits - largest.unsqueeze(-1))
        own, places = _own(targets, mine)
        chosen = logits.gather(-1, places.unsqueeze(-1)).squeeze(-1) - largest
        both = torch.stack([exponentials.sum(dim=-1), torch.where(own, chosen, 0)])
        group.all_reduce(both, name=f"{name}.sum and target", phase="forward")
        total, target = both
        ctx.save_for_backward(exponentials.div_(total.unsqueeze(-1)), places, own, counted)
        return torch.where(counted, total.log() - target, 0)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        softmax, places, own, counted = ctx.saved_tensors
        one_hot = own.to(softmax.dtype).unsqueeze(-1)
        found = softmax.scatter_add(-1, places.unsqueeze(-1), -one_hot)
        found *= torch.where(counted, gradient, 0).unsqueeze(-1)
        return found.to(ctx.dtype), None, None, None, None, None


def _own(words: Tensor, mine: range) -> tuple[Tensor, Tensor]:
    """Return which words are in this rank's range, and where in it (0 for those that are not)."""
    own = (words >= mine.start) & (words < mine.stop)
    return own, torch.where(own, words - mine.start, 0)


def _require_known(who: str, what: str, words: Tensor, vocabulary: int) -> None:
    if words.numel() and (words.min() < 0 or words.max() >= vocabulary):
        wrong = words[(words < 0) | (words >= vocabulary)][0]
        raise UsageError(f"{who}: {what} is {int(wrong)}; expected 0 to {vocabulary - 1}")
