from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.utils.checkpoint import checkpoint  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.parallel import ParallelBlock, Split, SplitDropout, own_random_numbers  # noqa: E402


def draw(group):
    torch.manual_seed(7)
    before = torch.rand(3).tolist()
    with own_random_numbers(group, "cpu"):
        own = torch.rand(10 * (group.rank + 1)).tolist()  # a different amount on every rank
    with own_random_numbers(group, "cpu"):
        other = torch.rand(10).tolist()
    return before, own, other, torch.rand(3).tolist()


def test_ranks_draw_different_numbers_inside_the_block_and_equal_ones_outside():
    found = run_groups(draw, 3)
    befores, owns, others, afters = zip(*found, strict=True)
    assert befores[0] == befores[1] == befores[2]
    assert afters[0] == afters[1] == afters[2]
    assert len({tuple(numbers[:10]) for numbers in owns + others}) == 6
    assert run_groups(draw, 3) == found  # reproducibly


def dropped(group):
    torch.manual_seed(7)
    dropout = SplitDropout(0.5, group)
    x = torch.ones(64)
    noisy = dropout(x)
    dropout.eval()
    return noisy.tolist(), torch.equal(dropout(x), x), torch.rand(1).item()


def test_dropout_of_split_tensors_differs_between_ranks():
    found = run_groups(dropped, 3)
    assert len({tuple(noisy) for noisy, *_ in found}) == 3
    assert all(set(noisy) == {0.0, 2.0} and quiet for noisy, quiet, _ in found)
    assert len({after for *_, after in found}) == 1


def block_with_dropout(group, sequence_parallel):
    """Run a block twice from the same seed, once with activations that are recomputed in the backward pass."""
    torch.manual_seed(7)
    block = ParallelBlock(6, 3, group, dropout=0.3, sequence_parallel=sequence_parallel)
    x = torch.randn(2, 6, 6)
    mine = Split(group, 1, 6).cut(x) if sequence_parallel else x
    outputs, gradients = [], []
    for again in (False, True):
        torch.manual_seed(8)
        block.zero_grad()
        own = mine.clone().requires_grad_()
        y = checkpoint(block, own, use_reentrant=False) if again else block(own)
        y.square().sum().backward()
        outputs.append(y.tolist())
        gradients.append([own.grad, *(parameter.grad for parameter in block.parameters())])
    same = all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))
    return outputs[0], outputs[0] == outputs[1], same, torch.rand(1).item()


@pytest.mark.parametrize("sequence_parallel", [False, True])
def test_a_block_with_dropout_gives_equal_results_on_all_ranks_and_can_be_checkpointed(sequence_parallel):
    found = run_groups(block_with_dropout, 3, sequence_parallel)
    assert all(same_output and same_gradients for _, same_output, same_gradients, _ in found)
    assert len({after for *_, after in found}) == 1
    outputs = [output for output, *_ in found]
    assert all((output == outputs[0]) is not sequence_parallel for output in outputs[1:])
