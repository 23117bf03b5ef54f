"""Twenty steps on several ranks match twenty steps in one process."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from whole_models import WholeAttention, WholeMLP, WholeTransformer, train_both  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.parallel import ParallelAttention, ParallelMLP, ParallelTransformer, Split, all_reduce_then_nothing  # noqa: E402

# Sums are made in a different order, and rounding errors accumulate over 20 steps. Measured: 3e-15 with float64,
# 2e-6 with float32.
LIMITS = {torch.float64: 1e-10, torch.float32: 1e-5}
CASES = [(1, torch.float64), (2, torch.float64), (3, torch.float64), (3, torch.float32)]
CASES += [pytest.param(4, torch.float64, marks=pytest.mark.long)]


def mlp(group, dtype, sequence_parallel):
    """Learn to reverse the order of elements, with 10 hidden units (4, 3, 3 on three ranks)."""
    x = [torch.randn(3, 7, 6, generator=torch.Generator().manual_seed(step), dtype=dtype) for step in range(20)]
    target = [each.flip(-1) for each in x]

    def loss_of(model, step):
        return (model(x[step]) - target[step]).square().sum(-1).mean()

    def loss_of_shards(model, step):
        mine, positions = slice_of(group, 7), 3 * 7
        y = model(x[step][:, mine], 7)
        addend = (y - target[step][:, mine]).square().sum() / positions
        return all_reduce_then_nothing(addend, group=group, name="loss")

    return train_both(
        lambda: ParallelMLP(6, 10, group, sequence_parallel=sequence_parallel), lambda: WholeMLP(6, 10), loss_of,
        dtype, loss_of_shards if sequence_parallel else None,
    )  # fmt: skip


def attention(group, dtype, causal):
    x = [torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(step), dtype=dtype) for step in range(20)]

    def loss_of(model, step):
        return (model(x[step]) - x[step].flip(-1)).square().mean()

    return train_both(
        lambda: ParallelAttention(12, 4, group, causal=causal), lambda: WholeAttention(12, 4, causal), loss_of, dtype
    )


def transformer(group, dtype, sequence_parallel, causal=True):
    """Learn a text in which every word determines the next; 13 words and 7 positions are not divisible."""
    sizes = (13, 12, 4, 2, 8)
    starts = [torch.randint(13, (4, 1), generator=torch.Generator().manual_seed(step)) for step in range(20)]
    texts = [(start + 5 * torch.arange(8)) % 13 for start in starts]

    def loss_of(model, step):
        targets = texts[step][:, 1:].clone()
        targets[0, 0] = -100  # ignored by the loss
        return model(texts[step][:, :-1], targets)

    return train_both(
        lambda: ParallelTransformer(*sizes, group, sequence_parallel=sequence_parallel, causal=causal),
        lambda: WholeTransformer(*sizes, causal), loss_of, dtype,
    )  # fmt: skip


def slice_of(group, length):
    mine = Split(group, 0, length).mine
    return slice(mine.start, mine.stop)


def check(found, dtype):
    for first, last, losses in found:
        assert first == 0
        assert last < LIMITS[dtype]
        assert losses < LIMITS[dtype]


@pytest.mark.parametrize("sequence_parallel", [False, True])
@pytest.mark.parametrize(("size", "dtype"), CASES)
def test_an_mlp_trains_like_one_process(size, dtype, sequence_parallel):
    check(run_groups(mlp, size, dtype, sequence_parallel), dtype)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("size", "dtype"), CASES)
def test_attention_trains_like_one_process(size, dtype, causal):
    check(run_groups(attention, size, dtype, causal), dtype)


@pytest.mark.parametrize("sequence_parallel", [False, True])
@pytest.mark.parametrize(("size", "dtype"), CASES)
def test_a_transformer_trains_like_one_process(size, dtype, sequence_parallel):
    check(run_groups(transformer, size, dtype, sequence_parallel), dtype)


@pytest.mark.parametrize(
    ("kind", "sequence_parallel"),
    [("unisono", True), pytest.param("gloo", True, marks=pytest.mark.long), ("gloo", False)],
)
def test_a_transformer_trains_like_one_process_on_torch_process_groups(kind, sequence_parallel):
    check(run_groups(transformer, 3, torch.float64, sequence_parallel, False, kind=kind), torch.float64)
