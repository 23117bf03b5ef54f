"""Lists of collectives without ranks; tests/parallel/test_planned_calls.py compares them with real ranks."""

from __future__ import annotations

import pytest

from unisono.errors import UsageError
from unisono.planner import PRESETS
from unisono.planner.calls import Call, TransformerShape, calls_of, fill_buckets

SHAPE = TransformerShape(vocabulary=32, features=16, heads=4, layers=3, longest=8, batch=2, length=8)


def test_a_block_has_two_collectives_in_each_direction():
    calls = calls_of(SHAPE, tp=2)
    for phase in ("forward", "backward"):
        assert sum("blocks.1" in call.name and call.phase == phase for call in calls) == 2


def test_zero_moves_every_unit_once_in_the_update():
    calls = calls_of(SHAPE, dp=2, zero=1)
    assert [call.name for call in calls if call.phase == "update"] == ["root", "blocks.0", "blocks.1", "blocks.2"]


def test_stage_3_gathers_the_next_unit_before_the_current_one_runs():
    names = [call.name for call in calls_of(SHAPE, dp=2, zero=3) if call.phase == "forward" and call.size == 2]
    assert names == ["root", "blocks.0", "blocks.1", "blocks.2", "(order of the units)"]


def test_long_gradients_have_buckets_to_themselves():
    assert fill_buckets({"a": 10, "b": 100, "c": 20, "d": 30}, 50) == [["d", "c"], ["b"], ["a"]]


def test_a_preset_gives_a_shape():
    shape = TransformerShape.of(PRESETS["gpt2"], 1, 1024)
    calls = calls_of(shape, dp=2)
    assert calls[0] == Call("all_reduce", "embedding.output", 1024 * 768 * 4, "forward", 1, "tp")
    assert sum(call.bytes for call in calls if call.size == 2) == 4 * sum(shape.parameters(1).values()) + 150


@pytest.mark.parametrize(
    ("id_", "make"),
    [
        ("planner.not_a_parallel_transformer", lambda: TransformerShape.of(PRESETS["llama-8b"], 1, 8)),
        ("planner.not_split", lambda: calls_of(SHAPE, tp=3)),
    ],
)
def test_a_model_that_parallel_cannot_split_is_an_error(id_, make):
    with pytest.raises(UsageError) as raised:
        make()
    assert raised.value.id == id_
