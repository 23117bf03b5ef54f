from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from worlds import run_groups  # noqa: E402

from unisono.errors import UsageError  # noqa: E402
from unisono.parallel import mesh, record  # noqa: E402


def along(group, **sizes):
    """Return the members of this rank's group on each axis."""
    grid = mesh(group, **sizes)
    members = {}
    with record() as log:
        for axis in grid.sizes:
            found = torch.zeros(grid[axis].size)
            grid[axis].all_gather(found, torch.tensor([float(group.rank)]), name="ranks", phase="start")
            members[axis] = [int(rank) for rank in found]
            assert grid[axis] is getattr(grid, axis)
            assert members[axis][grid.coordinates[axis]] == group.rank
    return members, grid.coordinates, [entry.axis for entry in log], repr(grid)


def two_axes(group):
    return along(group, dp=2, tp=3)


@pytest.mark.parametrize("kind", ["comm", "gloo"])
def test_every_axis_has_a_group_and_the_last_axis_joins_consecutive_ranks(kind):
    for rank, (members, coordinates, axes, text) in enumerate(run_groups(two_axes, 6, kind=kind)):
        row, column = divmod(rank, 3)
        assert members == {"dp": [column, 3 + column], "tp": [3 * row, 3 * row + 1, 3 * row + 2]}
        assert coordinates == {"dp": row, "tp": column}
        assert axes == ["dp", "tp"]
        assert text == f"<Mesh: dp {row} of 2, tp {column} of 3>"


def four_axes(group):
    return along(group, pp=1, dp=2, cp=1, tp=-1)


def test_a_mesh_has_any_number_of_axes_and_the_size_of_one_is_inferred():
    for rank, (members, coordinates, _, _) in enumerate(run_groups(four_axes, 4)):
        assert members["pp"] == members["cp"] == [rank]
        assert members["tp"] == [rank // 2 * 2, rank // 2 * 2 + 1]
        assert coordinates == {"pp": 0, "dp": rank // 2, "cp": 0, "tp": rank % 2}


def reject(group):
    said = []
    for sizes in (
        {"dp": 2, "tp": 2}, {"dp": -1, "tp": 2}, {"dp": -1, "tp": -1}, {"dp": 0}, {"dp": "3"}, {"sizes": 3}, {},
    ):  # fmt: skip
        with pytest.raises(UsageError) as caught:
            mesh(group, **sizes)
        said.append(str(caught.value))
    grid = mesh(group, dp=3)
    with pytest.raises(UsageError, match="no axis 'tp'; expected one of dp"):
        _ = grid["tp"]
    with pytest.raises(AttributeError, match="no axis 'tp'; expected one of dp"):
        _ = grid.tp
    return said


def test_invalid_axis_sizes_are_rejected():
    expected = [
        "dp=2 × tp=2 needs 4 ranks, the group has 3",
        "dp=-1 × tp=2 needs a multiple of 2 ranks, the group has 3",
        "dp, tp are -1; expected at most one",
        "dp=0; expected a number of ranks",
        "dp='3'; expected a number of ranks",
        "an axis cannot be called 'sizes'",
        "no axes; expected at least one",
    ]
    for said in run_groups(reject, 3):
        for each, words in zip(said, expected, strict=True):
            assert words in each


def part_of_a_part(group):
    halves = group.split(group.rank // 3)
    if group.rank < 3:  # the other half makes no mesh and takes part in no call
        inner = mesh(halves, tp=3)
        x = torch.ones(1)
        inner.tp.all_reduce(x, name="x", phase="forward")
        return x.item()
    return None


@pytest.mark.parametrize("kind", ["comm", "gloo", "unisono"])
def test_a_subset_of_the_ranks_can_have_its_own_mesh(kind):
    assert run_groups(part_of_a_part, 6, kind=kind) == [3.0] * 3 + [None] * 3
