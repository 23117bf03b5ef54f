"""Each stage makes the expected collectives, on the expected data, in the expected order."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from models import batch, loss_of, make, share, train  # noqa: E402
from torch import nn  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.parallel import Zero, record  # noqa: E402
from unisono.parallel.over_comm import CommGroup  # noqa: E402

BLOCK, ROOT = 15_072, 2_880  # bytes of the units of the small transformer in float64: 1884 and 360 parameters


def sgd(shards):
    return torch.optim.SGD(shards, 0.1)


def recorded(group, settings, replicas=1):
    shards = group.size // replicas
    inner, across = (group, None)
    if replicas > 1:
        inner = group.split(group.rank // shards, key=group.rank, axis="shard")
        across = group.split(group.rank % shards, key=group.rank, axis="replica")
    model = make("transformer")
    zero = Zero(model, inner, replicate=across, optimizer=sgd, **settings)
    train(zero, "transformer", 1, group.rank, group.size, optimizer=zero)
    inputs, targets = (share(part, group.rank, group.size) for part in batch("transformer", 1))
    with record() as log:
        loss_of(zero, inputs, targets).backward()
        zero.step()
    return [(entry.phase, entry.collective, entry.name, entry.bytes, entry.size) for entry in log]


def collectives(size, settings, replicas=1):
    """Return the collectives of a step, which must be the same on all ranks."""
    found = run_groups(recorded, size, settings, replicas)
    assert all(each == found[0] for each in found)
    return found[0]


def late(size):
    """Return the agreement at the end of a backward pass: a byte for each of three units, and one for a NaN."""
    return ("backward", "all_reduce", "(which gradients are late)", 4, size)


def late_and_order(size):
    """Return the agreement at the end of a backward pass in stage 3: also eight bytes for the order of the units."""
    return ("backward", "all_reduce", "(late gradients, order of the units)", 4 + 8, size)


def order(size):
    """Return the agreement at the end of a forward pass in stage 3."""
    return ("forward", "all_reduce", "(order of the units)", 8, size)


def update(size):
    return [
        ("update", "all_gather", "root", ROOT, size), ("update", "all_gather", "blocks.0", BLOCK, size),
        ("update", "all_gather", "blocks.1", BLOCK, size),
    ]  # fmt: skip


@pytest.mark.parametrize(("stage", "collective"), [(1, "all_reduce"), (2, "reduce_scatter")])
def test_stages_1_and_2_send_gradients_as_they_arise_and_then_the_new_parameters(stage, collective):
    assert collectives(2, {"stage": stage}) == [
        ("backward", collective, "blocks.1", BLOCK, 2), ("backward", collective, "blocks.0", BLOCK, 2),
        ("backward", collective, "root", ROOT, 2), late(2), *update(2),
    ]  # fmt: skip


def test_stage_3_gathers_each_unit_twice_and_scatters_its_gradients_while_the_next_unit_runs():
    assert collectives(3, {}) == [
        ("forward", "all_gather", "root", ROOT, 3),
        ("forward", "all_gather", "blocks.0", BLOCK, 3),  # starts before the root computes
        ("forward", "all_gather", "blocks.1", BLOCK, 3),  # starts before block 0 computes
        order(3),
        ("backward", "all_gather", "root", ROOT, 3),
        ("backward", "all_gather", "blocks.1", BLOCK, 3),
        ("backward", "all_gather", "blocks.0", BLOCK, 3),  # starts before block 1 computes
        ("backward", "reduce_scatter", "blocks.1", BLOCK, 3),  # starts before block 0 computes
        ("backward", "reduce_scatter", "blocks.0", BLOCK, 3),
        ("backward", "reduce_scatter", "root", ROOT, 3),
        late_and_order(3),
    ]


def test_without_prefetch_a_unit_is_gathered_when_it_is_needed():
    assert collectives(2, {"prefetch": False}) == [
        ("forward", "all_gather", "root", ROOT, 2), ("forward", "all_gather", "blocks.0", BLOCK, 2),
        ("forward", "all_gather", "blocks.1", BLOCK, 2), order(2),
        ("backward", "all_gather", "root", ROOT, 2), ("backward", "all_gather", "blocks.1", BLOCK, 2),
        ("backward", "all_gather", "blocks.0", BLOCK, 2), ("backward", "reduce_scatter", "blocks.1", BLOCK, 2),
        ("backward", "reduce_scatter", "blocks.0", BLOCK, 2), ("backward", "reduce_scatter", "root", ROOT, 2),
        late_and_order(2),
    ]  # fmt: skip


def test_units_that_stay_whole_after_the_forward_pass_are_gathered_once():
    assert collectives(2, {"free_after_forward": False}) == [
        ("forward", "all_gather", "root", ROOT, 2), ("forward", "all_gather", "blocks.0", BLOCK, 2),
        ("forward", "all_gather", "blocks.1", BLOCK, 2), order(2),
        ("backward", "reduce_scatter", "blocks.1", BLOCK, 2), ("backward", "reduce_scatter", "blocks.0", BLOCK, 2),
        ("backward", "reduce_scatter", "root", ROOT, 2), late_and_order(2),
    ]  # fmt: skip


def test_hybrid_adds_an_all_reduce_of_each_shard_over_the_replicas():
    assert collectives(4, {}, replicas=2) == [  # no call involves all four ranks
        ("forward", "all_gather", "root", ROOT, 2), ("forward", "all_gather", "blocks.0", BLOCK, 2),
        ("forward", "all_gather", "blocks.1", BLOCK, 2),
        order(2), order(2),  # over the shards, and over the replicas
        ("backward", "all_gather", "root", ROOT, 2), ("backward", "all_gather", "blocks.1", BLOCK, 2),
        ("backward", "all_gather", "blocks.0", BLOCK, 2), ("backward", "reduce_scatter", "blocks.1", BLOCK, 2),
        ("backward", "all_reduce", "blocks.1", BLOCK // 2, 2), ("backward", "reduce_scatter", "blocks.0", BLOCK, 2),
        ("backward", "all_reduce", "blocks.0", BLOCK // 2, 2), ("backward", "reduce_scatter", "root", ROOT, 2),
        late_and_order(2), ("backward", "all_reduce", "root", ROOT // 2, 2), late_and_order(2),
    ]  # fmt: skip


def test_mixed_precision_sends_two_bytes_for_each_parameter_instead_of_eight():
    block, root = BLOCK // 4, ROOT // 4
    assert collectives(2, {"mixed_precision": torch.bfloat16}) == [
        ("forward", "all_gather", "root", root, 2), ("forward", "all_gather", "blocks.0", block, 2),
        ("forward", "all_gather", "blocks.1", block, 2), order(2),
        ("backward", "all_gather", "root", root, 2), ("backward", "all_gather", "blocks.1", block, 2),
        ("backward", "all_gather", "blocks.0", block, 2), ("backward", "reduce_scatter", "blocks.1", block, 2),
        ("backward", "reduce_scatter", "blocks.0", block, 2), ("backward", "reduce_scatter", "root", root, 2),
        late_and_order(2),
    ]  # fmt: skip


class Plain(CommGroup):
    """Records the codecs of its calls and sends the numbers uncompressed."""

    def duplicate(self):
        return self

    def _all_reduce(self, async_op, tensor, op, codec):
        return super()._all_reduce(async_op, tensor, op, None)

    def _reduce_scatter(self, async_op, out, tensor, op, codec):
        return super()._reduce_scatter(async_op, out, tensor, op, None)


class Doubling:
    """Feedback that doubles what is sent."""

    def __init__(self, codec):
        assert codec == "fp8_e4m3"

    def correct(self, name, gradients):
        gradients.mul_(2)


def two_types():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4).double())
    model[1].register_forward_pre_hook(lambda _, inputs: inputs[0].double())
    return model


def written(group, stage):
    alone = two_types()
    alone(torch.ones(2, 4)).sum().backward()
    zero = Zero(
        two_types(), Plain(group.comm), optimizer=sgd, stage=stage, codec="fp8_e4m3", error_feedback=Doubling
    )  # fmt: skip
    with record() as log:
        zero(torch.ones(2, 4)).sum().backward()
    for flat, layer, factor in zip(zero.trained, alone, (2, 1), strict=True):
        expected = flat.vector_of([layer.weight.grad, layer.bias.grad])[flat.range_of(flat.rank)]
        torch.testing.assert_close(flat.gradient, factor * expected)
    return [(entry.name, entry.codec) for entry in log if entry.collective != "all_gather"]


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_gradients_in_float32_are_encoded_by_the_codec_and_corrected_by_its_feedback(stage):
    order = [("(order of the units)", "")] if stage == 3 else []
    gradients = [("1", ""), ("0", "fp8_e4m3")]
    end = "(late gradients, order of the units)" if stage == 3 else "(which gradients are late)"
    assert run_groups(written, 2, stage) == [[*order, *gradients, (end, "")]] * 2


def without_sync(group, stage):
    zero = Zero(make("mlp"), group, optimizer=sgd, stage=stage)
    inputs, targets = batch("mlp", 0)
    with record() as log, zero.no_sync():
        loss_of(zero, inputs, targets).backward()
    return [(entry.phase, entry.collective, entry.name) for entry in log]


WITHOUT_SYNC = [
    ("forward", "all_gather", "0"), ("forward", "all_gather", "2"), ("forward", "all_gather", "4"),
    ("forward", "all_reduce", "(order of the units)"),
    ("backward", "all_gather", "4"), ("backward", "all_gather", "2"), ("backward", "all_gather", "0"),
    ("backward", "all_reduce", "(order of the units)"),
]  # fmt: skip


@pytest.mark.parametrize(("stage", "expected"), [(1, []), (2, []), (3, WITHOUT_SYNC)])
def test_without_sync_no_gradient_is_sent(stage, expected):
    assert run_groups(without_sync, 2, stage) == [expected] * 2


def evaluating(group):
    zero = Zero(make("mlp"), group, optimizer=sgd)
    with record() as log, torch.no_grad():
        zero(batch("mlp", 0)[0])
    return [(entry.phase, entry.collective, entry.name) for entry in log]


def test_a_forward_pass_without_gradients_gathers_each_unit_once():
    assert run_groups(evaluating, 2) == [WITHOUT_SYNC[:4]] * 2
