from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from worlds import KINDS, run_groups  # noqa: E402

from unisono.parallel import Split  # noqa: E402


def parts(group, length, unit, blocks, dim):
    whole = torch.arange(2.0 * length).view(2, length)
    whole = whole if dim == 1 else whole.t().contiguous()
    split = Split(group, dim, length // unit // blocks, unit=unit, blocks=blocks)
    part = split.cut(whole)
    joined = split.gather(part, name="part", phase="forward")
    mine = split.sum_and_scatter(whole * (group.rank + 1), name="whole", phase="backward")
    ranks = group.size * (group.size + 1) // 2
    assert torch.equal(joined, whole)
    assert torch.equal(mine, part * ranks)
    assert part.is_contiguous()
    assert joined.is_contiguous()
    assert mine.is_contiguous()
    return (part if dim == 1 else part.t())[0].tolist()


@pytest.mark.parametrize(("kind", "dim"), [*((kind, 0) for kind in KINDS), ("comm", 1)])
def test_shares_differ_by_at_most_one(kind, dim):
    assert run_groups(parts, 3, 10, 1, 1, dim, kind=kind) == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]


def test_a_rank_has_its_share_of_every_block_and_units_stay_together():
    found = run_groups(parts, 2, 12, 2, 2, 0)
    assert found == [[0, 1, 2, 3, 6, 7, 8, 9], [4, 5, 10, 11]]


def test_a_dimension_shorter_than_the_group_leaves_some_ranks_with_empty_parts():
    assert run_groups(parts, 5, 3, 1, 1, 1) == [[0], [1], [2], [], []]
