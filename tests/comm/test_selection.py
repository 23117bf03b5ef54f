"""Selection of the algorithm of a call."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import unisono
from unisono.algorithms import find
from unisono.collectives import COLLECTIVES
from unisono.comm import machine, network_rates, selection, tables
from unisono.comm.explanation import explain
from unisono.comm.ranking import ranking_for
from unisono.costs.rates import Rates


@pytest.mark.parametrize("collective", COLLECTIVES, ids=str)
@pytest.mark.parametrize("nbytes", [0, 1, 10**4, 10**9])
def test_there_is_an_algorithm_for_every_call(collective, nbytes):
    for size in (1, 2, 3, 16):
        assert selection.choose(collective, size, nbytes, {}).algorithm.can_serve(size)


def test_measured_rules_take_precedence_over_predictions():
    table = {"all_reduce": {"4": [[0, "tree"], [1000, "ring"]]}}
    all_reduce = find("ring").collective
    assert selection.choose(all_reduce, 4, 999, table).algorithm.name == "tree"
    assert selection.choose(all_reduce, 4, 1000, table).algorithm.name == "ring"
    assert "measured by `unisono tune`" in selection.choose(all_reduce, 4, 1000, table).reason
    assert "predicted to take" in selection.choose(all_reduce, 5, 1000, table).reason


def test_algorithms_that_may_not_be_used_are_skipped():
    all_reduce = find("ring").collective
    allowed = lambda one: one.name != "recursive_doubling"  # noqa: E731
    chosen = selection.choose(all_reduce, 8, 8, {}, may_be_used=allowed)
    assert chosen.algorithm.name == ranking_for(all_reduce, 8, None).ranked(8)[1].variant.name
    assert "recursive_doubling, the best with 8 ranks (predicted for this network)" in chosen.reason
    table = {"all_reduce": {"8": [[0, "recursive_doubling"], [1 << 20, "tree"]]}}
    assert selection.choose(all_reduce, 8, 8, table, may_be_used=allowed).algorithm.name == "tree"
    table = {"all_reduce": {"8": [[0, "recursive_doubling"]]}}
    assert selection.choose(all_reduce, 8, 8, table, may_be_used=allowed).algorithm == chosen.algorithm


def test_explain_names_the_next_best_algorithm():
    said = explain(find("ring").collective, 8, 1 << 20, {})
    assert (said.algorithm, said.next_best) == ("direct", "ring")
    assert said.behind > 1.05
    assert "next best: ring, predicted" in str(said)
    assert "by size: recursive_doubling for short vectors, " in str(said)
    assert str(said).rpartition(", ")[2].startswith("direct from ")


def test_tables_are_stored_by_number_of_ranks():
    tables.store_table({"all_reduce": {"4": [[0, "tree"]]}})
    tables.store_table({"all_reduce": {"2": [[0, "ring"]]}})
    assert tables.load_table() == {"all_reduce": {"4": [[0, "tree"]], "2": [[0, "ring"]]}}


@pytest.mark.parametrize("text", ["", "[]", '{"table": 3}', '{"table": {"all_reduce": {"4": [["x"]]}}}'])
def test_a_damaged_table_is_ignored(text):
    tables.table_path().parent.mkdir(parents=True)
    tables.table_path().write_text(text)
    with pytest.warns(UserWarning, match="ignored .*algorithms.json: .*expected .*found .*unisono tune"):
        assert tables.load_table() == {}


def test_ranks_use_the_table():
    tables.store_table({"all_reduce": {"2": [[0, "tree"]]}})
    names = unisono.spawn(lambda comm: comm.explain("all_reduce", 100).algorithm, 2)
    assert names == ["tree", "tree"]


def _different_tuning():
    """Return a table and rates that differ in every process."""
    number = os.getpid()
    names = ("naive", "ring", "tree", "direct")
    table = {"all_reduce": {"4": [[0, names[number % 4]], [1000, names[number // 4 % 4]]]}}
    return {"table": table, "rates": {"near_s": 1e-7 * (1 + number % 100), "sent_byte_s": 1e-12 * (1 + number % 977)}}


def _choices(comm):
    comm.all_reduce(np.ones(3))
    comm.all_gather(np.ones(4), np.ones(1))
    sizes = (8, 4096, 1 << 20)
    return [str(comm.explain(each, nbytes)) for each in COLLECTIVES for nbytes in sizes], comm.dispatcher.rates.near_s


def test_ranks_choose_alike_if_their_tables_and_machines_differ(monkeypatch):
    monkeypatch.setattr("unisono.launch.spawn.load_tuning", _different_tuning)
    first, *others = unisono.spawn(_choices, 4)
    assert all(other == first for other in others)
    assert first[1] >= 1e-7


def test_a_network_replaces_the_rates_of_this_machine():
    rates = network_rates.tuning_for("one-switch")()["rates"]
    assert rates["far_s"] == pytest.approx(10e-6)
    with pytest.raises(unisono.UsageError, match="one-swich"):
        network_rates.tuning_for("one-swich")


def test_the_memory_of_this_machine_is_measured_once(monkeypatch):
    first = machine.load_rates()
    monkeypatch.setattr(machine, "detected_rates", lambda: Rates(near_s=1))
    assert machine.load_rates() == first
    machine.machine_path().write_text('{"rates": {"speed": 1}}')
    with pytest.warns(UserWarning, match="ignored .*machine.json"):
        assert machine.load_rates().near_s == 1


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
