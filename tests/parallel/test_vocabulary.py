from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from worlds import KINDS, run_groups  # noqa: E402

from unisono.errors import UsageError  # noqa: E402
from unisono.parallel import (  # noqa: E402
    ColumnLinear,
    Split,
    VocabularyEmbedding,
    full_state_dict,
    record,
    vocabulary_cross_entropy,
)

WORDS, WIDTH = 11, 4


def entries(log):
    return [(entry.collective, entry.name, entry.bytes, entry.phase) for entry in log]


def embed(group):
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(2)
    whole = nn.Embedding(WORDS, WIDTH)
    torch.manual_seed(2)
    embedding = VocabularyEmbedding(WORDS, WIDTH, group)
    ids = torch.randint(WORDS, (3, 5))
    gradient = torch.randn(3, 5, WIDTH)
    with record() as log:
        found = embedding(ids)
        found.backward(gradient)
    whole(ids).backward(gradient)
    assert torch.equal(found, whole(ids))
    assert torch.equal(full_state_dict(embedding)["weight"], whole.weight)
    assert torch.equal(embedding.weight.grad, embedding.split.cut(whole.weight.grad))
    again = VocabularyEmbedding.from_embedding(whole, group)
    assert torch.equal(again.weight, embedding.weight)
    return entries(log)


@pytest.mark.parametrize("kind", KINDS)
def test_an_embedding_communicates_forward_only(kind):
    expected = [("all_reduce", "embedding.output", 3 * 5 * WIDTH * 8, "forward")]
    assert run_groups(embed, 3, kind=kind) == [expected] * 3


def cross_entropy(group, dtype, limit):
    """Compare with torch for every reduction, with ignored targets, and with logits that overflow in exp()."""
    torch.manual_seed(0)
    split, logs = Split(group, 2, WORDS), []
    everything = torch.randn(3, 5, WORDS, dtype=dtype) * 5
    everything[0, 0] += 900.0
    everything[0, 1] -= 900.0
    targets = torch.randint(WORDS, (3, 5))
    targets[1, :3] = -100
    for reduction in ("none", "sum", "mean"):
        whole = everything.clone().requires_grad_()
        own = split.cut(everything).requires_grad_()
        with record() as log:
            found = vocabulary_cross_entropy(own, targets, WORDS, group, reduction=reduction)
            (found * 2).sum().backward()
        logs.append(entries(log))
        expected = functional.cross_entropy(
            whole.float().flatten(0, 1) if dtype is torch.bfloat16 else whole.flatten(0, 1), targets.flatten(),
            reduction=reduction,
        ).view(found.shape)  # fmt: skip
        (expected * 2).sum().backward()
        assert found.dtype == expected.dtype
        assert torch.allclose(found, expected, rtol=limit, atol=limit)
        assert own.grad.dtype == dtype
        assert torch.allclose(own.grad, split.cut(whole.grad), rtol=limit, atol=limit)
    return logs[-1]


@pytest.mark.parametrize(("dtype", "limit"), [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 1e-2)])
def test_cross_entropy_of_split_logits_matches_torch_and_communicates_forward_only(dtype, limit):
    number = 8 if dtype is torch.float64 else 4
    expected = [
        ("all_reduce", "loss.max", 15 * number, "forward"),
        ("all_reduce", "loss.sum and target", 2 * 15 * number, "forward"),
    ]
    assert run_groups(cross_entropy, 3, dtype, limit) == [expected] * 3


@pytest.mark.parametrize("kind", KINDS[1:])
def test_cross_entropy_runs_on_torch_process_groups(kind):
    run_groups(cross_entropy, 3, torch.float64, 1e-12, kind=kind)


def by_gradcheck(group):
    torch.set_default_dtype(torch.float64)
    logits, targets = torch.randn(3, 4, requires_grad=True), torch.tensor([0, 5, 11])

    def loss(logits):  # every rank perturbs its word i at the same time, so sum over all ranks
        return vocabulary_cross_entropy(logits, targets, 12, group, reduction="none") * weight

    weight = torch.tensor([1.0, 2.0, 0.0])
    logits.grad = None
    loss(logits).sum().backward()
    summed = logits.grad.clone()
    group.all_reduce(summed, name="sum over ranks", phase="backward")
    slope = (loss(logits + 1e-6 * torch.ones(4)).sum() - loss(logits).sum()) / 1e-6
    moved = torch.zeros(3, 4)
    moved[:, 1] = 1e-6
    one = (loss(logits + moved).sum() - loss(logits - moved).sum()) / 2e-6
    return abs(slope.item()), abs(one.item() - summed[:, 1].sum().item())


def test_the_gradient_matches_finite_differences():
    for shifted, difference in run_groups(by_gradcheck, 3):
        assert shifted < 1e-8  # the loss is invariant to a constant that is added to all logits
        assert difference < 1e-8


def tied(group):
    """Train an embedding that is also the head, both split and whole."""
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    embedding = VocabularyEmbedding(WORDS, WIDTH, group)
    head = ColumnLinear(WIDTH, WORDS, group, bias=False)
    head.weight = embedding.weight
    whole = nn.Parameter(full_state_dict(embedding)["weight"])
    ids, targets = torch.arange(WORDS), torch.arange(WORDS).roll(1)
    for _ in range(5):
        loss = vocabulary_cross_entropy(head(torch.tanh(embedding(ids))), targets, WORDS, group)
        expected = functional.cross_entropy(torch.tanh(whole[ids]) @ whole.t(), targets)
        assert abs(loss.item() - expected.item()) < 1e-12
        for parameter, its_loss in ((embedding.weight, loss), (whole, expected)):
            parameter.grad = None
            its_loss.backward()
            with torch.no_grad():
                parameter -= parameter.grad
    return float((full_state_dict(embedding)["weight"] - whole).abs().max())


def test_the_embedding_can_also_be_the_head():
    assert all(difference < 1e-12 for difference in run_groups(tied, 3))


def errors(group):
    texts = []
    embedding, targets = VocabularyEmbedding(WORDS, WIDTH, group), torch.tensor([1, 2])
    own = Split(group, 0, WORDS).length
    for wrong in (
        lambda: VocabularyEmbedding(2, WIDTH, group),
        lambda: embedding(torch.tensor([0, WORDS])),
        lambda: vocabulary_cross_entropy(torch.zeros(2, own), torch.tensor([-1, 0]), WORDS, group),
        lambda: vocabulary_cross_entropy(torch.zeros(2, own + 1), targets, WORDS, group),
        lambda: vocabulary_cross_entropy(torch.zeros(2, own), targets, WORDS, group, reduction="median"),
    ):
        with pytest.raises(UsageError) as caught:
            wrong()
        texts.append(str(caught.value))
    return texts


def test_invalid_arguments_are_rejected_before_anything_is_communicated():
    few, word, target, wide, reduction = run_groups(errors, 3)[2]
    assert "VocabularyEmbedding embedding, rank 2: 2 words on 3 ranks" in few
    assert "an id is 11; expected 0 to 10" in word
    assert "a target is -1; expected 0 to 10" in target
    assert "logits of shape (2, 4); expected (2, 3)" in wide
    assert "reduction='median'; expected 'mean', 'sum' or 'none'" in reduction
