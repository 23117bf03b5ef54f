"""``unisono tune``."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unisono.cli.main import main
from unisono.comm import tuning
from unisono.comm.tables import load_table, store_table, table_path
from unisono.launch.spawn import spawn

SIZES_BYTES = (8, 16 << 10)  # instead of up to 32 MiB
ZIGZAG = str(Path(__file__).parents[2] / "examples" / "zigzag.py")


@pytest.fixture
def few_sizes(monkeypatch):
    """Measure two sizes only; the ranks are forked, and inherit this."""
    monkeypatch.setattr(tuning, "SIZES_BYTES", SIZES_BYTES)


def test_the_table_is_shown_and_stored_and_info_names_it(capsys, few_sizes):
    assert main(["tune", "-n", "2", "--budget", "0.5"]) == 0
    printed = capsys.readouterr().out
    assert "2 ranks, measured in" in printed
    assert str(table_path()) in printed.replace("\n", "")  # a long path spans several lines
    assert load_table()["all_reduce"]["2"][0][0] == 0
    assert main(["info"]) == 0
    assert "measured for 2 ranks" in capsys.readouterr().out


def test_info_names_the_topologies_of_the_table(capsys):
    store_table({"all_reduce": {"16": [[0, "ring"]], "2x4": [[0, "ring"]], "3+1": [[0, "ring"]], "4": [[0, "tree"]]}})
    assert main(["info", "--json"]) == 0
    assert "measured for 3+1, 4, 2x4, 16 ranks" in capsys.readouterr().out


def test_a_dry_run_stores_nothing(capsys, few_sizes):
    assert main(["tune", "-n", "2", "--budget", "0.5", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ranks"] == 2
    assert load_table() == {}


def test_an_algorithm_of_a_file_is_measured_and_not_stored(capsys, few_sizes):
    assert main(["tune", "-n", "2", "--budget", "0.5", "--algorithm", ZIGZAG]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "all_reduce" in printed
    assert "all_gather" not in printed
    assert "Not stored: every later job" in printed
    assert load_table() == {}


@pytest.mark.slow
def test_in_a_job_it_measures_the_ranks_of_the_job_and_rank_0_stores_the_table():
    program = (
        "import sys; from unisono.comm import tuning; from unisono.cli.main import main\n"
        f"tuning.SIZES_BYTES = {SIZES_BYTES}\n"
        "sys.exit(main(['tune', '--budget', '0.5', '--json']))"
    )
    command = [sys.executable, "-m", "unisono", "run", "-n", "2", "--", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"topology"') == 1
    assert load_table()["all_reduce"]["2"][0][0] == 0


def _table_with(comm, own):
    return tuning.tune(comm, 0.2, own)


def test_the_table_can_name_an_algorithm_of_a_file(monkeypatch):
    """The user's algorithm is the only candidate, so that the test does not depend on measured times."""
    monkeypatch.setattr(tuning, "candidates_for", lambda collective, size, hosts: [])
    table = spawn(_table_with, 2, {"all_reduce": [ZIGZAG]})[0]
    assert table == {"all_reduce": {"2": [[0, ZIGZAG]]}}


def _rules_on_a_slow_link(comm):
    sizes = []

    def slow_calls(comm, collective, nbytes, algorithms, each_s):
        sizes.append(nbytes)
        time.sleep(0.2)
        return [float(number + 1) for number in range(len(algorithms))]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "call_times", slow_calls)
        table = tuning.tune(comm, 0.1, {"all_reduce": []})
    return sizes, len(table["all_reduce"]["2"])


def test_where_calls_take_much_longer_than_the_budget_the_longest_vectors_are_left_out():
    """The rank that is slowest decides, so all ranks measure the same sizes."""
    (sizes, rules), other = spawn(_rules_on_a_slow_link, 2)
    assert (sizes, rules) == other
    assert 0 < len(sizes) < len(tuning.SIZES_BYTES)
    assert rules == 1


def test_an_incorrect_algorithm_is_rejected_before_any_rank_starts(capsys):
    wrong = Path(ZIGZAG).parent / "wrong" / "zigzag_twice.py"
    assert main(["tune", "-n", "4", "--algorithm", str(wrong)]) == 1
    assert capsys.readouterr().err.count("is counted twice") == 1


def test_invalid_arguments_are_rejected(capsys):
    assert main(["tune", "-n", "1"]) == 2
    assert "nothing to select" in capsys.readouterr().err
    assert main(["tune", "-n", "2", "--budget", "0"]) == 2
    assert "expected a number of seconds" in capsys.readouterr().err
