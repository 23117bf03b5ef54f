"""Calls of a training loop that could silently have the wrong effect either work or raise."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from models import batch, furthest, loss_of, make, share  # noqa: E402
from torch import nn  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.errors import UsageError  # noqa: E402
from unisono.parallel import DataParallel, ShardedGradScaler, Zero  # noqa: E402

STAGES = (1, 2, 3)


def sgd(parameters):
    return torch.optim.SGD(parameters, 0.1, momentum=0.9)


def zero_of(group, stage, optimizer=sgd, **settings):
    return Zero(make("mlp"), group, optimizer=optimizer, stage=stage, **settings)


def backward(model, group, step=0, scale=lambda loss: loss):
    inputs, targets = (share(part, group.rank, group.size) for part in batch("mlp", step))
    loss = scale(loss_of(model, inputs, targets))
    loss.backward()
    return loss


def alone(steps, before_update=lambda model: None, optimizer=sgd):
    """Return the state after some steps of one process on whole batches."""
    model = make("mlp")
    made = optimizer(model.parameters())
    for step in range(steps):
        made.zero_grad()
        loss_of(model, *batch("mlp", step)).backward()
        before_update(model)
        made.step()
    return model.state_dict()


def message_of(call, kind=UsageError):
    with pytest.raises(kind) as error:
        call()
    return str(error.value)


# ---- clipping ----------------------------------------------------------------------------------------------------


def clip(model):
    return torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)


def clipped_by_torch(group, stage):
    zero = zero_of(group, stage)
    for step in range(3):
        zero.zero_grad()
        backward(zero, group, step)
        if stage == 1:
            clip(zero)
        else:
            assert "the gradient of '0.weight' is in shards" in message_of(lambda: clip(zero))
            assert "is in shards" in message_of(lambda: torch.nn.utils.clip_grad_value_(zero.parameters(), 0.1))
            assert "is in shards" in message_of(sgd(zero.parameters()).step)
            zero.clip_grad_norm(0.05)
        zero.step()
    return furthest(zero.state_dict(), alone(3, clip))


@pytest.mark.parametrize("stage", STAGES)
def test_clipping_by_torch_works_on_whole_gradients_and_is_rejected_on_shards(stage):
    assert max(run_groups(clipped_by_torch, 2, stage)) < 1e-10


def clipped(group, stage):
    zero = zero_of(group, stage)
    backward(zero, group)
    zero.clip_grad_norm(1e-3)
    if stage > 1:
        return 0.0
    return abs(float(torch.nn.utils.get_total_norm([each.grad for each in zero.parameters()])) - 1e-3)


def test_in_stage_1_clipping_scales_the_visible_gradients():
    assert max(run_groups(clipped, 2, 1)) < 1e-6


# ---- no_sync -----------------------------------------------------------------------------------------------------


def step_without_sync(group, stage):
    zero = zero_of(group, stage)
    backward(zero, group)
    zero.step()
    zero.zero_grad()
    with zero.no_sync():
        backward(zero, group, 1)
    before = {name: value.clone() for name, value in zero.state_dict().items()}
    for call in (zero.step, lambda: zero.clip_grad_norm(1.0), zero.optimizer.step):
        assert f"are those of rank {group.rank} alone and were not averaged" in message_of(call)
    assert furthest(zero.state_dict(), before) == 0.0
    zero.zero_grad()
    zero.step()
    assert furthest(zero.state_dict(), before) == 0.0, "cleared gradients changed the parameters"
    with zero.no_sync():
        backward(zero, group, 1)
    backward(zero, group, 2)
    zero.step()
    return True


@pytest.mark.parametrize("stage", STAGES)
def test_an_update_with_gradients_that_were_not_averaged_is_rejected(stage):
    assert run_groups(step_without_sync, 2, stage) == [True, True]


def data_parallel_without_sync(group):
    model = DataParallel(make("mlp"), group)
    optimizer = sgd(model.parameters())
    with model.no_sync():
        backward(model, group)
        backward(model, group)
    backward(model, group)
    optimizer.step()
    backward(model, group)  # an update after an averaged pass is allowed
    with model.no_sync():
        backward(model, group)
    optimizer.step()
    optimizer.zero_grad()
    calls = (lambda: backward(model, group), model.state_dict, model.unwrap)
    assert all("were updated after a backward pass inside no_sync()" in message_of(call) for call in calls)
    model.load_state_dict(make("mlp").state_dict())
    backward(model, group)
    return True


def test_data_parallel_detects_an_update_with_gradients_that_were_not_averaged():
    assert run_groups(data_parallel_without_sync, 2) == [True, True]


# ---- changed modules ---------------------------------------------------------------------------------------------


def replace(model):
    model[2].weight = nn.Parameter(torch.zeros(13, 16, dtype=torch.float64))


def add(model):
    model[1].scale = nn.Parameter(torch.ones(3))


def append(model):
    model.append(nn.Linear(5, 5).double())


def remove(model):
    model[2].bias = None


def add_without_parameters(model):
    model.append(nn.Identity())


CHANGES = {
    replace: "'2.weight' was replaced in", add: "'1.scale' was added to", append: "'5.weight' was added to",
    remove: "'2.bias' was removed from",
}  # fmt: skip


def changed(group, stage):
    for change, expected in CHANGES.items():
        model = make("mlp")
        wrapped = DataParallel(model, group) if stage == 0 else Zero(model, group, optimizer=sgd, stage=stage)
        add_without_parameters(model)
        backward(wrapped, group)
        del model[-1]
        change(model)
        assert expected in message_of(lambda wrapped=wrapped: backward(wrapped, group))
    return True


@pytest.mark.parametrize("stage", [0, *STAGES])
def test_a_parameter_that_is_added_removed_or_replaced_after_wrapping_is_named(stage):
    assert run_groups(changed, 2, stage) == [True, True]


def frozen_later(group, stage):
    zero = zero_of(group, stage)
    backward(zero, group)
    zero.module[0].weight.requires_grad_(False)
    return message_of(lambda: backward(zero, group))


@pytest.mark.parametrize("stage", STAGES)
def test_a_parameter_that_is_frozen_after_wrapping_is_named(stage):
    """Momentum and weight decay would continue to change it."""
    for each in run_groups(frozen_later, 2, stage):
        assert "'0.weight' was trainable when the module was wrapped and is frozen now" in each


def freeze_in_data_parallel(group):
    found = []
    for freezes in (make("mlp"), DataParallel(make("mlp"), group)):
        optimizer = sgd(freezes.parameters())
        for step in range(4):
            if step == 2:
                next(freezes.parameters()).requires_grad_(False)
            optimizer.zero_grad()
            inputs, targets = batch("mlp", step)
            loss_of(freezes, inputs, targets).backward()
            optimizer.step()
        found.append(freezes.state_dict())
    return furthest(*found)


def test_in_data_parallel_a_parameter_can_be_frozen_after_wrapping():
    assert max(run_groups(freeze_in_data_parallel, 2)) < 1e-12


# ---- clearing gradients -----------------------------------------------------------------------------------------


def clear(zero, how):
    if how == "zero":
        zero.zero_grad()
    elif how == "zero in place":
        zero.zero_grad(set_to_none=False)
    elif how == "optimizer":
        zero.optimizer.zero_grad()
    elif how == "module":
        zero.module.zero_grad()
    elif how == "module in place":
        zero.module.zero_grad(set_to_none=False)
    else:
        for parameter in zero.parameters():
            parameter.grad = None


def cleared(group, stage, how):
    zero = zero_of(group, stage)
    for step in range(3):
        if stage > 1 and step and how not in ("zero", "zero in place", "optimizer"):
            assert "is in shards" in message_of(lambda: clear(zero, how))
            zero.zero_grad()
        clear(zero, how)
        backward(zero, group, step)
        zero.step()
    return furthest(zero.state_dict(), alone(3))


@pytest.mark.parametrize("how", ["zero", "zero in place", "optimizer", "module", "module in place", "each"])
@pytest.mark.parametrize("stage", STAGES)
def test_every_way_to_clear_gradients_works(stage, how):
    assert max(run_groups(cleared, 2, stage, how)) < 1e-10


def one_cleared(group):
    zero = zero_of(group, 1, lambda shards: torch.optim.SGD(shards, 0.1))
    backward(zero, group)
    zero.module[2].weight.grad = None
    zero.step()
    assert torch.equal(zero.state_dict()["2.weight"], make("mlp").state_dict()["2.weight"])
    assert not torch.equal(zero.state_dict()["2.bias"], make("mlp").state_dict()["2.bias"])
    backward(zero, group)
    zero.module[2].weight.grad = torch.ones(13, 16, dtype=torch.float64)
    return message_of(zero.step)


def test_in_stage_1_a_gradient_can_be_dropped_and_not_replaced():
    for each in run_groups(one_cleared, 2):
        assert "were not averaged" in each


# ---- optimisers --------------------------------------------------------------------------------------------------


class Lamb(torch.optim.SGD):
    """Scales the update of a parameter by the norm of the parameter."""

    def step(self, closure=None):
        for group in self.param_groups:
            for each in group["params"]:
                if each.grad is not None:
                    each.data.sub_(each.grad, alpha=float(group["lr"] * each.data.norm() / each.grad.norm()))


class NormOfAll(torch.optim.SGD):
    """Clips by the norm of all its parameters."""

    def step(self, closure=None):
        torch.nn.utils.clip_grad_norm_([each for group in self.param_groups for each in group["params"]], 0.1)
        super().step(closure)


ELEMENTWISE = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "RAdam", "Adamax", "ASGD", "Rprop", "Adadelta")


def try_optimizers(group):
    for name in ELEMENTWISE:
        zero_of(group, 2, lambda shards, name=name: getattr(torch.optim, name)(shards, lr=0.0))
    for kind in (torch.optim.Adafactor, Lamb, NormOfAll):
        message = message_of(lambda kind=kind: zero_of(group, 2, lambda shards: kind(shards, lr=0.0)))
        assert f"{kind.__name__} gives a part of a vector other values" in message
        zero_of(group, 2, lambda shards, kind=kind: kind(shards, lr=0.0), check_optimizer=False)
    for name in ("LBFGS", "SparseAdam"):
        message = message_of(lambda name=name: zero_of(group, 2, getattr(torch.optim, name)))
        assert f"{name} could not be tried on a vector" in message
    assert "Muon only supports 2D" in message_of(lambda: zero_of(group, 2, torch.optim.Muon), ValueError)
    assert "returned a NoneType; expected a function" in message_of(lambda: zero_of(group, 2, lambda shards: None))
    model = make("mlp")
    others = message_of(lambda: Zero(model, group, optimizer=lambda shards: sgd(model.parameters()), stage=2))
    assert "6 parameters that are not shards, the first of shape (16, 8)" in others
    zero = zero_of(group, 2)
    zero.optimizer.add_param_group({"params": [nn.Parameter(torch.ones(3))]})
    backward(zero, group)
    assert "that is not a shard" in message_of(zero.step)
    return True


def test_an_optimiser_that_needs_whole_tensors_is_rejected():
    assert run_groups(try_optimizers, 2) == [True, True]


def with_closure(group, stage):
    zero = zero_of(group, stage)
    for step in range(3):

        def compute(step=step):
            zero.zero_grad()
            return backward(zero, group, step)

        assert float(zero.step(compute)) > 0
    return furthest(zero.state_dict(), alone(3))


@pytest.mark.parametrize("stage", STAGES)
def test_a_step_accepts_a_closure_that_computes_the_gradients(stage):
    assert max(run_groups(with_closure, 2, stage)) < 1e-10


# ---- loss scaling ------------------------------------------------------------------------------------------------


def scaled(group, stage, mixed):
    """Train with a loss scale; one rank has an infinite gradient in the second step, which all ranks skip."""
    settings = {"mixed_precision": torch.float16} if mixed else {}
    model = make("mlp", torch.float32)
    zero = Zero(model, group, optimizer=lambda shards: torch.optim.SGD(shards, 0.1), stage=stage, **settings)
    scaler = ShardedGradScaler(zero, init_scale=64.0)
    expected = make("mlp", torch.float32)
    optimizer = torch.optim.SGD(expected.parameters(), 0.1)
    for step in range(3):
        inputs, targets = batch("mlp", step, torch.float32)
        spoiled = step == 1
        zero.zero_grad()
        own = [share(part, group.rank, group.size) for part in (inputs, targets)]
        factor = float("inf") if spoiled and group.rank == 1 else 1.0
        scaler.scale(loss_of(zero, *own).float() * factor).backward()
        if step == 2:
            scaler.unscale_(zero.optimizer)
            zero.clip_grad_norm(0.1)
        scaler.step(zero.optimizer)
        scaler.update()
        assert scaler.get_scale() == (64.0 if step == 0 else 32.0)
        if not spoiled:
            optimizer.zero_grad()
            loss_of(expected, inputs, targets).backward()
            if step == 2:
                torch.nn.utils.clip_grad_norm_(expected.parameters(), 0.1)
            optimizer.step()
    plain = torch.amp.GradScaler("cpu")
    zero.zero_grad()
    plain.scale(loss_of(zero, *own).float()).backward()
    assert "use unisono.parallel.ShardedGradScaler(zero)" in message_of(lambda: plain.step(zero.optimizer))
    assert "expected zero.optimizer" in message_of(lambda: scaler.step(zero))
    return furthest(zero.state_dict(), expected.state_dict())


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("stage", STAGES)
def test_with_a_loss_scale_all_ranks_skip_the_same_steps(stage, mixed):
    assert max(run_groups(scaled, 2, stage, mixed)) < (2e-3 if mixed else 1e-5)
