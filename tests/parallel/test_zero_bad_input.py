"""Invalid input is rejected on all ranks with its name; nothing hangs or computes wrong numbers."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from models import batch, loss_of, make  # noqa: E402
from torch import nn  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.codecs import ErrorFeedback  # noqa: E402
from unisono.errors import CommError, GradientError, UsageError  # noqa: E402
from unisono.parallel import Zero  # noqa: E402


def sgd(shards):
    return torch.optim.SGD(shards, 0.1)


def rejected(group, build, kind=UsageError):
    with pytest.raises(kind) as error:
        build(group)
    return str(error.value)


def rejections(build, size=2, kind=UsageError):
    """Return the error message, which must be the same on all ranks."""
    found = run_groups(rejected, size, build, kind)
    assert all(each == found[0] for each in found)
    return found[0]


def test_only_stages_1_2_and_3_are_accepted():
    assert "stage=4; expected 1, 2 or 3" in rejections(lambda g: Zero(make("mlp"), g, optimizer=sgd, stage=4))
    assert "use DataParallel" in rejections(lambda group: Zero(make("mlp"), group, optimizer=sgd, stage=0))


def test_error_feedback_needs_a_codec_that_is_always_used():
    options = {"optimizer": sgd, "codec": "auto:bf16", "error_feedback": ErrorFeedback}
    assert "expected a codec that is always used" in rejections(lambda group: Zero(make("mlp"), group, **options))


def test_a_module_needs_parameters_to_train():
    assert "no parameters" in rejections(lambda group: Zero(nn.ReLU(), group, optimizer=sgd))
    frozen = nn.Linear(2, 2).requires_grad_(False)
    assert "all its 2 parameters are frozen" in rejections(lambda group: Zero(frozen, group, optimizer=sgd))


def test_a_rank_with_a_different_model_or_values_is_named():
    def other_model(group):
        Zero(nn.Sequential(nn.Linear(3, 3 + group.rank // 2)), group, optimizer=sgd)

    def other_values(group):
        torch.manual_seed(group.rank // 2)
        Zero(nn.Sequential(nn.Linear(3, 3)), group, optimizer=sgd)

    assert "rank 2's model differs from rank 0's" in rejections(other_model, size=3)
    assert "'0.weight' (and 1 more parameter) has other values on rank 2 than on rank 0" in rejections(
        other_values, size=3
    )


def test_a_rank_with_different_settings_or_units_is_named():
    def other_stage(group):
        Zero(make("mlp"), group, optimizer=sgd, stage=2 + group.rank)

    def other_units(group):
        Zero(make("mlp"), group, optimizer=sgd, units=(lambda *_: False) if group.rank else None)

    assert "stage=3 on rank 1" in rejections(other_stage)
    assert "units=['root'] on rank 1" in rejections(other_units)


def starting_alike(group):
    torch.manual_seed(group.rank)
    zero = Zero(nn.Sequential(nn.Linear(3, 3)), group, optimizer=sgd, broadcast_parameters=True)
    torch.manual_seed(0)
    expected = nn.Sequential(nn.Linear(3, 3))
    found = zero.state_dict()
    return all(torch.equal(found[name], value) for name, value in expected.state_dict().items())


def test_all_ranks_can_start_with_the_parameters_of_rank_0():
    assert run_groups(starting_alike, 3) == [True] * 3


class Branching(nn.Module):
    """Runs its layers in an order that differs between ranks."""

    def __init__(self, backwards):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        self.backwards = backwards

    def forward(self, x):
        for layer in reversed(self.layers) if self.backwards else self.layers:
            x = layer(x)
        return x


def test_in_stage_3_all_ranks_must_run_the_same_units():
    def build(group):
        Zero(Branching(group.rank == 1), group, optimizer=sgd)(torch.ones(2, 4))

    message = rejections(build, size=3)
    assert "rank 1 ran the units root, layers.1, layers.0; expected the order of rank 0" in message


class Breaking(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("spoiled")


class BreaksInside(nn.Module):
    def __init__(self, breaks):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(4)])
        self.breaks = breaks

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            x = layer(x)
            if number == 1 and self.breaks:
                x = Breaking.apply(x)
        return x


def breaking(group, stage):
    zero = Zero(BreaksInside(group.rank == 1), group, optimizer=sgd, stage=stage)
    zero(torch.ones(2, 4)).sum().backward()
    zero.step()
    group.all_gather_object("done")


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_when_one_rank_fails_in_its_backward_pass_the_others_name_it(stage):
    with pytest.raises(AssertionError) as error:
        run_groups(breaking, 3, stage)
    text = str(error.value)
    assert text.count("rank 1 aborted: ValueError: spoiled") == 2
    assert "did not answer" not in text


def going_on(group):
    zero = Zero(BreaksInside(True), group, optimizer=sgd)
    with pytest.raises(ValueError, match="spoiled"):
        zero(torch.ones(2, 4)).sum().backward()
    zero(torch.ones(2, 4))


def test_a_step_after_an_interrupted_backward_pass_is_an_error():
    assert "an exception ended the last backward pass on this rank" in rejections(going_on, 1, CommError)


def forward_again(group):
    """Raise in a forward pass on all ranks, then make another one."""
    model = make("mlp")
    zero = Zero(model, group, optimizer=sgd)
    inputs, targets = batch("mlp", 0)
    expected = float(loss_of(zero, inputs, targets))
    for wrong in (inputs[:, :3], inputs.float()):
        with pytest.raises(RuntimeError):
            zero(wrong)
    return float(loss_of(zero, inputs, targets)) == expected


def test_an_interrupted_forward_pass_does_not_affect_the_next_one():
    assert run_groups(forward_again, 2) == [True, True]


class Stashing(nn.Module):
    """A unit that stores a tensor in an attribute, which the model uses after the unit has returned."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        out = torch.tanh(x)
        self.aside = self.inner(x).square()
        return out


