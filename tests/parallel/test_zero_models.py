"""Zero trains unusual models: tied, frozen, unused, repeated, nested and skipped modules, and several dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from models import furthest  # noqa: E402
from torch import nn  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.parallel import Zero  # noqa: E402

ROWS = 12


class Body(nn.Module):
    """Three layers of one width, each a unit, and a number in the root."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        for layer in self.order():
            x = torch.tanh(layer(x))
        return x * self.scale

    def order(self):
        return self.layers


class TiedAcrossUnits(Body):
    def __init__(self):
        super().__init__()
        self.layers[0].weight = self.layers[2].weight


class CalledTwice(Body):
    def order(self):
        first, second, third = self.layers
        return first, second, first, third, third


class OtherOrder(Body):
    def order(self):
        return reversed(self.layers)


class NotCalled(Body):
    def order(self):
        return self.layers[0], self.layers[2]


class Frozen(Body):
    def __init__(self):
        super().__init__()
        self.layers[1].requires_grad_(False)
        self.layers[2].bias.requires_grad_(False)
        self.scale.requires_grad_(False)


class PartlyUsed(nn.Linear):
    """A layer with a parameter that gets no gradient."""

    def __init__(self):
        super().__init__(4, 4)
        self.spare = nn.Parameter(torch.randn(3))


class Unused(Body):
    def __init__(self):
        super().__init__()
        self.layers[1] = PartlyUsed()


class TwoTypes(nn.Module):
    """A layer whose weight is float32 and whose bias float64."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.bias = nn.Parameter(torch.randn(4, dtype=torch.float64))

    def forward(self, x):
        return (x.float() @ self.weight).double() + self.bias


class SeveralTypes(Body):
    def __init__(self):
        super().__init__()
        self.double()
        self.layers[1] = TwoTypes()


@dataclass
class Result:
    hidden: list[Any]
    score: Any
    note: str = "nothing to see"


class InTuple(nn.Linear):
    def __init__(self):
        super().__init__(4, 4)

    def forward(self, x):
        return super().forward(x).tanh(), (x @ self.weight).sin()


class InDict(InTuple):
    def forward(self, x):
        return {"x": super().forward(x)[0], "more": [x * self.bias], "count": 3}


class InDataclass(InTuple):
    def forward(self, x):
        out, aside = super().forward(x)
        return Result([out], aside)


class ManyOutputs(Body):
    """Units that return tuples, dicts and dataclasses; early outputs are used late."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([InTuple(), InDict(), InDataclass()])

    def forward(self, x):
        first, second, third = self.layers
        x, aside = first(x)
        found = second(x)
        result = third(found["x"])
        return Result([result.score], aside + found["more"][0] + result.hidden[0] * self.scale)


class Nested(nn.Module):
    """A unit with a unit inside: its weight is used before and after the inner unit runs."""

    def __init__(self):
        super().__init__()
        self.inside = nn.Linear(4, 4)
        self.weight = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        return torch.tanh(self.inside(torch.tanh(x @ self.weight))) @ self.weight.t()


class NestedUnits(Body):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Nested() for _ in range(3)])


def sgd(parameters):
    return torch.optim.SGD(parameters, 0.1, momentum=0.9)


def steps(model, optimizer, calls, rank=0, size=1):
    source = torch.Generator().manual_seed(5)
    for _ in range(4):
        rows = [torch.randn(ROWS, 4, generator=source, dtype=torch.float64) for _ in range(calls)]
        optimizer.zero_grad()
        outputs = [model(each.chunk(size)[rank]) for each in rows]
        sum(_value(output).square().mean() for output in outputs).backward()
        optimizer.step()


def _value(output):
    return output.score if isinstance(output, Result) else output


def made(kind):
    torch.manual_seed(3)
    model = kind()
    return model if kind is SeveralTypes else model.double()


def trained(group, kind, settings, calls):
    found = {}
    alone = made(kind)
    steps(alone, sgd(alone.parameters()), calls)
    for stage in (1, 2, 3):
        zero = Zero(made(kind), group, optimizer=sgd, stage=stage, **settings)
        steps(zero, zero, calls, group.rank, group.size)
        found[stage] = furthest(zero.state_dict(), alone.state_dict())
    return found


@pytest.mark.parametrize(
    "kind", [Body, TiedAcrossUnits, CalledTwice, OtherOrder, NotCalled, Frozen, Unused, ManyOutputs]
)
def test_training_matches_one_process(kind):
    for found in run_groups(trained, 3, kind, {}, 1):
        assert max(found.values()) < 1e-10, found


def test_training_with_parameters_of_several_dtypes_matches_one_process():
    for found in run_groups(trained, 3, SeveralTypes, {}, 1):
        assert max(found.values()) < 1e-6, found  # float32 is one of them


def test_training_with_nested_units_matches_one_process():
    inside = {"units": lambda name, module: isinstance(module, Nested | nn.Linear)}
    for found in run_groups(trained, 2, NestedUnits, inside, 1):
        assert max(found.values()) < 1e-10, found


