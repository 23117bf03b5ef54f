"""Gradients that arrive after their unit was averaged are averaged as well, in every stage and on every rank."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from block_models import UNITS, Blocks, make, sgd, train, train_alone  # noqa: E402
from models import furthest  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.errors import Aborted, MismatchError, UsageError  # noqa: E402
from unisono.parallel import DataParallel, Zero, mesh  # noqa: E402


class NeverCalled(Blocks):
    """Uses the weight of the last block but never calls its forward."""

    def forward(self, x):
        last = self.blocks[-1]
        return self.run(torch.tanh(functional.linear(x, last.weight, last.bias)), self.blocks[:-1])


class UsedBefore(Blocks):
    """Uses the weight of the last block before all others, like an embedding that is tied to a head."""

    def forward(self, x):
        return self.run(torch.tanh(functional.linear(x, self.blocks[-1].weight)), self.blocks)


class Twice(Blocks):
    def forward(self, x):
        return self.run(x, (self.blocks[3], *self.blocks, self.blocks[3], self.blocks[0]))


class Checkpointed(Blocks):
    reentrant = False

    def forward(self, x):
        for block in self.blocks:
            x = torch.tanh(checkpoint(block, x, use_reentrant=self.reentrant))
        return x


class Reentrant(Checkpointed):
    reentrant = True


class ReentrantGroups(Blocks):
    def forward(self, x):
        for first in range(0, UNITS, 3):
            x = checkpoint(self.run, x, self.blocks[first : first + 3], use_reentrant=True)
        return x


class SharedReentrant(Blocks):
    def forward(self, x):
        for block in (self.blocks[0], *self.blocks, self.blocks[0]):
            x = torch.tanh(checkpoint(block, x, use_reentrant=True))
        return x


class Attention(nn.Module):
    """torch's layers, with all their linear layers as units; attention never calls ``out_proj``."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            [nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True) for _ in range(3)]
        )

    def forward(self, x):
        x = x.unsqueeze(1).expand(-1, 3, -1) * torch.arange(1.0, 4.0, dtype=x.dtype)[:, None]
        for layer in self.layers:
            x = layer(x)
        return x[:, 0]


def is_linear(name, module):
    return isinstance(module, nn.Linear)


NETS = (
    Blocks, NeverCalled, UsedBefore, Twice, Checkpointed, Reentrant, ReentrantGroups, SharedReentrant, Attention,
)  # fmt: skip
# In stage 3 a weight is not whole outside the forward of its unit.
REJECTED_IN_STAGE_3 = {
    NeverCalled: "parameter 'blocks.6.weight' was used outside the forward of its unit, 'blocks.6'",
    Attention: "parameter 'layers.0.self_attn.out_proj.weight' was used outside the forward of its unit",
    UsedBefore: "parameter 'blocks.6.weight' was used outside the forward of its unit, 'blocks.6'",
}


def differences(group, stage):
    """Return the largest difference from one process, or the error, for each net."""
    results = {}
    for kind in NETS:
        model = make(kind)
        if stage == 0:
            wrapped = DataParallel(model, group)
            optimizer = sgd(model.parameters())
        else:
            units = is_linear if kind is Attention else None
            wrapped = optimizer = Zero(model, group, optimizer=sgd, stage=stage, units=units)
        try:
            state = train(wrapped, optimizer, group.rank, group.size)
        except UsageError as error:
            results[kind] = str(error)
        else:
            results[kind] = furthest(state, train_alone(kind))
    return results


@pytest.mark.parametrize("size", [pytest.param(2, marks=pytest.mark.long), 3])
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_late_gradients_are_averaged(stage, size):
    for results in run_groups(differences, size, stage):
        for kind, difference in results.items():
            if stage == 0 and kind is SharedReentrant:
                assert "arrived twice in one backward pass" in difference
            elif stage == 3 and kind in REJECTED_IN_STAGE_3:
                assert REJECTED_IN_STAGE_3[kind] in difference
            else:
                assert isinstance(difference, float), (kind, difference)
                assert difference < 1e-10, kind


class LateOnOneRank(Blocks):
    """Uses the weight of the last block before all others, on one rank only; the others skip two blocks."""

    uses = False

    def forward(self, x):
        if self.uses:
            return self.run(torch.tanh(functional.linear(x, self.blocks[-1].weight)), self.blocks)
        return self.run(x, (*self.blocks[:2], *self.blocks[4:]))


