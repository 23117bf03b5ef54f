"""SyncBatchNorm on several ranks matches BatchNorm on the whole batch."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.errors import UsageError  # noqa: E402
from unisono.parallel import DataParallel, SyncBatchNorm, record  # noqa: E402

FEATURES = 5
SHAPES = {1: (FEATURES,), 2: (FEATURES, 3, 4), 3: (FEATURES, 2, 3, 2)}  # of a row
KINDS = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
OPTIONS = {
    "plain": {}, "cumulative": {"momentum": None}, "no affine": {"affine": False},
    "no running": {"track_running_stats": False}, "eps": {"eps": 0.1, "momentum": 0.5},
}  # fmt: skip


def numbers(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def made(dimensions, dtype=torch.float64, **options):
    norm = KINDS[dimensions](FEATURES, **options).to(dtype)
    if norm.affine:
        with torch.no_grad():
            norm.weight.copy_(numbers(1, FEATURES))
            norm.bias.copy_(numbers(2, FEATURES))
    return norm


def compare(group, rows, dimensions, options, shift=0.0, dtype=torch.float64):
    """Make three steps on all ranks, with rows[rank] rows each, and in one process; return the largest difference."""
    whole = made(dimensions, dtype, **options)
    own = SyncBatchNorm.convert(copy.deepcopy(whole), group)
    ends = [sum(rows[: rank + 1]) for rank in range(len(rows))]
    mine = slice(ends[group.rank] - rows[group.rank], ends[group.rank])
    apart = []

    def note(found, expected):
        apart.extend([float((found - expected).abs().max()) if found.numel() else 0.0])

    for step in range(3):
        x = (numbers(10 + step, sum(rows), *SHAPES[dimensions]) + shift).to(dtype).requires_grad_()
        part = x.detach()[mine].clone().requires_grad_()
        weights = numbers(20 + step, *x.shape, dtype=dtype)
        expected, found = whole(x), own(part)
        note(found, expected[mine])
        (expected * weights).sum().backward()
        (found * weights[mine]).sum().backward()
        note(part.grad, x.grad[mine])
    for name, buffer in whole.named_buffers():
        note(dict(own.named_buffers())[name], buffer)
    if whole.affine:  # the gradient of all rows is the sum of the gradients of each rank
        for parameter, other in zip(own.parameters(), whole.parameters(), strict=True):
            group.all_reduce(parameter.grad, name="", phase="backward")
            note(parameter.grad, other.grad)
    note(own.eval()(x), whole.eval()(x))
    return max(apart)


@pytest.mark.parametrize("dimensions", SHAPES)
def test_the_result_matches_batch_norm_of_the_whole_batch(dimensions):
    assert max(run_groups(compare, 2, [3, 3], dimensions, {})) < 1e-12


@pytest.mark.parametrize("rows", [[4, 1, 2], [0, 3, 2], [1, 0, 1]])
def test_ranks_may_have_different_numbers_of_rows_or_none(rows):
    assert max(run_groups(compare, 3, rows, 2, {})) < 1e-12


@pytest.mark.parametrize("kind", ["gloo", "unisono"])
def test_torch_process_groups_give_the_same_result(kind):
    assert max(run_groups(compare, 3, [2, 1, 3], 1, {}, kind=kind)) < 1e-12


@pytest.mark.parametrize("options", OPTIONS)
def test_every_option_has_the_meaning_of_torch(options):
    """Without running statistics, evaluation uses those of the batch of each rank, as torch does."""
    assert max(run_groups(compare, 2, [2, 3], 2, OPTIONS[options])) < 1e-12


def test_a_group_of_one_rank_works():
    assert max(run_groups(compare, 1, [5], 2, {})) < 1e-12


def far_from_zero(group):
    """Use a mean of 1000 and a deviation of 1: single precision must not lose the variance."""
    x = (numbers(group.rank, 200, FEATURES) + 1000).float()
    norm = SyncBatchNorm(FEATURES, group, momentum=1.0)
    norm(x)
    whole = torch.cat([(numbers(rank, 200, FEATURES) + 1000).float() for rank in range(group.size)]).double()
    return float((norm.running_var - whole.var(0)).abs().max())


def test_the_variance_is_accurate_if_the_mean_is_far_from_zero():
    assert max(run_groups(far_from_zero, 3)) < 1e-4


def in_single_precision(group):
    return compare(group, [3, 4], 2, {}, dtype=torch.float32)


def test_single_precision_is_as_accurate_as_that_of_torch():
    assert max(run_groups(in_single_precision, 2)) < 2e-5


def in_half_precision(group):
    x = numbers(group.rank, 50, FEATURES).bfloat16().requires_grad_()
    norm = SyncBatchNorm(FEATURES, group)
    y = norm(x)
    y.float().square().sum().backward()
    assert y.dtype == x.grad.dtype == torch.bfloat16
    assert norm.weight.grad.dtype == torch.float32
    return norm.running_mean


def test_half_precision_is_summed_in_single_precision():
    first, second = run_groups(in_half_precision, 2)
    assert torch.equal(first, second)


def by_gradcheck(group):
    for options in ({}, {"affine": False}):
        norm = SyncBatchNorm(FEATURES, group, **options).double()
        assert torch.autograd.gradcheck(norm, numbers(0, 3, FEATURES, 2).requires_grad_())


def test_the_gradient_matches_finite_differences():
    run_groups(by_gradcheck, 1)


def recorded(group):
    model = DataParallel(
        SyncBatchNorm.convert(nn.Sequential(nn.Linear(4, FEATURES), nn.BatchNorm1d(FEATURES)), group), group
    )
    with record() as log:
        model(numbers(group.rank, 3, 4, dtype=torch.float32)).sum().backward()
        model.eval()(numbers(0, 3, 4, dtype=torch.float32))
    return [(entry.collective, entry.name, entry.bytes, entry.phase) for entry in log]


def test_training_makes_one_all_gather_forward_and_one_all_reduce_backward_and_evaluation_none():
    for entries in run_groups(recorded, 3):
        own = [entry for entry in entries if entry[1].startswith("1 (")]
        assert own == [
            ("all_gather", "1 (mean, M2, count)", 3 * (2 * FEATURES + 1) * 4, "forward"),
            ("all_reduce", "1 (sums of dy, dy·x̂)", 2 * FEATURES * 4, "backward"),
        ]


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3))
        self.again = self.stem[1]
        self.inner = nn.ModuleDict({"norm": nn.BatchNorm1d(3, affine=False)})


def convert(group):
    model = Nested().eval()
    keys, weight = list(model.state_dict()), model.stem[1].weight
    assert SyncBatchNorm.convert(model, group) is model
    assert list(model.state_dict()) == keys
    assert model.stem[1].weight is weight
    assert model.again is model.stem[1]
    assert (model.stem[1].name, model.inner["norm"].name) == ("stem.1", "inner.norm")
    assert not model.stem[1].training
    assert isinstance(copy.deepcopy(model).inner["norm"], SyncBatchNorm)  # averaging models requires copies
    with pytest.raises(UsageError, match=r"'stem\.1': input of shape"):
        model.stem[1](torch.zeros(2, 4))
    with pytest.raises(UsageError, match="has no shape yet"):
        SyncBatchNorm.convert(nn.Sequential(nn.LazyBatchNorm1d()), group)
    with pytest.raises(UsageError, match="values per feature on all ranks together: 1"):
        SyncBatchNorm(3, group)(torch.zeros(1 - group.rank, 3))


def test_a_module_is_converted_in_place_and_invalid_inputs_are_rejected():
    run_groups(convert, 2)
