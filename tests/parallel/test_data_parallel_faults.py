"""Errors of DataParallel are raised on every rank, name their cause, and leave no rank waiting."""

from __future__ import annotations

import re
import time

import pytest

torch = pytest.importorskip("torch")

from models import batch, make  # noqa: E402
from torch import nn  # noqa: E402
from worlds import run_groups  # noqa: E402

import unisono  # noqa: E402
from torch_ranks import run_ranks  # noqa: E402
from unisono.errors import Aborted, CommError, GradientError, PeerLost, UsageError  # noqa: E402
from unisono.parallel import DataParallel, record  # noqa: E402

SOON_S = 2.0


def message_of(kind, call, *args, **kwargs):
    """Return the message of the error that the call raises."""
    with pytest.raises(kind) as caught:
        call(*args, **kwargs)
    return str(caught.value)


# ---- at the start ------------------------------------------------------------------------------------------------


def start_with_other_values(group):
    model = make("mlp")
    if group.rank in (1, 2):
        with torch.no_grad():
            model[2].weight[3, 4] += 1e-12
            model[4].bias[0] += group.rank
    return message_of(UsageError, DataParallel, model, group)


@pytest.mark.parametrize("kind", ["comm", "gloo"])
def test_parameters_with_different_initial_values_are_named_with_their_ranks(kind):
    for said in run_groups(start_with_other_values, 3, kind=kind):
        assert "parameter '2.weight' (and 1 more parameter) has other values on ranks 1, 2 than on rank 0" in said
        assert "broadcast_parameters=True" in said


def take_those_of_rank_0(group):
    torch.manual_seed(group.rank)
    model = nn.Sequential(nn.Conv2d(2, 3, 3).to(memory_format=torch.channels_last), nn.Linear(3, 3))
    with record() as log:
        DataParallel(model, group, broadcast_parameters=True)
    sent = [(entry.collective, entry.name, entry.phase) for entry in log]
    return [parameter.detach() for parameter in model.parameters()], sent


def test_rank_0_can_broadcast_its_parameters():
    ranks = run_groups(take_those_of_rank_0, 3)
    for parameters, sent in ranks:
        assert all(torch.equal(a, b) for a, b in zip(parameters, ranks[0][0], strict=True))
        assert sent == [("broadcast", name, "start") for name in ("0.weight", "0.bias", "1.weight", "1.bias")]


OTHER_MODELS = {
    "shape": (lambda: nn.Linear(3, 5), "parameter 'weight' float32 (5, 3)", "parameter 'weight' float32 (4, 3)"),
    "dtype": (lambda: nn.Linear(3, 4).double(), "parameter 'weight' float64", "parameter 'weight' float32"),
    "missing parameter": (lambda: nn.Linear(3, 4, bias=False), "nothing more", "parameter 'bias' float32 (4,)"),
    "other names": (lambda: nn.ModuleList([nn.Linear(3, 4)]), "parameter '0.weight'", "parameter 'weight'"),
}


def start_with_another_model(group, case):
    model = OTHER_MODELS[case][0]() if group.rank == 2 else nn.Linear(3, 4)
    return message_of(UsageError, DataParallel, model, group)


@pytest.mark.parametrize("case", OTHER_MODELS)
def test_a_rank_with_a_different_model_is_named_with_the_first_difference(case):
    _, there, here = OTHER_MODELS[case]
    for said in run_groups(start_with_another_model, 3, case):
        assert "rank 2's model differs from rank 0's" in said
        assert f"expected {here}" in said
        assert f"found {there}" in said


def start_with_other_settings(group):
    model = nn.Linear(3, 4)
    if group.rank == 0:
        model.bias.requires_grad_(False)
    return (
        message_of(UsageError, DataParallel, nn.Linear(3, 4), group, bucket_bytes=100 + group.rank),
        message_of(UsageError, DataParallel, model, group),
    )


