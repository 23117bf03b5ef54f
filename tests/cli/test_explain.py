"""``unisono explain`` and ``unisono.explain``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import unisono
from unisono.algorithms.catalogue import algorithms_serving
from unisono.cli.main import main
from unisono.collectives import all_gather
from unisono.schedule.text import format_schedule

ZIGZAG = str(Path(__file__).parents[2] / "examples" / "zigzag.py")


def test_explain_names_the_algorithm_the_reason_the_cost_and_the_next_best(capsys):
    assert main(["explain", "all_reduce", "--bytes", "1M", "-n", "2", "--built-in"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("all_reduce, 2 ranks\n1 MiB: direct\n  reason: ")
    assert "predicted to take" in printed
    assert "by size: recursive_doubling for short vectors, direct from " in " ".join(printed.split())
    assert "cost: steps 2, rounds 2, bytes through the busiest rank 1 × the vector" in printed
    assert "next best: " in printed


def test_explain_agrees_with_the_communicator(capsys):
    def ask(comm):
        return comm.explain("all_reduce", 1 << 20)

    on_ranks = unisono.spawn(ask, 2)[0]
    assert unisono.explain("all_reduce", 1 << 20, size=2) == on_ranks
    assert main(["explain", "--bytes", "1MiB", "-n", "2", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)[0]
    assert (data["algorithm"], data["reason"]) == (on_ranks.algorithm, on_ranks.reason)


def test_another_network_is_explained(capsys):
    assert main(["explain", "-n", "100000", "--network", "one-switch", "--bytes", "8,1GiB", "--json"]) == 0
    short, long = json.loads(capsys.readouterr().out)
    assert (short["network"], short["topology"]) == ("one-switch", "100000x1")
    assert 1.001 * short["prediction"]["latency_s"] >= 10e-6
    assert short["prediction"]["latency_s"] <= short["prediction"]["time_s"]
    assert long["prediction"]["bandwidth_s"] > 0.2  # twice 1 GiB at 10 GB/s
    assert main(["explain", "-n", "8", "--network", "one-switch", "--bytes", "8", "--lang", "zh"]) == 0
    assert "网络 one-switch" in capsys.readouterr().out


def test_the_choice_on_another_network_is_the_fastest_in_simulations():
    found = unisono.explain("all_gather", 1 << 20, size=6, network="ethernet-10g")
    times_s = {
        each.name: unisono.simulate(each.schedule(6), 1 << 20, "ethernet-10g").time_s
        for each in algorithms_serving(all_gather, 6)
        if "node" not in each.options
    }
    assert times_s[found.algorithm] == min(times_s.values()) == found.prediction.time_s
    assert found.behind == sorted(times_s.values())[1] / min(times_s.values())
    terms_s = found.prediction.latency_s + found.prediction.bandwidth_s + found.prediction.reduction_s
    assert terms_s == pytest.approx(found.prediction.time_s)


def test_a_network_file_is_explained(tmp_path):
    (tmp_path / "mine.toml").write_text('name = "mine"\n[nic]\nlatency = "1 ms"\nbandwidth = "1 GB/s"\n')
    found = unisono.explain("all_reduce", 8, size=4, network=str(tmp_path / "mine.toml"))
    assert found.prediction.time_s >= 1e-3


def test_more_ranks_than_cores_make_fewer_steps_worthwhile():
    assert unisono.explain("all_reduce", 8, size=4, table={}, cores=4).algorithm == "recursive_doubling"
    assert unisono.explain("all_reduce", 8, size=4, table={}, cores=2).algorithm == "naive"


def test_a_measured_table_is_used():
    table = {"all_reduce": {"4": [[0, "ring"], [1000, "tree"]]}}
    assert unisono.explain("all_reduce", 999, size=4, table=table).algorithm == "ring"
    assert unisono.explain("all_reduce", 1000, size=4, table=table).algorithm == "tree"


def test_an_algorithm_of_a_file_is_explained(capsys):
    assert main(["explain", "-n", "3", "--bytes", "8,1KiB", "--algorithm", ZIGZAG, "--built-in"]) == 0
    printed = capsys.readouterr().out
    assert printed.count(": zigzag\n") == 2
    assert "the call requests it" in printed
    assert "Hand the sum along" in printed
    assert main(["explain", "-n", "3", "--algorithm", ZIGZAG, "--lang", "zh"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("all_reduce，3 个 rank\n")
    assert "调用时指定了" in printed


@pytest.mark.parametrize("where", [["--built-in"], ["--network", "one-switch"], ["--topology", "2x4"]])
def test_a_named_algorithm_is_compared_with_the_choice(capsys, where):
    assert main(["explain", "-n", "8", *where, "--algorithm", ZIGZAG]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "prediction: predicted to take" in printed
    assert "a call that names no algorithm uses " in printed
    assert "against the measurement" not in printed


def test_a_written_schedule_has_a_prediction(tmp_path):
    path = tmp_path / "mine.sched"
    path.write_text(format_schedule(unisono.find("ring").schedule(4)))
    mine = unisono.explain("all_reduce", 1 << 20, size=4, table={}, algorithm=str(path))
    ring = unisono.explain("all_reduce", 1 << 20, size=4, table={}, algorithm="ring")
    assert mine.requested
    assert mine.prediction == ring.prediction
    assert mine.next_best == ring.next_best == unisono.explain("all_reduce", 1 << 20, size=4, table={}).algorithm


def test_a_named_algorithm_that_would_be_chosen_is_compared_with_the_next_best():
    chosen = unisono.explain("all_reduce", 1 << 20, size=4, table={})
    named = unisono.explain("all_reduce", 1 << 20, size=4, table={}, algorithm=chosen.algorithm)
    assert (named.requested, named.next_best, named.behind) == (False, chosen.next_best, chosen.behind)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_barrier_has_no_sizes(capsys, language):
    assert main(["explain", "barrier", "--topology", "2x4", "--bytes", "8,1MiB", "--lang", language]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[1].startswith("hierarchical(node=4")
    assert not any(word in printed for word in ("MiB", "by size", "按大小", "bf16"))
    assert "bytes" not in str(unisono.explain("barrier", 0, size=4, table={}))


def test_a_next_best_that_is_far_behind_is_compared_by_a_factor():
    said = unisono.explain("all_reduce", 1 << 20, size=4, table={})
    assert "to take 3.4 times as long" in str(said._replace(behind=3.36))
    assert "99 % slower" in str(said._replace(behind=1.99))


def test_several_hosts_are_explained(capsys):
    assert main(["explain", "--topology", "2x4", "--bytes", "8,1MiB", "--built-in"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith("all_reduce, 8 ranks on 2x4 8 B: leaders(node=4) reason: predicted to take ")
    assert "1 MiB: hierarchical(node=4, " in printed
    assert "bf16 pays off on links between hosts slower than " in printed
    assert main(["explain", "--topology", "3+1", "--algorithm", "hierarchical", "--json"]) == 0
    (data,) = json.loads(capsys.readouterr().out)
    assert (data["topology"], data["algorithm"], data["options"]) == ("3+1", "hierarchical", {"node": [3, 1]})


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["all_reduc"], "did you mean 'all_reduce'"),
        (["-n", "100000", "--algorithm", "ring"], "expected -n 512 or less"),
        (["--network", "idael"], "did you mean 'ideal'"),
        (["--bytes", "many"], "is not a number of bytes"),
        (["--topology", "4,4"], "--topology 4,4: expected hosts and their ranks, such as 2x4 or 3+1"),
        (["all_gather", "--algorithm", ZIGZAG], "is not an algorithm of all_gather"),
        (["--algorithm", "rnig"], "did you mean 'ring'"),
    ],
)
def test_invalid_arguments_are_rejected(capsys, arguments, complaint):
    assert main(["explain", *arguments]) == 2
    assert complaint in capsys.readouterr().err
