"""The predictions of the planner for these strategies match real ranks: the same collectives, the same memory."""

from __future__ import annotations

from dataclasses import astuple

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.parallel import (  # noqa: E402
    DataParallel,
    MixtureOfExperts,
    ParallelTransformer,
    Zero,
    memory,
    mesh,
    record,
)
from unisono.planner.calls import TransformerShape, calls_of, expert_calls  # noqa: E402
from unisono.planner.state_memory import FLOAT32_ADAM, with_buffers  # noqa: E402

RANKS = 4
SHAPE = TransformerShape(vocabulary=32, features=16, heads=4, layers=3, longest=8, batch=2, length=8)
CASES = [
    {"tp": 4},
    {"tp": 4, "sequence_parallel": True},
    {"dp": 4},
    {"dp": 2, "tp": 2},
    {"dp": 2, "tp": 2, "bucket_bytes": 1},
    {"dp": 2, "tp": 2, "bucket_bytes": 3000},
    {"dp": 2, "tp": 2, "bucket_bytes": 1, "sequence_parallel": True},
    *({"dp": 4, "zero": zero} for zero in (1, 2, 3)),
    *({"dp": 2, "tp": 2, "zero": zero} for zero in (1, 2, 3)),
    *({"dp": 2, "tp": 2, "zero": zero, "sequence_parallel": True} for zero in (1, 2, 3)),
    *({"dp": 2, "replicas": 2, "zero": zero} for zero in (1, 2, 3)),
]


# Units whose elements three ranks do not share evenly are padded.
ODD_RANKS = 6
ODD_CASES = [
    *({"dp": 3, "tp": 2, "zero": zero} for zero in (0, 1, 2, 3)),
    *({"dp": 3, "replicas": 2, "zero": zero} for zero in (1, 2, 3)),
    *({"dp": 6, "zero": zero} for zero in (0, 3)),
]


def every_odd_case(group):
    """Return the logs of the second step of every case, with the memory of Zero."""
    return [log_of(group, **case) for case in ODD_CASES]


def every_case(group):
    """Return the logs of the second step of every case with the memory of Zero, and the log of the experts."""
    return [log_of(group, **case) for case in CASES], log_of_experts(group)


def log_of(group, dp=1, tp=1, sequence_parallel=False, zero=0, bucket_bytes=None, replicas=1):
    torch.manual_seed(0)
    split, data = group.split(group.rank // tp, axis="tp"), group.split(group.rank % tp, axis="dp")
    shape = (SHAPE.vocabulary, SHAPE.features, SHAPE.heads, SHAPE.layers, SHAPE.longest)
    model = ParallelTransformer(*shape, split, sequence_parallel=sequence_parallel)
    optimizer, replicate = None, None
    if replicas > 1:
        nodes = mesh(group, replica=replicas, dp=dp)
        data, replicate = nodes.dp, nodes.replica
    if zero:
        options = {"optimizer": torch.optim.Adam, "stage": zero, "replicate": replicate}
        model = optimizer = Zero(model, data, **options)
    elif dp > 1:
        model = DataParallel(model, data, bucket_bytes=bucket_bytes)
    ids = torch.randint(SHAPE.vocabulary, (SHAPE.batch, SHAPE.length))
    for _ in range(2):
        model.zero_grad()
        with record() as log:
            model(ids, ids.roll(-1)).backward()
            held = memory.measure(model) if zero else None
            if optimizer is not None:
                optimizer.step()
    found = [(each.collective, each.name, each.bytes, each.phase, each.size, each.axis) for each in log]
    return found, held and (astuple(held), len(model.trained) * memory.STEP_BYTES)


def log_of_experts(group):
    torch.manual_seed(0)
    layer = MixtureOfExperts.of(16, 8, lambda: nn.Linear(16, 16), group, top_k=2)
    torch.manual_seed(group.rank)
    with record() as log:
        layer(torch.randn(6, 16, requires_grad=True)).output.sum().backward()
    return [(each.collective, each.name, each.bytes, each.phase, each.size, each.axis) for each in log]


@pytest.fixture(scope="module")
def ranks():
    return run_groups(every_case, RANKS)


@pytest.fixture(scope="module")
def odd_ranks():
    return run_groups(every_odd_case, ODD_RANKS)


def tuples(calls):
    return [astuple(call) for call in calls]


@pytest.mark.parametrize("number", range(len(CASES)), ids=[str(case) for case in CASES])
def test_the_predicted_collectives_are_those_of_real_ranks(ranks, number):
    expected = tuples(calls_of(SHAPE, **CASES[number]))
    for logs, _ in ranks:
        assert logs[number][0] == expected


@pytest.mark.parametrize("number", range(len(ODD_CASES)), ids=[str(case) for case in ODD_CASES])
def test_the_predicted_collectives_are_those_of_three_and_six_ranks(odd_ranks, number):
    expected = tuples(calls_of(SHAPE, **ODD_CASES[number]))
    for logs in odd_ranks:
        assert logs[number][0] == expected


@pytest.mark.parametrize("number", [n for n, case in enumerate(CASES) if case.get("zero")])
def test_the_predicted_memory_is_that_of_real_ranks(ranks, number):
    for logs, _ in ranks:
        assert logs[number][1] is not None
        assert_memory(CASES[number], *logs[number][1])


@pytest.mark.parametrize("number", [n for n, case in enumerate(ODD_CASES) if case["zero"]])
def test_the_predicted_memory_is_that_of_three_and_six_ranks(odd_ranks, number):
    for logs in odd_ranks:
        assert_memory(ODD_CASES[number], *logs[number][1])


def assert_memory(case, measured, steps):
    root, *units = SHAPE.units(case.get("tp", 1)).values()
    expected = with_buffers(case["zero"], root, units, case["dp"], FLOAT32_ADAM)
    assert measured == (
        expected.parameters, expected.gradients, expected.optimizer + steps, expected.unit_buffers,
        expected.gradient_buffers,
    )  # fmt: skip


def test_the_predicted_exchanges_with_experts_are_those_of_real_ranks(ranks):
    received = [found[2][2] // 64 for _, found in ranks]
    assert sum(received) == RANKS * 6 * 2
    for (_, found), rows in zip(ranks, received, strict=True):
        assert found == tuples(expert_calls(16, 8, RANKS, top_k=2, sent_rows=12, received_rows=rows))


def test_parameters_are_those_of_the_module():
    def names(group):
        model = ParallelTransformer(32, 16, 4, 3, 8, group)
        return {name: each.numel() for name, each in model.named_parameters()}

    assert run_groups(names, 1)[0] == SHAPE.parameters(1)