def test_settings_that_differ_between_ranks_are_named():
    for settings, frozen in run_groups(start_with_other_settings, 2):
        assert "expected bucket_bytes=100, found bucket_bytes=101 on rank 1" in settings
        bias = "parameter 'bias' float32 (4,)"
        assert f"expected {bias}, frozen, found {bias} on rank 1" in frozen


def start_with_nonsense(group):
    wrapped = DataParallel(nn.Linear(2, 2), group)
    thawing = nn.Linear(2, 2)
    thawing.bias.requires_grad_(False)
    late = DataParallel(thawing, group)
    thawing.bias.requires_grad_(True)
    sparse = DataParallel(nn.Embedding(4, 2, sparse=True), group)
    return [
        message_of(UsageError, DataParallel, nn.ReLU(), group),
        message_of(UsageError, DataParallel, nn.Linear(2, 2).requires_grad_(False), group),
        message_of(UsageError, DataParallel, nn.LazyLinear(2), group),
        message_of(UsageError, DataParallel, wrapped, group),
        message_of(UsageError, DataParallel, wrapped.module, group),
        message_of(UsageError, DataParallel, nn.Linear(2, 2), group, bucket_bytes=0),
        message_of(UsageError, DataParallel, nn.Linear(2, 2), "all"),
        message_of(UsageError, late, torch.zeros(1, 2)),
        message_of(UsageError, lambda: sparse(torch.tensor([1])).sum().backward()),
    ]


def test_invalid_modules_and_settings_are_rejected():
    (said,) = run_groups(start_with_nonsense, 1)
    expected = [
        "ReLU has nothing to train: it has no parameters",
        "Linear has nothing to train: all its 2 parameters are frozen",
        "parameter 'weight' has no shape yet",
        "is already wrapped by DataParallel",
        "parameter 'weight' already belongs to another DataParallel",
        "bucket_bytes=0; expected",
        "group='all'; expected",
        "parameter 'bias' was frozen when the module was wrapped",
        "the gradient of 'weight' is torch.sparse_coo; expected a dense one",
    ]
    for each, words in zip(said, expected, strict=True):
        assert words in each


# ---- in the backward pass ----------------------------------------------------------------------------------------


class Spoil(torch.autograd.Function):
    """Is the identity in the forward pass; the backward pass calls a function of the test."""

    @staticmethod
    def forward(ctx, x, backward):
        ctx.spoil = backward
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return ctx.spoil(gradient), None


