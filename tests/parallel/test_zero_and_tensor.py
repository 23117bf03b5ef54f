"""Zero over one axis of a mesh and tensor parallelism over the other match one process."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from models import furthest  # noqa: E402
from whole_models import WholeTransformer, train  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.parallel import ParallelTransformer, Zero, full_state_dict, mesh, record  # noqa: E402

SIZES = (13, 12, 4, 2, 7)  # words, features, heads, layers, longest text


def texts(step):
    return torch.randint(SIZES[0], (6, SIZES[-1] + 1), generator=torch.Generator().manual_seed(step))


def loss_of(model, rows):
    return model(rows[:, :-1], rows[:, 1:])


def on_a_mesh(group, dp, tp, stage):
    torch.set_default_dtype(torch.float64)
    grid = mesh(group, dp=dp, tp=tp)
    torch.manual_seed(0)
    zero = Zero(
        ParallelTransformer(*SIZES, grid.tp), grid.dp, stage=stage,
        optimizer=lambda shards: torch.optim.SGD(shards, 0.1, momentum=0.9, weight_decay=1e-3),
    )  # fmt: skip
    for step in range(20):
        with record() as log:
            zero.zero_grad()
            loss_of(zero, texts(step).chunk(dp)[grid.dp.rank]).backward()
            zero.step()
    with zero.whole_parameters():
        found = full_state_dict(zero.module)
    torch.manual_seed(0)
    alone = WholeTransformer(*SIZES)
    train(alone, lambda model, step: loss_of(model, texts(step)))
    axes = {(entry.collective, entry.axis) for entry in log}
    return furthest(found, alone.state_dict()), axes


@pytest.mark.parametrize(("dp", "tp", "stage"), [(2, 2, 3), (2, 2, 1), pytest.param(2, 2, 2, marks=pytest.mark.long)])
def test_zero_and_tensor_parallelism_together_match_one_process(dp, tp, stage):
    for apart, axes in run_groups(on_a_mesh, dp * tp, dp, tp, stage):
        assert apart < 1e-10
        assert ("all_reduce", "tp") in axes
        assert {axis for collective, axis in axes if collective in ("all_gather", "reduce_scatter")} == {"dp"}