def gradients_of_one_rank(group, stage):
    model = make(LateOnOneRank)
    zero = Zero(model, group, optimizer=sgd, stage=stage)
    x = torch.randn(group.size, 5, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected = make(LateOnOneRank)
    optimizer = sgd(expected.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        for rank in range(group.size):
            expected.uses = rank == 1
            (expected(x[rank]).square().mean() / group.size).backward()
        optimizer.step()
        zero.zero_grad()
        model.uses = group.rank == 1
        zero(x[group.rank]).square().mean().backward()
        zero.step()
    state = zero.state_dict()
    return max(float((state[name] - value).abs().max()) for name, value in expected.state_dict().items())


@pytest.mark.parametrize("stage", [1, 2])
def test_a_gradient_may_be_late_on_one_rank_only(stage):
    """All units have one size, so an average that only one rank starts would be matched with that of another unit."""
    assert max(run_groups(gradients_of_one_rank, 3, stage)) < 1e-10


class OtherOrderLater(Blocks):
    """Runs two blocks of one size in a different order, on one rank, from the second forward pass on."""

    swapped = False

    def forward(self, x):
        first, second, *rest = self.blocks
        return self.run(x, (second, first, *rest) if self.swapped else self.blocks)


def swap_after_the_first_pass(group, stage, trains, prefetch=True, replicas=1):
    model = make(OtherOrderLater)
    inner, across = group, None
    if replicas > 1:
        grid = mesh(group, replica=replicas, shard=-1)
        inner, across = grid.shard, grid.replica
    zero = Zero(model, inner, replicate=across, optimizer=sgd, stage=stage, prefetch=prefetch)
    x = torch.ones(2, 4, dtype=torch.float64)
    zero(x).sum().backward()
    model.swapped = group.rank == 1
    with torch.set_grad_enabled(trains):
        output = zero(x).sum()
    if trains:
        zero.zero_grad()
        output.backward()
        zero.step()
    return [value.tolist() for value in zero.state_dict().values()]


def error_of(group, trains, prefetch, kinds, replicas=1):
    with pytest.raises(kinds) as error:
        swap_after_the_first_pass(group, 3, trains, prefetch, replicas)
    return str(error.value)


@pytest.mark.parametrize("trains", [True, False])
def test_in_stage_3_a_rank_that_changes_the_order_of_units_later_is_named(trains):
    """Blocks of one size could be mistaken for each other."""
    for message in run_groups(error_of, 2, trains, False, UsageError):
        assert "rank 1 ran the units root, blocks.1, blocks.0" in message


def test_in_hybrid_sharding_the_ranks_of_all_replicas_raise_if_one_rank_changes_the_order_of_units():
    """Only the ranks of one replica take part in the calls that reveal the difference."""
    for message in run_groups(error_of, 4, True, False, UsageError, 2):
        assert "rank 1 ran the units root, blocks.1, blocks.0" in message


def test_in_stage_3_units_prefetched_in_a_different_order_raise_immediately():
    run_groups(error_of, 2, True, True, (UsageError, MismatchError, Aborted))


@pytest.mark.parametrize("stage", [1, 2])
def test_in_stages_1_and_2_a_rank_may_change_the_order_of_units(stage):
    one, two = run_groups(swap_after_the_first_pass, 2, stage, True)
    assert one == two


class NeverCalledLater(NeverCalled):
    """Uses the weight of a block that is never called, from the second forward pass on."""

    later = False

    def forward(self, x):
        return super().forward(x) if self.later else self.run(x, self.blocks[:-1])


def use_later(group):
    model = make(NeverCalledLater)
    zero = Zero(model, group, optimizer=sgd)
    x = torch.ones(2, 4, dtype=torch.float64)
    zero(x).sum().backward()
    model.later = True
    with pytest.raises(UsageError) as error:
        zero(x).sum().backward()
    return str(error.value)


def test_in_stage_3_a_unit_that_is_used_without_a_call_of_its_forward_is_named():
    for message in run_groups(use_later, 2):
        assert "parameters of unit 'blocks.6' were used, but the forward of the unit was not called" in message
