"""DataParallel averages the gradients of unusual models and in unusual training loops."""

from __future__ import annotations

import gc
import weakref

import pytest

torch = pytest.importorskip("torch")

from gradients import assert_same, check_gradients, gradients_of, numbers  # noqa: E402
from models import batch, loss_of, make, share, train  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.errors import CommError, UsageError  # noqa: E402
from unisono.parallel import DataParallel, record  # noqa: E402

# ---- backward passes ---------------------------------------------------------------------------------------------


def accumulate(group):
    def step(model, rank):
        for turn in range(3):
            loss = loss_of(model, *(share(part, rank, group.size) for part in batch("mlp", turn)))
            if turn < 2 and isinstance(model, DataParallel):
                with record() as log, model.no_sync():
                    loss.backward()
                assert len(log) == 0
            else:
                loss.backward()

    check_gradients(group, make("mlp"), step)


def test_no_sync_postpones_sending_to_the_next_backward_pass_which_sends_the_sums():
    run_groups(accumulate, 2)


def go_on(group):
    def twice(model, rank):
        """Two backward passes of one graph, and one of another, without zero_grad."""
        loss = model(numbers(rank, 3, 8)).square().sum()
        loss.backward(retain_graph=True)
        loss.backward()
        model(numbers(rank + 10, 3, 8)).sum().backward()

    def together(model, rank):
        first, second = model(numbers(rank, 3, 8)), model(numbers(rank + 10, 2, 8))
        (first.square().sum() + second.sum()).backward()

    def halves(model, rank):
        """Each backward pass reaches some of the parameters."""
        first, second = (
            layer for layer in model.modules() if isinstance(layer, nn.Linear) and layer.out_features > 5
        )
        first(numbers(rank, 3, 8)).square().sum().backward()
        second(numbers(rank, 3, 16)).square().sum().backward()

    for step in (twice, together, halves):
        check_gradients(group, make("mlp"), step)


def test_gradients_of_several_backward_passes_are_summed():
    run_groups(go_on, 3)


# ---- parameters --------------------------------------------------------------------------------------------------


class Choosy(nn.Module):
    """Uses different layers on each rank, and never the last one."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.layers = nn.ModuleList([nn.Linear(4, 4).double() for _ in range(5)])

    def forward(self, x, rank):
        for place in (0, 1 + rank, 3):
            x = torch.tanh(self.layers[place](x))
        return x


def leave_unused(group, bucket_bytes):
    def step(model, rank):
        model(numbers(rank, 3, 4), rank).sum().backward()

    check_gradients(group, Choosy(), step, bucket_bytes=bucket_bytes)
    # With weight decay and momentum, a gradient of zero changes a parameter; a missing gradient does not.
    ours = DataParallel(Choosy(), group, bucket_bytes=bucket_bytes)
    theirs = DistributedDataParallel(Choosy(), find_unused_parameters=True)
    optimizers = [torch.optim.AdamW(model.parameters(), 0.01) for model in (ours, theirs)]
    for turn in range(4):
        for model, optimizer in zip((ours, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            rank = group.rank if turn % 2 else 0  # in every other step all ranks use the same layers
            model(numbers(group.rank, 3, 4), rank).sum().backward()
            optimizer.step()
        none = {name for name, gradient in gradients_of(ours).items() if gradient is None}
        assert none == {name for name, gradient in gradients_of(theirs.module).items() if gradient is None}
        assert none
        for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert_same(mine, other)


@pytest.mark.parametrize("bucket_bytes", [1, 400, 1 << 20])
@pytest.mark.parametrize("kind", ["gloo", "unisono"])
def test_unused_parameters_are_treated_like_find_unused_parameters_of_torch_ddp(kind, bucket_bytes):
    run_groups(leave_unused, 2, bucket_bytes, kind=kind)


class Odd(nn.Module):
    """Parameters that are shared, frozen, of several types, empty, scalars, and not contiguous."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6).double()
        self.tied = nn.Linear(6, 6).double()
        self.tied.weight = self.b.weight
        self.frozen = nn.Linear(6, 6).double().requires_grad_(False)
        self.short = nn.Parameter(torch.randn(6, dtype=torch.bfloat16))
        self.scalar = nn.Parameter(torch.tensor(0.5, dtype=torch.float64))
        self.empty = nn.Parameter(torch.zeros(0, 3, dtype=torch.float64))
        self.conv = nn.Conv2d(3, 5, 3, padding=1).double().to(memory_format=torch.channels_last)

    def forward(self, x):
        x = torch.tanh(self.a(x.float()).double())
        x = self.tied(torch.tanh(self.b(x))) * self.scalar + self.frozen(x) + self.short.double() + self.empty.sum()
        images = x.view(-1, 3, 2, 2).to(memory_format=torch.channels_last)
        return self.conv(images).square().sum()


def be_odd(group, bucket_bytes):
    def step(model, rank):
        # small numbers, so that sums in bfloat16 and float32 do not depend on their order
        model(numbers(0, 4, 6)).backward()

    wrapped = check_gradients(group, Odd(), step, bucket_bytes=bucket_bytes)
    assert {bucket.dtype for bucket in wrapped.buckets} == {torch.float32, torch.float64, torch.bfloat16}
    assert [name for bucket in wrapped.buckets for name in bucket.names].count("b.weight") == 1
    assert wrapped.frozen.weight.grad is None


@pytest.mark.parametrize("bucket_bytes", [1, 300, 1 << 20])
def test_shared_frozen_mixed_and_oddly_shaped_parameters_are_averaged(bucket_bytes):
    run_groups(be_odd, 2, bucket_bytes)