class UsesTheStash(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([Stashing() for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x + sum(layer.aside for layer in self.layers)


def test_using_an_absent_parameter_in_a_computation_is_an_error():
    def build(group):
        zero = Zero(UsesTheStash(), group, optimizer=sgd)
        zero(torch.ones(2, 4, requires_grad=True)).sum().backward()

    assert "modified by an inplace operation" in rejections(build, kind=RuntimeError)

    def after_step(group):
        zero = Zero(make("mlp"), group, optimizer=sgd, stage=2)
        loss = loss_of(zero, *batch("mlp", 0))
        loss.backward(retain_graph=True)
        zero.step()
        loss.backward()

    assert "modified by an inplace operation" in rejections(after_step, kind=RuntimeError)


class Opaque(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([HidesItsOutput()])

    def forward(self, x):
        return self.layers[0](x).x


class HidesItsOutput(nn.Linear):
    def __init__(self):
        super().__init__(4, 4)

    def forward(self, x):
        out = type("Box", (), {})()
        out.x = super().forward(x)
        return out


def test_the_output_of_a_unit_must_contain_tensors_that_can_be_found():
    def build(group):
        Zero(Opaque(), group, optimizer=sgd)(torch.ones(2, 4))

    assert "unit layers.0 (HidesItsOutput) returned a Box in which no tensor was found" in rejections(build)


def test_sparse_gradients_and_gradients_of_gradients_are_rejected():
    def sparse(group):
        torch.manual_seed(0)
        zero = Zero(nn.Sequential(nn.Embedding(5, 4, sparse=True), nn.Linear(4, 4)), group, optimizer=sgd)
        zero(torch.tensor([1, 2])).sum().backward()

    def twice(group):
        zero = Zero(make("mlp"), group, optimizer=sgd)
        loss_of(zero, *batch("mlp", 0)).backward(create_graph=True)

    assert "the gradient of '0.weight' is torch.sparse_coo" in rejections(sparse)
    assert "create_graph=True" in rejections(twice)


@pytest.mark.parametrize("stage", [1, 3])
def test_a_nan_in_a_gradient_is_named_with_check_nan(stage):
    def build(group):
        zero = Zero(make("mlp"), group, optimizer=sgd, stage=stage, check_nan=True)
        inputs, targets = batch("mlp", 0)
        loss_of(zero, inputs, targets).backward()
        zero.zero_grad()
        if group.rank == 1:
            zero.module[2].weight.register_hook(lambda gradient: gradient * float("nan"))
        loss_of(zero, inputs, targets).backward()

    assert "the gradient of '2.weight' on rank 1 has a NaN" in rejections(build, size=3, kind=GradientError)


def test_a_nan_is_reported_to_all_replicas():
    def build(group):
        inner, across = group.split(group.rank // 2), group.split(group.rank % 2)
        zero = Zero(make("mlp"), inner, replicate=across, optimizer=sgd, check_nan=True)
        if group.rank == 3:
            zero.module[0].bias.register_hook(lambda gradient: gradient * float("nan"))
        loss_of(zero, *batch("mlp", 0)).backward()

    assert "the gradient of '0.bias' on rank 1 has a NaN" in rejections(build, size=4, kind=GradientError)


def test_a_module_cannot_be_wrapped_twice_or_moved_or_thawed_after_wrapping():
    def twice(group):
        Zero(nn.Sequential(Zero(make("mlp"), group, optimizer=sgd)), group, optimizer=sgd)

    def thawed(group):
        model = make("mlp")
        model[0].bias.requires_grad_(False)
        zero = Zero(model, group, optimizer=sgd)
        model[0].bias.requires_grad_(True)
        zero(batch("mlp", 0)[0])

    def moved(group):
        Zero(make("mlp"), group, optimizer=sgd).half()

    def inside(group):
        nn.Sequential(Zero(make("mlp"), group, optimizer=sgd)).state_dict()

    assert "move or cast the module before wrapping it" in rejections(moved)
    assert "wrap the outermost module" in rejections(inside)
    assert "wrap it once" in rejections(twice)
    assert "parameter '0.bias' was frozen when the module was wrapped" in rejections(thawed)


class CallsAnother(nn.Linear):
    """A layer that calls another layer, which is not a submodule of it."""

    def __init__(self):
        super().__init__(4, 4)
        self.other = []

    def forward(self, x):
        return super().forward(self.other[0](x) if self.other else x)


def test_units_that_call_each_other_must_be_nested():
    def build(group):
        torch.manual_seed(0)
        model = nn.Sequential(CallsAnother(), nn.Linear(4, 4), CallsAnother())
        model[2].other.append(model[0])
        Zero(model, group, optimizer=sgd)(torch.ones(2, 4))

    assert "unit 2 is still running and its buffer is needed" in rejections(build)
