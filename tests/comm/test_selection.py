"""Selection of the algorithm of a call."""

from __future__ import annotations

import json

import numpy as np
import pytest

import unisono
from unisono.algorithms import find
from unisono.collectives import COLLECTIVES
from unisono.comm import selection
from unisono.comm.selection import explain


@pytest.mark.parametrize("collective", COLLECTIVES, ids=str)
@pytest.mark.parametrize("nbytes", [0, 1, 10**4, 10**9])
def test_there_is_a_built_in_rule_for_every_call(collective, nbytes):
    for size in (1, 2, 3, 16):
        assert selection.choose(collective, size, nbytes, {}).algorithm.can_serve(size)


def test_measured_rules_take_precedence_over_built_in_rules():
    table = {"all_reduce": {"4": [[0, "tree"], [1000, "ring"]]}}
    all_reduce = find("ring").collective
    assert selection.choose(all_reduce, 4, 999, table).algorithm.name == "tree"
    assert selection.choose(all_reduce, 4, 1000, table).algorithm.name == "ring"
    assert "measured by `unisono tune`" in selection.choose(all_reduce, 4, 1000, table).reason
    assert "built-in" in selection.choose(all_reduce, 5, 1000, table).reason


def test_algorithms_that_may_not_be_used_are_skipped():
    all_reduce = find("ring").collective
    allowed = lambda one: one.name != "recursive_doubling"  # noqa: E731
    chosen = selection.choose(all_reduce, 5, 8, {}, may_be_used=allowed)
    assert chosen.algorithm.name == "direct"
    assert "recursive_doubling, the best with 5 ranks" in chosen.reason
    table = {"all_reduce": {"4": [[0, "recursive_doubling"]]}}
    assert selection.choose(all_reduce, 4, 8, table, may_be_used=allowed).algorithm.name == "naive"


def test_explain_names_the_next_best_algorithm():
    said = explain(find("ring").collective, 8, 8, {})
    assert (said.algorithm, said.next_best) == ("recursive_doubling", "butterfly")


def test_tables_are_stored_by_number_of_ranks():
    selection.store_table({"all_reduce": {"4": [[0, "tree"]]}})
    selection.store_table({"all_reduce": {"2": [[0, "ring"]]}})
    assert selection.load_table() == {"all_reduce": {"4": [[0, "tree"]], "2": [[0, "ring"]]}}


@pytest.mark.parametrize("text", ["", "[]", '{"table": 3}', '{"table": {"all_reduce": {"4": [["x"]]}}}'])
def test_a_damaged_table_is_ignored(text):
    selection.table_path().parent.mkdir(parents=True)
    selection.table_path().write_text(text)
    with pytest.warns(UserWarning, match="ignored .*algorithms.json: .*expected .*found .*unisono tune"):
        assert selection.load_table() == {}


def test_ranks_use_the_table():
    selection.store_table({"all_reduce": {"2": [[0, "tree"]]}})
    names = unisono.spawn(lambda comm: comm.explain("all_reduce", 100).algorithm, 2)
    assert names == ["tree", "tree"]


@pytest.mark.slow
def test_a_measured_table_names_algorithms_that_exist(monkeypatch):
    from unisono.comm import tuning

    monkeypatch.setattr(tuning, "SIZES_BYTES", (8, 2048, 128 << 10))

    def measure(comm):
        table = tuning.tune(comm, budget_s=0.5)
        comm.all_reduce(np.ones(3))
        return json.dumps(table)

    (text,) = set(unisono.spawn(measure, 2))
    table = json.loads(text)
    assert set(table) == {collective.name for collective in COLLECTIVES if collective.carries_data}
    for name, sizes in table.items():
        starts = [start for start, _ in sizes["2"]]
        assert starts[0] == 0
        assert starts == sorted(starts)
        for _, algorithm in sizes["2"]:
            assert find(f"{name}/{algorithm}").can_serve(2)