class OwnExpert(nn.Module):
    """Has a layer that differs between ranks, even in shape."""

    def __init__(self, rank):
        super().__init__()
        torch.manual_seed(6)
        self.common = nn.Linear(4, 4).double()
        self.expert = nn.Linear(4, rank + 1).double()
        for parameter in self.expert.parameters():
            parameter.is_own = True

    def forward(self, x):
        return self.expert(torch.tanh(self.common(x))).sum()


def leave_alone(group):
    def is_own(parameter):
        return hasattr(parameter, "is_own")

    alone = [OwnExpert(rank) for rank in range(group.size)]
    for rank, model in enumerate(alone):
        model(numbers(rank, 3, 4)).backward()
    model = DataParallel(OwnExpert(group.rank), group, local=is_own)
    with record() as log:
        model(numbers(group.rank, 3, 4)).backward()
    assert [entry.name for entry in log] == ["common.bias..common.weight", "(which gradients exist)"]
    assert_same(model.common.weight.grad, sum(each.common.weight.grad for each in alone) / group.size)
    assert_same(model.expert.weight.grad, alone[group.rank].expert.weight.grad)
    with pytest.raises(UsageError, match="every trained parameter of Linear is local"):
        DataParallel(model.expert, group, local=is_own)


def test_local_parameters_are_not_averaged():
    run_groups(leave_alone, 3)


# ---- the wrapper -------------------------------------------------------------------------------------------------


def be_the_module(group):
    model = make("conv")
    model.answer = 42
    wrapped = DataParallel(model, group)
    assert list(wrapped.state_dict()) == list(model.state_dict())
    assert [name for name, _ in wrapped.named_parameters()] == [name for name, _ in model.named_parameters()]
    assert [name for name, _ in wrapped.named_buffers()] == [name for name, _ in model.named_buffers()]
    assert wrapped.answer == 42
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = wrapped.no_such_thing
    other = {key: value + 1 for key, value in model.state_dict().items()}
    assert not wrapped.load_state_dict(other).missing_keys
    assert torch.equal(model[0].weight, other["0.weight"])
    whole = nn.Sequential(nn.Linear(2, 2), wrapped)
    assert "1.0.weight" in whole.state_dict()
    whole.load_state_dict(whole.state_dict())
    with pytest.raises(RuntimeError, match=r"1\.module\.0\.weight"):
        whole.load_state_dict({key: value for key, value in whole.state_dict().items() if key != "1.0.weight"})
    assert wrapped.unwrap() is model
    DataParallel(model, group)


def test_names_state_and_attributes_are_those_of_the_module():
    run_groups(be_the_module, 1)


def let_go(group):
    model = nn.Linear(4, 4)
    wrapped = DataParallel(model, group)
    wrapped(torch.ones(2, 4)).sum().backward()
    known = weakref.ref(wrapped)
    del wrapped
    gc.collect()
    assert known() is None
    with pytest.raises(UsageError, match="keep it for as long as you train"):
        model(torch.ones(2, 4)).sum().backward()
    wrapped, known = DataParallel(model, group), weakref.ref(model)
    del model, wrapped
    gc.collect()
    assert known() is None


def test_memory_is_freed_when_the_last_reference_to_the_module_is_dropped():
    run_groups(let_go, 1)


def with_every_optimizer(group):
    for kind in (torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad, torch.optim.NAdam):
        together, alone = DataParallel(make("mlp"), group, bucket_bytes=200), make("mlp")
        for model, rank, size in ((together, group.rank, group.size), (alone, 0, 1)):
            train(model, "mlp", 3, rank, size, kind(model.parameters(), lr=0.01))
        for mine, other in zip(together.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(mine, other, rtol=0, atol=1e-8)


def test_every_optimiser_works():
    run_groups(with_every_optimizer, 2)


# ---- checkpoints -------------------------------------------------------------------------------------------------


class Checkpointed(nn.Module):
    def __init__(self, reentrant, unused=False):
        super().__init__()
        torch.manual_seed(5)
        self.layers = nn.ModuleList([nn.Linear(4, 4).double() for _ in range(4)])
        self.reentrant, self.unused = reentrant, unused

    def forward(self, x):
        x.requires_grad_()
        for layer in self.layers[self.unused :]:
            x = checkpoint(lambda y, layer=layer: torch.tanh(layer(y)), x, use_reentrant=self.reentrant)
        return x.sum()


def recompute(group):
    def step(model, rank):
        model(numbers(rank, 3, 4)).backward()

    for model in (Checkpointed(False), Checkpointed(True), Checkpointed(False, unused=True)):
        check_gradients(group, model, step, bucket_bytes=100)
    model = DataParallel(Checkpointed(True, unused=True), group, bucket_bytes=100)
    step(model, group.rank)
    with pytest.raises(CommError, match=r"rank \d the last backward pass stopped after 4 of 6 buckets"):
        step(model, group.rank)


def test_activations_can_be_recomputed_in_the_backward_pass():
    """Under a reentrant checkpoint, which torch discourages, an unused parameter makes the next pass raise."""
    run_groups(recompute, 2)


def gradients_of_gradients(group):
    def penalty(model, rank):
        x = numbers(rank, 3, 8).requires_grad_()
        (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        slope.square().sum().backward()

    check_gradients(group, make("mlp"), penalty)
    model = DataParallel(make("mlp"), group)
    with pytest.raises(UsageError, match="create_graph"):
        model(numbers(0, 3, 8)).sum().backward(create_graph=True)


@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_gradient_penalty_works_and_create_graph_is_rejected():
    run_groups(gradients_of_gradients, 2)
