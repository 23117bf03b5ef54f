from __future__ import annotations

import json

import pytest

from unisono.algorithms import BUILT_IN, of
from unisono.cli.main import main
from unisono.collectives import COLLECTIVES, all_reduce


def test_every_algorithm_is_listed_under_its_collective(capsys):
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    for collective in COLLECTIVES:
        assert f"{collective}: {collective.summary.en}" in printed
    assert sum(printed.count(f"\n{algorithm.name} ") for algorithm in of(all_reduce)) >= len(of(all_reduce))


def test_the_costs_are_those_of_the_proof_at_that_size(capsys):
    assert main(["list", "all_reduce", "-n", "5"]) == 0
    ring = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("ring "))
    assert ring.split()[1:] == ["8", "8", "2.67×", "8/5", "=", "1.6", "1.00×", "0"]


def test_the_bytes_are_those_that_are_compared_with_the_least(capsys):
    assert main(["list", "gather", "-n", "8"]) == 0
    naive = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("naive "))
    assert naive.split()[4:] == ["7/8", "=", "0.875", "1.00×", "0"]


def test_names_are_not_cut_in_a_narrow_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    for algorithm in BUILT_IN:
        assert f"\n{algorithm.name} " in printed
    assert "…" not in printed.replace("f1·f2·…", "")


def test_what_is_rounded_is_not_said_to_be_equal(capsys):
    assert main(["list", "all_gather", "-n", "13"]) == 0
    assert "12/13 ≈ 0.92" in capsys.readouterr().out


def test_a_barrier_moves_nothing(capsys):
    assert main(["list", "barrier"]) == 0
    assert "No algorithm on 8 ranks needs fewer than 3 rounds.\n" in capsys.readouterr().out


def test_the_descriptions_are_there_in_chinese(capsys):
    assert main(["list", "all_reduce", "--lang", "zh"]) == 0
    printed = capsys.readouterr().out
    assert all_reduce.story.zh in printed
    assert "算法" in printed


def test_json_has_everything(capsys):
    assert main(["list", "--json", "-n", "3"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert sum(len(entry["algorithms"]) for entry in data) == len(BUILT_IN)
    assert data[0]["collective"] == "broadcast"
    assert data[0]["story"]["zh"].endswith("。")
    assert data[0]["algorithms"][0]["idea"]["zh"].endswith("。")


def test_a_wrong_collective_gets_a_suggestion(capsys):
    assert main(["list", "allreduce"]) == 2
    assert "did you mean 'all_reduce'?" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["0", "-1", "x", "1.5"])
def test_a_size_that_is_none_is_refused(capsys, size):
    with pytest.raises(SystemExit) as caught:
        main(["list", "-n", size])
    assert caught.value.code == 2
    assert "number of ranks" in capsys.readouterr().err or size == "-1"
