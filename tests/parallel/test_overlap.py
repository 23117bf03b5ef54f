from __future__ import annotations

import time

import pytest

torch = pytest.importorskip("torch")

from models import batch, loss_of, make, share  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.errors import UsageError  # noqa: E402
from unisono.parallel import DataParallel, Log, SyncBatchNorm, measure_overlap, mesh, record, replay  # noqa: E402


def overlap(group):
    model = DataParallel(SyncBatchNorm.convert(make("conv"), group), group)
    inputs, targets = (share(part, group.rank, group.size) for part in batch("conv", 0))
    found = measure_overlap(lambda: loss_of(model, inputs, targets).backward(), group, steps=3)
    assert found.exposed_part == found.exposed_s / found.alone_s
    return found


def test_exposed_time_and_isolated_time_are_measured():
    ranks = run_groups(overlap, 2)
    for found in ranks:
        assert 0 < found.exposed_s < found.step_s
        assert found.waited_s < found.step_s
        assert found.alone_s > 0
    assert ranks[0].exposed_s == ranks[1].exposed_s


def with_a_late_rank(group):
    def step():
        if group.rank == 1:
            time.sleep(0.05)  # stands for computation
        group.all_reduce(torch.ones(4), name="x", phase="backward")

    return measure_overlap(step, group, steps=3)


def test_waiting_for_a_late_rank_is_not_exposed_communication():
    punctual, late = run_groups(with_a_late_rank, 2)
    assert punctual.waited_s > 0.04
    assert late.waited_s < 0.04
    assert punctual.exposed_s == late.exposed_s < 0.04


def play_again(group):
    grid = mesh(group, dp=3)
    rows = [1, 2, 3]
    with record() as log:
        words = {"name": "x", "phase": "forward"}
        grid.dp.all_reduce(torch.ones(6, dtype=torch.bfloat16), **words)
        grid.dp.all_gather(torch.empty(6), torch.ones(2), **words)
        grid.dp.reduce_scatter(torch.empty(2), torch.ones(6), **words)
        grid.dp.broadcast(torch.ones(5, dtype=torch.int64), **words)
        out, given = torch.empty(3 * rows[group.rank], 2), torch.ones(6, 2)
        grid.dp.all_to_all(out, given, out_rows=[rows[group.rank]] * 3, in_rows=rows, **words)
    with record() as again:
        seconds = replay(log, grid.dp, times=1)
    assert seconds > 0
    with pytest.raises(UsageError, match=r"all_reduce of 'x' ran on 3 ranks of axis 'dp'; expected their group"):
        replay(log, group)
    assert replay(Log(), group) == 0
    return [[(e.collective, e.dtype, e.bytes) for e in each if e.name == "x"] for each in (log, again)]


def test_a_replay_makes_the_collectives_of_a_log_with_the_same_types_and_bytes():
    for first, again in run_groups(play_again, 3):
        assert again[::2] == first
        assert again[1::2] == first
        assert [kind for kind, _, _ in first] == [
            "all_reduce",
            "all_gather",
            "reduce_scatter",
            "broadcast",
            "all_to_all",
        ]
        assert [dtype for _, dtype, _ in first] == ["bfloat16", "float32", "float32", "int64", "float32"]