@pytest.mark.parametrize("kind", [Body, CalledTwice])
def test_training_with_two_forward_passes_per_backward_pass_matches_one_process(kind):
    for settings in ({}, {"free_after_forward": False}, {"prefetch": False}):
        for found in run_groups(trained, 2, kind, settings, 2):
            assert max(found.values()) < 1e-10, found


class Skipping(Body):
    """Skips some layers, which differ between ranks."""

    skipped: tuple[int, ...] = ()

    def order(self):
        return [layer for number, layer in enumerate(self.layers) if number not in self.skipped]


def skipping(group, stage):
    """Train while each rank skips a different layer; the missing gradients count as zero."""
    gradients = []
    x = torch.ones(2, 4, dtype=torch.float64)
    for rank in range(group.size):
        alone = made(Skipping)
        alone.skipped = (rank,)
        alone(x).sum().backward()
        gradients.append([torch.zeros_like(p) if p.grad is None else p.grad for p in alone.parameters()])
    expected = made(Skipping)
    for parameter, *found in zip(expected.parameters(), *gradients, strict=True):
        parameter.grad = torch.stack(found).mean(0)
    sgd(expected.parameters()).step()

    model = made(Skipping)
    zero = Zero(model, group, optimizer=sgd, stage=stage)
    zero(x)  # the first pass, which determines the order, runs all layers
    model.skipped = (group.rank,)
    zero(x).sum().backward()
    zero.step()
    return furthest(zero.state_dict(), expected.state_dict())


@pytest.mark.parametrize("stage", [1, 2])
def test_in_stages_1_and_2_ranks_may_skip_units(stage):
    assert max(run_groups(skipping, 3, stage)) < 1e-12


def test_in_stages_1_and_2_ranks_may_skip_units_in_the_first_step():
    assert max(run_groups(skipping_at_once, 3)) < 1e-12


def skipping_at_once(group):
    model = made(Skipping)
    model.skipped = (group.rank,)
    zero = Zero(model, group, optimizer=sgd, stage=2)
    zero(torch.ones(2, 4, dtype=torch.float64)).sum().backward()
    zero.step()
    state = zero.state_dict()
    states = group.all_gather_object({name: value.tolist() for name, value in state.items()})
    return 0.0 if all(each == states[0] for each in states) and model.scale != 1 else 1.0


def evaluating(group):
    model = made(Body)
    x = torch.ones(2, 4, dtype=torch.float64)
    expected = model(x).detach()
    zero = Zero(model, group, optimizer=sgd)
    zero.eval()
    with torch.no_grad():
        assert torch.equal(zero(x), expected)
    with torch.inference_mode():
        assert torch.equal(zero(x), expected)
    assert torch.equal(zero(x).detach(), expected)  # with a graph that is never used
    return bool(model.layers[0].weight.isnan().all())


def test_a_model_can_be_evaluated_without_training():
    assert run_groups(evaluating, 3) == [True] * 3


def in_bfloat16(group, stage):
    model, master = made(Body).float(), made(Body).float()
    computing = made(Body).to(torch.bfloat16)
    optimizer = sgd(master.parameters())
    zero = Zero(model, group, optimizer=sgd, stage=stage, mixed_precision=torch.bfloat16)
    for step in range(4):
        rows = torch.randn(ROWS, 4, generator=torch.Generator().manual_seed(step))
        computing.zero_grad()
        computing(rows.to(torch.bfloat16)).float().square().mean().backward()
        for exact, rough in zip(master.parameters(), computing.parameters(), strict=True):
            exact.grad = rough.grad.float()
        optimizer.step()
        for exact, rough in zip(master.parameters(), computing.parameters(), strict=True):
            rough.data.copy_(exact.data)
        zero.zero_grad()
        output = zero(rows.chunk(group.size)[group.rank])
        assert output.dtype == torch.bfloat16
        output.float().square().mean().backward()
        zero.step()
    found = zero.state_dict()
    assert {value.dtype for value in found.values()} == {torch.float32}
    return furthest(found, master.state_dict())


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_mixed_precision_computes_in_bfloat16_and_updates_in_float32(stage):
    assert run_groups(in_bfloat16, 1, stage) == [0.0]
    assert 0.0 < max(run_groups(in_bfloat16, 2, stage)) < 2e-3  # gradients of parts of the batch, rounded to 8 bits


class Counting(Body):
    """Counts in steps that differ between ranks."""

    by = 1

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x):
        self.count += self.by
        return super().forward(x)


def counted(group, broadcast):
    model = made(Counting)
    model.by = group.rank + 1
    model.count.fill_(10.0 * group.rank)
    zero = Zero(model, group, optimizer=sgd, broadcast_buffers=broadcast)
    x = torch.ones(2, 4, dtype=torch.float64)
    zero(x)
    zero(x)
    zero.eval()(x)
    return zero.state_dict()["count"].tolist()


@pytest.mark.parametrize(("broadcast", "expected"), [(True, [3, 1 + 2 + 2]), (False, [3, 2 + 2 + 2])])
def test_rank_0_broadcasts_buffers_at_the_start_and_before_each_training_pass(broadcast, expected):
    assert run_groups(counted, 2, broadcast) == [[float(each)] * 2 for each in expected]
