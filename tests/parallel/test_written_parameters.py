"""A write into parameters after a module was wrapped is kept or raises an error; it is never lost."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.errors import UsageError  # noqa: E402
from unisono.parallel import Zero  # noqa: E402

RATE = 2.0**-12  # less than the precision of bfloat16 near 1


def sgd(parameters):
    return torch.optim.SGD(parameters, RATE)


def make():
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 5))
    for parameter in model.parameters():
        nn.init.ones_(parameter)
    return model


def fill(parameter):
    with torch.no_grad():
        parameter.fill_(3.0)


def fill_data(parameter):
    parameter.data.fill_(3.0)


def replace_data(parameter):
    parameter.data = torch.full_like(parameter.data, 3.0)


WAYS = (fill, fill_data, replace_data)
WRITTEN = "0.weight"


def written(group, settings, write, moment):
    """Write into one parameter at a moment of the second step; return the states before and after its update."""
    model = make()
    zero = Zero(model, group, optimizer=sgd, **settings)
    x = torch.ones(2, 4)
    zero(x).sum().backward()
    zero.step()
    zero.zero_grad()
    first = zero.state_dict()
    try:
        if moment == "before the forward pass":
            write(model.get_parameter(WRITTEN))
        zero(x).sum().backward()
        if moment == "before the update":
            write(model.get_parameter(WRITTEN))
        second = zero.state_dict() if moment == "before the forward pass" else None
        zero.step()
    except UsageError as error:
        absent = settings["stage"] == 3
        shown = {name: parameter.isnan().all().item() for name, parameter in model.named_parameters()}
        return str(error), absent and all(shown.values()), None
    return first, second, zero.state_dict()


@pytest.mark.parametrize("moment", ["before the forward pass", "before the update"])
@pytest.mark.parametrize("mixed", [None, torch.bfloat16])
@pytest.mark.parametrize("stage", [1, 2])
def test_in_stages_1_and_2_training_continues_from_a_written_value(stage, mixed, moment):
    settings = {"stage": stage, "mixed_precision": mixed}
    for write in (fill, fill_data):
        for first, second, last in run_groups(written, 2, settings, write, moment):
            assert first[WRITTEN].ne(1).all(), "an update below the precision of bfloat16 was lost"
            if second is not None:
                assert second[WRITTEN].eq(3).all()
                assert all(torch.equal(second[name], first[name]) for name in first if name != WRITTEN)
            assert last[WRITTEN].sub(3).abs().gt(0).all()
            assert last[WRITTEN].sub(3).abs().lt(0.1).all()


@pytest.mark.parametrize("moment", ["before the forward pass", "before the update"])
@pytest.mark.parametrize("mixed", [None, torch.bfloat16])
@pytest.mark.parametrize("stage", [1, 2])
def test_in_stages_1_and_2_replacing_the_memory_of_a_parameter_is_an_error(stage, mixed, moment):
    settings = {"stage": stage, "mixed_precision": mixed}
    for message, _, _ in run_groups(written, 2, settings, replace_data, moment):
        assert "parameter '0.weight' was given other memory after the module was wrapped" in message


@pytest.mark.parametrize("moment", ["before the forward pass", "before the update"])
@pytest.mark.parametrize("mixed", [None, torch.bfloat16])
def test_in_stage_3_a_write_into_an_absent_parameter_is_an_error(mixed, moment):
    for write in WAYS:
        for message, is_nan, _ in run_groups(written, 2, {"stage": 3, "mixed_precision": mixed}, write, moment):
            name = "a parameter (through parameter.data)" if write is fill_data else "parameter '0.weight'"
            assert f"{name} was written to, or given other memory, after the module was wrapped" in message
            assert is_nan, "an absent parameter is not NaN again"


class Clamped(nn.Linear):
    def forward(self, x):
        with torch.no_grad():
            self.weight.clamp_(-0.5, 0.5)
        return super().forward(x)


def clamp(group, stage):
    model = nn.Sequential(Clamped(4, 4), nn.Linear(4, 4))
    zero = Zero(model, group, optimizer=sgd, stage=stage, broadcast_parameters=True)
    try:
        zero(torch.ones(2, 4)).sum().backward()
        zero.step()
    except UsageError as error:
        return str(error)
    return zero.state_dict()["0.weight"].abs().max().item()


def test_in_stage_3_a_forward_that_writes_into_its_parameters_is_an_error():
    for message in run_groups(clamp, 2, 3):
        assert "parameter '0.weight' was written to" in message
    for stage in (1, 2):
        assert max(run_groups(clamp, 2, stage)) < 0.51


def change_a_copy(group):
    zero = Zero(make(), group, optimizer=sgd)
    with zero.whole_parameters():
        for parameter in zero.parameters():
            fill(parameter)
    assert all(parameter.isnan().all() for parameter in zero.parameters())
    zero(torch.ones(2, 4)).sum().backward()
    zero.step()
    return zero.state_dict()["0.bias"].max().item()


def test_whole_parameters_are_a_copy_that_can_be_changed():
    assert max(run_groups(change_a_copy, 2)) < 1.1
