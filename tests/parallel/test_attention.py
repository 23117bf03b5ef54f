from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from worlds import KINDS, run_groups  # noqa: E402

from unisono.errors import UsageError  # noqa: E402
from unisono.parallel import ParallelAttention, full_state_dict, record  # noqa: E402

BATCH, LENGTH, WIDTH = 2, 5, 12


def like_torch(group, bias):
    """Compare with nn.MultiheadAttention: outputs, and gradients of the input and of all weights."""
    torch.set_default_dtype(torch.float64)
    whole = nn.MultiheadAttention(WIDTH, 4, bias=bias, batch_first=True)
    attention = ParallelAttention.from_attention(whole, group)
    x = torch.randn(BATCH, LENGTH, WIDTH, requires_grad=True)
    own = x.detach().clone().requires_grad_()
    with record() as log:
        y = attention(own)
        y.square().sum().backward()
    expected, _ = whole(x, x, x, need_weights=False)
    expected.square().sum().backward()
    full = full_state_dict(attention)
    assert torch.equal(full["qkv.weight"], whole.in_proj_weight)
    cut = attention.qkv.split.cut(whole.in_proj_weight.grad)
    for found, wanted in ((y, expected), (own.grad, x.grad), (attention.qkv.weight.grad, cut)):
        assert torch.allclose(found, wanted, rtol=0, atol=1e-12)
    return [(entry.collective, entry.name, entry.bytes, entry.phase) for entry in log], attention.qkv.weight.shape


@pytest.mark.parametrize(("kind", "bias"), [*((kind, True) for kind in KINDS), ("comm", False)])
def test_attention_split_by_heads_matches_torch_with_one_all_reduce_per_direction(kind, bias):
    size = BATCH * LENGTH * WIDTH * 8
    found = run_groups(like_torch, 3, bias, kind=kind)
    assert [shape for _, shape in found] == [(3 * 6, WIDTH), (3 * 3, WIDTH), (3 * 3, WIDTH)]  # 2, 1 and 1 heads
    expected = [
        ("all_reduce", "attention.out.output", size, "forward"),
        ("all_reduce", "gradient of attention.qkv.input", size, "backward"),
    ]
    assert [log for log, _ in found] == [expected] * 3


def with_dropout(group):
    torch.manual_seed(0)
    attention = ParallelAttention(WIDTH, 4, group, dropout=0.5)
    x = torch.randn(1, LENGTH, WIDTH)
    noisy, again = attention(x), attention(x)
    in_step = torch.rand(4).tolist()
    attention.eval()
    return noisy.tolist(), torch.equal(noisy, again), in_step, torch.equal(attention(x), attention(x))


def test_dropout_in_split_heads_leaves_results_and_random_numbers_equal_on_all_ranks():
    found = run_groups(with_dropout, 3)  # ranks with two heads draw more than those with one
    assert all(each == found[0] for each in found)
    assert found[0][1] is False
    assert found[0][3] is True


def rejected(group):
    texts = []
    for features, heads in ((12, 2), (12, 5)):
        with pytest.raises(UsageError) as caught:
            ParallelAttention(features, heads, group)
        texts.append(str(caught.value))
    with pytest.raises(UsageError, match="batch_first=True"):
        ParallelAttention.from_attention(nn.MultiheadAttention(12, 3), group)
    return texts


def test_indivisible_heads_are_rejected():
    for few, odd in run_groups(rejected, 3):
        assert "2 heads on 3 ranks; expected at least one for every rank" in few
        assert "12 features; expected a multiple of 5 heads" in odd
