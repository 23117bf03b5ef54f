"""A model is divided into units, and a unit into shards."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from models import make  # noqa: E402
from torch import nn  # noqa: E402

from unisono.errors import UsageError  # noqa: E402
from unisono.parallel.sharding import flats_of  # noqa: E402
from unisono.parallel.units import find_parts  # noqa: E402


def divided(model, units=None):
    return {
        part.name: [name for member in part.members for name in member.names] for part in find_parts(model, units)
    }


def test_by_default_the_children_of_the_largest_list_are_units():
    found = divided(make("transformer"))
    assert list(found) == ["root", "blocks.0", "blocks.1"]
    assert found["root"] == ["word.weight", "place.weight", "norm.weight", "norm.bias", "head.weight"]
    assert len(found["blocks.0"]) == 12
    assert divided(make("mlp")) == {
        "root": [], "0": ["0.weight", "0.bias"], "2": ["2.weight", "2.bias"], "4": ["4.weight", "4.bias"],
    }  # fmt: skip


def test_a_model_without_a_list_is_one_unit():
    assert divided(nn.Linear(2, 3)) == {"root": ["weight", "bias"]}


def test_units_are_selected_by_a_function_or_a_list_of_modules_and_can_be_nested():
    model = make("transformer")
    by_type = divided(model, lambda name, module: isinstance(module, nn.Linear))
    assert {"blocks.1.mlp.2", "head"} <= by_type.keys()
    assert "head.weight" not in by_type["root"]
    parts = find_parts(model, [model.blocks[1].mlp, model.blocks])
    assert [(part.name, part.around) for part in parts] == [
        ("root", ()), ("blocks", ("root",)), ("blocks.1.mlp", ("root", "blocks")),
    ]  # fmt: skip
    inner = {name for member in parts[2].members for name in member.names}
    assert inner == {f"blocks.1.mlp.{layer}.{kind}" for layer in (0, 2) for kind in ("weight", "bias")}
    assert not inner & {name for member in parts[1].members for name in member.names}


def test_a_parameter_of_two_units_belongs_to_the_root_and_one_tied_within_a_unit_to_that_unit():
    model = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)) for _ in range(3)))
    model[0][0].weight = model[2][1].weight
    model[1][0].weight = model[1][1].weight
    found = divided(model)
    assert found["root"] == ["0.0.weight", "2.1.weight"]
    assert found["1"] == ["1.0.weight", "1.1.weight", "1.0.bias", "1.1.bias"]


def test_a_unit_must_be_a_part_of_the_model():
    with pytest.raises(UsageError, match="Linear is not part of the Sequential"):
        find_parts(nn.Sequential(nn.Linear(1, 1)), [nn.Linear(1, 1)])


def unit_of_two_kinds():
    unit = nn.Module()
    unit.weight = nn.Parameter(torch.arange(6.0).view(2, 3))
    unit.bias = nn.Parameter(torch.arange(6.0, 8.0))
    unit.fixed = nn.Parameter(torch.ones(2), requires_grad=False)
    unit.exact = nn.Parameter(torch.zeros((), dtype=torch.float64))
    return unit


def test_parameters_that_cannot_share_a_message_form_separate_flats():
    (part,) = find_parts(unit_of_two_kinds())
    flats = flats_of(part, rank=0, size=3)
    assert [(flat.name, flat.numel, flat.padded_numel) for flat in flats] == [
        ("root.float32", 8, 9), ("root.frozen", 2, 3), ("root.float64", 1, 3),
    ]  # fmt: skip


def test_the_concatenated_shards_of_all_ranks_are_the_parameters():
    (part,) = find_parts(unit_of_two_kinds())
    shards = []
    for rank in range(3):
        flat = flats_of(part, rank, 3)[0]
        flat.divide(keep_whole=False)
        shards.append(flat.shard)
    assert torch.cat(shards).tolist() == [*map(float, range(8)), 0.0]
    assert [[piece[1:] for piece in flat.pieces(rank)] for rank in range(3)] == [
        [(0, 0, 3)], [(3, 0, 3)], [(0, 0, 2)],
    ]  # fmt: skip


def test_whole_parameters_are_views_of_one_vector():
    unit = unit_of_two_kinds()
    flat = flats_of(find_parts(unit)[0], rank=1, size=3)[0]
    flat.divide(keep_whole=True)
    flat.whole.zero_()
    assert not torch.cat([unit.weight.flatten(), unit.bias]).any()
    assert flat.master.untyped_storage().data_ptr() == unit.weight.untyped_storage().data_ptr()
