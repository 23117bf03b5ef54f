"""The memory of a rank matches the formulas, to the byte."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from models import batch, loss_of, make, share, train  # noqa: E402
from torch import nn  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.parallel import Zero, memory  # noqa: E402


def adam(shards):
    return torch.optim.AdamW(shards, 1e-3)


def one_step(group, stage, mixed):
    zero = Zero(make("transformer", torch.float32), group, optimizer=adam, stage=stage, mixed_precision=mixed)
    train(zero, "transformer", 1, group.rank, group.size, optimizer=zero)  # the first step allocates Adam's state
    zero.zero_grad()
    loss_of(zero, *(share(part, group.rank, group.size) for part in batch("transformer", 1))).backward()
    return memory.measure(zero), memory.padded(zero), len(zero.trained)


@pytest.mark.parametrize("mixed", [None, torch.bfloat16], ids=["float32", "mixed"])
@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_measured_bytes_match_the_formula(size, stage, mixed):
    kind = memory.FLOAT32_ADAM if mixed is None else memory.MIXED_ADAM
    for held, parameters, units in run_groups(one_step, size, stage, mixed):
        expected = memory.formula(stage, parameters, size, kind)
        assert parameters % size == 0
        assert 0 <= parameters - 4128 < 3 * size  # the padding of three units
        assert (held.parameters, held.gradients) == (expected.parameters, expected.gradients)
        assert held.optimizer == expected.optimizer + units * memory.STEP_BYTES
        block, root = 1884, 360  # parameters of the units
        width = 4 if mixed is None else 2
        roomy = [-(-numel // size) * size * width for numel in (root, block, block)]
        assert held.unit_buffers == (sum(-(-each // 64) * 64 for each in roomy) if stage == 3 else 0)
        assert held.gradient_buffers == (2 * max(roomy) if stage >= 2 else 0)


def test_stage_0_holds_a_model_and_its_optimiser():
    def alone(_):
        model = make("transformer", torch.float32)
        optimizer = adam(model.parameters())
        train(model, "transformer", 1, optimizer=optimizer)
        return memory.measure_alone(model, optimizer), len(list(model.parameters()))

    held, parameters = run_groups(alone, 1)[0]
    expected = memory.formula(0, 4128, 1, memory.FLOAT32_ADAM)
    assert expected.total == 16 * 4128
    assert held.total == expected.total + parameters * memory.STEP_BYTES


@pytest.mark.parametrize(
    ("stage", "mixed_bytes", "float32_bytes"),
    [(0, 16, 16), (1, 4 + 12 / 4, 8 + 8 / 4), (2, 2 + 14 / 4, 4 + 12 / 4), (3, 16 / 4, 16 / 4)],
)
def test_the_formulas_match_the_table(stage, mixed_bytes, float32_bytes):
    assert memory.formula(stage, 4000, 4).total == 4000 * mixed_bytes
    assert memory.formula(stage, 4000, 4, memory.FLOAT32_ADAM).total == 4000 * float32_bytes


def deep(group, layers, prefetch):
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(layers)))
    zero = Zero(model, group, optimizer=adam, prefetch=prefetch)
    most = 0
    arrive = zero._gatherer._start

    def watched(resident, phase, async_op):
        nonlocal most
        arrive(resident, phase, async_op)
        present = [each for each in zero._gatherer.residents.values() if each.is_whole or each.works]
        most = max(most, sum(flat.padded_numel for each in present for flat in each.flats))

    zero._gatherer._start = watched
    for _ in range(2):
        zero(torch.ones(2, 8)).sum().backward()
    return memory.measure(zero).unit_buffers // 4, most


@pytest.mark.parametrize(("prefetch", "units"), [(True, 2), (False, 1)])
def test_at_most_two_units_are_whole_at_a_time_at_any_depth(prefetch, units):
    unit = 72  # parameters of a layer; 288 bytes are padded to 320
    for layers in (3, 9):
        for rooms, most in run_groups(deep, 2, layers, prefetch):
            assert rooms == units * 80
            assert most == units * unit


def test_the_table_gives_gigabytes_per_rank():
    assert memory.table(memory.MIXED_ADAM, 7_500_000_000, [64]).splitlines() == [
        "| stage | 64 ranks |", "|---|---:|", "| 0 | 120.0 GB |", "| 1 | 31.4 GB |", "| 2 | 16.6 GB |",
        "| 3 | 1.9 GB |",
    ]  # fmt: skip
