"""Tensor parallelism within data parallelism, and the parameters that a rank holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from whole_models import WholeTransformer, train_both  # noqa: E402
from worlds import run_groups  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402
from unisono.parallel import DataParallel, ParallelTransformer  # noqa: E402

DOCS = Path(__file__).parents[2] / "docs" / "parallel"
SIZES = (13, 12, 4, 2, 7)


def train_on_a_grid(group, tensor_ranks, sequence_parallel):
    """Train: ranks 0, 1, ... hold parts of one model; ranks with the same part have different rows of the batch."""
    tp = group.split(group.rank // tensor_ranks, axis="tp")
    dp = group.split(group.rank % tensor_ranks, axis="dp")
    texts = [torch.randint(13, (4, 8), generator=torch.Generator().manual_seed(step % 3)) for step in range(20)]

    def loss_of(model, step):
        return model(texts[step][:, :-1], texts[step][:, 1:])

    def loss_of_share(model, step):
        own = texts[step].chunk(dp.size)[dp.rank]
        loss = model(own[:, :-1], own[:, 1:])
        group.all_reduce(loss.data, op="avg", name="loss", phase="forward")  # to be compared with that of one process
        return loss

    return train_both(
        lambda: DataParallel(ParallelTransformer(*SIZES, tp, sequence_parallel=sequence_parallel), dp),
        lambda: WholeTransformer(*SIZES), loss_of, torch.float64, loss_of_share,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("size", "tensor_ranks", "sequence_parallel", "kind"),
    [
        (4, 2, True, "comm"),
        pytest.param(4, 2, False, "comm", marks=pytest.mark.slow),
        pytest.param(4, 2, True, "gloo", marks=pytest.mark.long),
        pytest.param(6, 3, True, "comm", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_a_mesh_of_ranks_trains_like_one_process(size, tensor_ranks, sequence_parallel, kind):
    for first, last, losses in run_groups(train_on_a_grid, size, tensor_ranks, sequence_parallel, kind=kind):
        assert first == 0
        assert last < 1e-10
        assert losses < 1e-10


def parameters_of(group, sizes):
    model = ParallelTransformer(*sizes, group)
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_rank_holds_the_documented_number_of_parameters(size):
    words, h, layers, positions = 20, 8, 3, 5
    divided = layers * (12 * h * h + 7 * h) + 2 * words * h
    expected = divided // size + layers * 6 * h + positions * h + 2 * h
    assert run_groups(parameters_of, size, (words, h, 4, layers, positions)) == [expected] * size


def run_code(code):
    space = {}
    exec(code, space)
    return sorted(name for name, value in space.items() if torch.is_tensor(value))


@pytest.mark.parametrize("page", ["tensor_parallel", "sequence_parallel", "mixture_of_experts"])
def test_the_python_code_of_the_page_runs(page):
    code = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(code) == 1
    assert run_ranks(run_code, 4, code[0], init=False)[0]
