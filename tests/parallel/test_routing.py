from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from worlds import run_groups  # noqa: E402

from unisono.parallel.routing import assign_experts, balance_loss, choose, expert_counts  # noqa: E402


def two_ranks(group, factor):
    """Assign the three rows of rank 0 and the two rows of rank 1, with two choices each, to three experts."""
    choices = [torch.tensor([[0, 1], [0, 1], [1, 0]]), torch.tensor([[0, 2], [1, 0]])]
    everything = torch.stack([expert_counts(each, 3) for each in choices])
    assignments = [assign_experts(each, everything, rank, factor) for rank, each in enumerate(choices)]
    sent = [list(zip(each.rows.tolist(), each.choices.tolist(), strict=True)) for each in assignments]
    return sent, assignments[0].sent.tolist(), assignments[0].load.tolist(), assignments[0].total


def test_without_a_capacity_limit_rows_are_sorted_by_expert():
    [(sent, counts, load, total)] = run_groups(two_ranks, 1, None)
    assert sent[0] == [(0, 0), (1, 0), (2, 1), (2, 0), (0, 1), (1, 1)]  # rows and choices for expert 0, then 1
    assert sent[1] == [(0, 0), (1, 1), (1, 0), (0, 1)]
    assert counts == [[3, 2], [3, 1], [0, 1]]
    assert (load, total) == ([5, 4, 1], 5)


def test_limited_capacity_is_given_to_first_choices_then_to_lower_ranks():
    # The capacity is ceil(0.9 * 2 * 5 / 3) = 3 rows. Expert 0: three first choices fill it. Expert 1: two first
    # choices, then the second choice of rank 0's row 0, but not that of row 1.
    [(sent, counts, load, _)] = run_groups(two_ranks, 1, 0.9)
    assert sent[0] == [(0, 0), (1, 0), (2, 0), (0, 1)]
    assert sent[1] == [(0, 0), (1, 0), (0, 1)]
    assert counts == [[2, 1], [2, 1], [0, 1]]
    assert load == [5, 4, 1]


def losses(group):
    even, one = torch.full((4, 4), 0.25), torch.eye(4)[[2, 2, 2, 2]]
    _, experts, weights = choose(torch.tensor([[1.0, 3.0, 2.0]]), 2)
    _, _, single = choose(torch.tensor([[1.0, 3.0, 2.0]]), 1)
    return (
        float(balance_loss(even, torch.tensor([2, 2, 2, 2]), 4, 2)),
        float(balance_loss(one, torch.tensor([0, 0, 4, 0]), 4, 1)),
        float(balance_loss(even[:0], torch.tensor([0, 0, 0, 0]), 0, 1)),
        experts.tolist(), float(weights.sum()), float(single),
    )  # fmt: skip


def test_the_balance_loss_is_1_if_balanced_and_the_number_of_experts_if_one_gets_all_rows():
    [(balanced, alone, nothing, *_)] = run_groups(losses, 1)
    assert balanced == pytest.approx(1)
    assert alone == pytest.approx(4)
    assert nothing == 0


def test_weights_of_several_choices_sum_to_1_and_the_weight_of_one_choice_is_its_probability():
    [(*_, experts, total, single)] = run_groups(losses, 1)
    assert experts == [[1, 2]]
    assert total == pytest.approx(1)
    assert single == pytest.approx(0.6652, abs=1e-3)