class Spoiled(nn.Module):
    """A perceptron whose backward pass fails between the last layer and the one before it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.before, self.after = nn.Linear(4, 4), nn.Linear(4, 4)
        self.spoil = lambda gradient: gradient

    def forward(self, x):
        return self.after(Spoil.apply(self.before(x), self.spoil)).sum()


def find_nan(group, kind):
    model = Spoiled()
    wrapped = DataParallel(model, group, bucket_bytes=40, check_nan=True)
    data = torch.full((3, 4), group.rank + 1.0)
    wrapped(data).backward()
    if group.rank == 1:
        model.spoil = {
            "nan": lambda gradient: gradient * float("nan"),
            "inf": lambda gradient: gradient * torch.tensor([float("inf"), -float("inf"), 1.0, 1.0]),
        }[kind]
    if kind == "inf":
        wrapped(data).backward()
        return None
    said = message_of(GradientError, lambda: wrapped(data).backward())
    model.spoil = lambda gradient: gradient
    model.zero_grad()
    wrapped(data).backward()  # training can continue
    return said, float(model.before.bias.grad.sum())


@pytest.mark.parametrize("kind", ["comm", "gloo"])
def test_a_nan_is_reported_on_all_ranks_with_its_parameter_and_rank(kind):
    found = run_groups(find_nan, 3, "nan", kind=kind)
    for said, gradient in found:
        assert "the gradient of 'before.bias' on rank 1 has a NaN before averaging" in said
        assert gradient == found[0][1]


def test_an_infinite_gradient_is_not_reported_as_nan():
    run_groups(find_nan, 2, "inf")


def fail(gradient):
    raise ZeroDivisionError(f"spoiled at {time.monotonic()}")


def fail_in_backward(size):
    """Let rank 1 raise in its backward pass and leave the block of its communicator; its process keeps running."""
    try:
        with unisono.connect(timeout=60) as comm:
            model = Spoiled()
            wrapped = DataParallel(model, comm, bucket_bytes=40)
            if comm.rank == 1:
                model.spoil = fail
            wrapped(torch.ones(3, 4)).backward()
    except ZeroDivisionError as error:
        return str(error)
    except Aborted as error:
        return error.rank, str(error), time.monotonic()
    return None


@pytest.mark.parametrize("size", [2, 5])
def test_an_exception_in_the_backward_pass_of_one_rank_is_raised_on_the_others(size):
    found = run_ranks(fail_in_backward, size, size, init=False)
    raised_at = float(found[1].split()[-1])
    for culprit, said, heard_at in found[:1] + found[2:]:
        assert culprit == 1
        assert "rank 1 aborted: ZeroDivisionError: spoiled" in said
        assert heard_at - raised_at < SOON_S


def fail_and_end(group):
    model = Spoiled()
    wrapped = DataParallel(model, group, bucket_bytes=40)
    if group.rank == 1:
        model.spoil = fail
    try:
        wrapped(torch.ones(3, 4)).backward()
    except PeerLost as error:
        raise RuntimeError(f"noticed at {time.monotonic()} of rank {error.rank}") from error


def test_on_a_torch_process_group_the_other_ranks_report_the_lost_rank():
    with pytest.raises(AssertionError) as failure:
        run_groups(fail_and_end, 3, kind="unisono")
    text = str(failure.value)
    raised_at = float(re.findall(r"ZeroDivisionError: spoiled at ([\d.]+)", text)[0])
    noticed_at = re.findall(r"RuntimeError: noticed at ([\d.]+) of rank 1", text)
    assert len(noticed_at) == 2
    assert max(map(float, noticed_at)) - raised_at < SOON_S


def go_on_after_an_exception(group):
    model = Spoiled()
    wrapped = DataParallel(model, group, bucket_bytes=40)
    model.spoil = fail
    with pytest.raises(ZeroDivisionError):
        wrapped(torch.ones(3, 4)).backward()
    return message_of(CommError, wrapped, torch.ones(3, 4))


def test_a_step_after_an_interrupted_backward_pass_is_an_error():
    for said in run_groups(go_on_after_an_exception, 2):
        assert re.search(r"on rank \d the last backward pass stopped after 1 of 3 buckets", said)


def feed_unequally(group):
    """Train with a different number of rows on each rank, which is not an error."""
    model = DataParallel(make("mlp"), group)
    inputs, targets = batch("mlp", 0, rows=15)
    own = slice(0, 0) if group.rank == 1 else slice(group.rank, None)
    loss = nn.functional.cross_entropy(model(inputs[own]), targets[own], reduction="sum") / 15 * group.size
    loss.backward()
    alone = make("mlp")
    parts = [(inputs[rank:], targets[rank:]) for rank in range(group.size) if rank != 1]
    sum(nn.functional.cross_entropy(alone(x), y, reduction="sum") / 15 for x, y in parts).backward()
    for mine, other in zip(model.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=0, atol=1e-12)


def test_ranks_may_have_different_numbers_of_rows_or_none():
    run_groups(feed_unequally, 3)


def lose_a_codec(group):
    model = DataParallel(nn.Linear(4, 4), group, codec="fp8_e4m3")
    return message_of(UsageError, lambda: model(torch.ones(2, 4)).sum().backward())


def test_codecs_on_a_gloo_group_are_rejected():
    for said in run_groups(lose_a_codec, 2, kind="gloo"):
        assert "codec='fp8_e4m3' on a process group of gloo, which cannot encode" in said
