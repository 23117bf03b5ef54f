"""The pages of training steps and of bus bandwidth agree with the recordings and with the proofs."""

from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest

from unisono import find, prove
from unisono.collectives import COLLECTIVES
from unisono.collectives import find as find_collective
from unisono.drawing.page import Settings
from unisono.drawing.script_pages import RECORDED, RING_SIZES, SCRIPT_PAGES, bus_formula

STRATEGIES = ("data_parallel", "tensor_parallel", "zero3", "experts")
PARAMETERS, GRADIENTS, OPTIMIZER, GATHERED, ACTIVATIONS = range(5)


def recorded(strategy):
    return json.loads((RECORDED / f"{strategy}.json").read_text(encoding="utf-8"))


def collectives_of(data, phase):
    names = [(each["collective"], each["layers"]) for each in data["collectives"] if each["phase"] == phase]
    return [(collective, layers) for collective, layers in names if layers]


def held(data, moment, kind, rank=0):
    return [layer[kind] for layer in moment["held"][rank]]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_fresh_recording_equals_the_stored_one(strategy):
    """If this fails, run python tools/record_training.py."""
    pytest.importorskip("torch")
    import record_training

    assert record_training.recorded(strategy) == (RECORDED / f"{strategy}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(("strategy", "stage"), [("data_parallel", 0), ("zero3", 3)])
def test_the_memory_of_a_rank_agrees_with_the_formulas_of_parallel(strategy, stage):
    pytest.importorskip("torch")
    from unisono.parallel import memory

    data = recorded(strategy)
    (ready,) = (moment for moment in data["moments"] if moment["what"] == "ready")
    expected = memory.formula(stage, 4 * (64 * 64 + 64), 4, memory.FLOAT32_ADAM)
    for rank in range(4):
        found = [sum(held(data, ready, kind, rank)) for kind in (PARAMETERS, GRADIENTS, OPTIMIZER)]
        assert found == [expected.parameters, expected.gradients, expected.optimizer]


def test_data_parallel_sends_only_gradients_the_first_bucket_during_the_backward_pass():
    data = recorded("data_parallel")
    assert collectives_of(data, "forward") == []
    assert collectives_of(data, "backward") == [("all_reduce", [2, 3]), ("all_reduce", [0, 1])]
    meanwhile = [moment["layer"] for moment in data["moments"] if moment["what"] == "compute" and moment["open"]]
    assert meanwhile == [1, 0]


def test_tensor_parallel_sends_nothing_between_column_and_row():
    data = recorded("tensor_parallel")
    order = [
        data["collectives"][moment["collective"]]["name"] if moment["what"] == "collective" else moment["layer"]
        for moment in data["moments"]
        if moment["what"] in ("compute", "collective")
    ]
    assert order == [0, 1, 2, "mlp.down.output", 2, 1, 0, "gradient of mlp.up.input"]
    assert [layer["split"] for layer in data["layers"]] == ["column", "", "row"]
    phases = [each["phase"] for each in data["block"]]
    assert phases == ["forward", "forward", "backward", "backward"]
    assert {each["collective"] for each in data["block"]} == {"all_reduce"}


def test_zero3_gathers_each_layer_twice_and_holds_at_most_two_layers():
    data = recorded("zero3")
    assert collectives_of(data, "forward") == [("all_gather", [layer]) for layer in (0, 1, 2, 3)]
    gathered = [layers for collective, layers in collectives_of(data, "backward") if collective == "all_gather"]
    scattered = [layers for collective, layers in collectives_of(data, "backward") if collective == "reduce_scatter"]
    assert gathered == scattered == [[3], [2], [1], [0]]
    whole = [sum(1 for each in held(data, moment, GATHERED) if each) for moment in data["moments"]]
    assert max(whole) == 2
    assert whole[0] == whole[-1] == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_recorded_numbers_add_up(strategy):
    data = recorded(strategy)
    moments = data["moments"]
    assert [moment["what"] for moment in (moments[0], moments[-1])] == ["begin", "end"]
    assert moments[0]["held"] == moments[-1]["held"]
    assert [m["collective"] for m in moments if m["what"] == "collective"] == list(range(len(data["collectives"])))
    kept = [sum(held(data, moment, ACTIVATIONS)) for moment in moments]
    assert max(kept) == kept[[moment["what"] for moment in moments].index("loss")]
    for each in data["collectives"]:
        factor = find_collective(each["collective"]).bus_factor(data["ranks"])
        if "rows" in each:  # an all-to-all with sizes: counted row by row
            leaving = sum(sum(row) - row[rank] for rank, row in enumerate(each["rows"]))
            assert each["sent_bytes"] * data["ranks"] == leaving * 4 * each["members"][0][1][1]
            assert each["bytes"] * data["ranks"] == sum(map(sum, each["rows"])) * 4 * each["members"][0][1][1]
        else:
            assert each["sent_bytes"] == round(factor * each["bytes"])


def test_experts_get_the_rows_that_chose_them_and_gradients_go_the_way_back():
    data = recorded("experts")
    names = [each["name"] for each in data["collectives"]]
    assert names[:5] == [
        "moe.expert_counts", "moe.dispatch", "moe.combine", "gradient of moe.combine", "gradient of moe.dispatch",
    ]  # fmt: skip
    dispatch, combine, back, again = (each["rows"] for each in data["collectives"][1:5])
    assert combine == again == [list(column) for column in zip(*dispatch, strict=True)]
    assert back == dispatch
    assert [sum(row) for row in dispatch] == [8 * 2] * 4  # every row of a rank goes to two experts
    (reduced,) = (each for each in data["collectives"] if each["collective"] == "all_reduce" and each["members"])
    assert reduced["members"] == [["moe.router.weight", [4, 64]]]


def test_a_rank_holds_one_expert_and_a_whole_router():
    data = recorded("experts")
    router, expert = 4 * 64, 128 * 64 + 128 + 64 * 128 + 64
    (ready,) = (moment for moment in data["moments"] if moment["what"] == "ready")
    for rank in range(4):
        assert held(data, ready, PARAMETERS, rank) == held(data, ready, GRADIENTS, rank) == [4 * router, 4 * expert]
        assert held(data, ready, OPTIMIZER, rank) == [8 * router, 8 * expert]


@pytest.mark.parametrize("name", SCRIPT_PAGES)
def test_a_page_is_small_self_contained_and_in_the_requested_language(name):
    page = SCRIPT_PAGES[name].write(Settings(language="zh", home="index.html"))
    assert len(page.encode()) < 300_000
    assert set(re.findall(r"https?://[^\s\"'<>)]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert '"language":"zh"' in page
    assert re.search("[\u4e00-\u9fff]", SCRIPT_PAGES[name].words.zh)


def test_the_verifier_counts_the_factor_of_the_page_on_every_drawn_ring():
    for size in RING_SIZES:
        assert prove(find("ring").schedule(size)).busiest == Fraction(2 * (size - 1), size)


def test_the_factors_on_the_page_are_those_of_bench():
    for collective in COLLECTIVES:
        if collective.carries_data:
            for size in (2, 3, 5, 64):
                text = bus_formula(collective).replace("−", "-").replace("2(", "2*(")
                assert eval(text, {"p": Fraction(size)}) == collective.bus_factor(size)
