from __future__ import annotations

import json
from pathlib import Path

import pytest

from unisono import collectives
from unisono.bench import cases, peers
from unisono.bench.measure import Effort, measure
from unisono.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
SHORT = ["bench", "--peers-only", "--repeats", "2", "--time-budget", "0.02", "--bytes", "8,1KiB"]


def test_the_columns_are_those_of_nccl_tests(capsys):
    assert main([*SHORT, "--against", "memcpy"]) == 0
    assert "2 ranks on" in capsys.readouterr().out


def test_unisono_is_measured_by_default(capsys):
    assert main(["bench", "--repeats", "2", "--time-budget", "0.02", "--bytes", "8,1KiB", "--algorithm", "ring"]) == 0
    printed = capsys.readouterr().out
    assert "type     op" in printed
    assert "256  float32  sum" in printed


def test_a_contender_that_fails_is_reported_and_the_others_are_measured(capsys, tmp_path):
    for program in ("python", "mpiexec"):
        (tmp_path / "mpich" / "bin").mkdir(parents=True, exist_ok=True)
        (tmp_path / "mpich" / "bin" / program).write_text("#!/bin/sh\necho broken as can be >&2\nexit 5\n")
        (tmp_path / "mpich" / "bin" / program).chmod(0o755)
    assert main([*SHORT, "--against", "memcpy,mpich:default", "--peers", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert "dropped mpich:default: it exited with code 5" in captured.err
    assert "broken as can be" in captured.err
    assert "memcpy" in captured.out
    assert main([*SHORT, "--against", "mpich:default", "--peers", str(tmp_path)]) == 3


def test_json_has_every_size(capsys):
    assert main([*SHORT, "all_gather", "--against", "memcpy", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["ranks"] == 2
    assert [case["bytes"] for case in data["cases"]] == [8, 1024]
    assert data["cases"][0]["results"][0]["contender"] == "memcpy"
    assert data["cases"][0]["results"][0]["time_us"] > 0


def test_a_plot_is_written(tmp_path, capsys):
    assert main([*SHORT, "--against", "memcpy", "--plot", str(tmp_path / "a.svg")]) == 0
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--bytes", "eight"], "--bytes eight"),
        (["--bytes", "64:8"], "64 is more than 8"),
        (["--dtype", "float8"], "no type 'float8'"),
        (["--op", "mean"], "no reduction 'mean'"),
        (["all_reduc"], "did you mean 'all_reduce'"),
        (["barrier"], "moves no data"),
        (["--against", "opnmpi"], "did you mean"),
        (["--algorithm", "rong"], "did you mean 'ring'"),
        (["--algorithm", "all_gather/ring"], "all_gather/ring is not an algorithm of all_reduce"),
        (["--against", "unisono:rong"], "did you mean 'ring'"),
        (["--against", "openmpi", "--peers", "nothing"], "run `make peers`"),
        (["--algorithm", "nothing.py"], "there is no file 'nothing.py'"),
        (["--algorithm", str(EXAMPLES / "zigzag.py:zigzg")], "did you mean 'zigzag'"),
        (["all_gather", "--algorithm", str(EXAMPLES / "zigzag.py")], "is not an algorithm of all_gather"),
        (["--peers-only"], "nothing to measure"),
        (["--against", "memcpy", "--plot", "a.gif"], "ends in .png"),
        (["--time-budget", "0"], "expected more than 0"),
        (["--time-budget", "nan"], "expected more than 0"),
        (["--quantile", "1.5"], "from 0 to 1"),
        (["--quantile", "nan"], "from 0 to 1"),
    ],
)
def test_invalid_arguments_are_rejected_before_any_rank_starts(capsys, arguments, complaint):
    assert main(["bench", *arguments]) == 2
    assert complaint in capsys.readouterr().err


def test_an_algorithm_of_a_file_is_measured_along_with_a_built_in(capsys, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text((EXAMPLES / "zigzag.py").read_text())
    monkeypatch.chdir(tmp_path)
    options = ["--repeats", "2", "--time-budget", "0.02", "--bytes", "1KiB", "--json"]
    names = "unisono:ring,unisono:mine.py:zigzag"
    assert main(["bench", "-n", "3", "--algorithm", "mine.py:zigzag", "--against", names, *options]) == 0
    data = json.loads(capsys.readouterr().out)
    results = data["cases"][0]["results"]
    assert [each["contender"] for each in results] == ["unisono", "unisono:ring", "unisono:mine.py:zigzag"]
    assert all(each["calls"] and not each["wrong"] for each in results)
    assert data["cases"][0]["algorithm"] == "mine.py:zigzag"


def test_the_ranks_run_the_algorithm_of_the_file(tmp_path):
    """The ranks report an error that only the algorithm of the file can cause."""
    path = tmp_path / "mine.py"
    path.write_text(
        (EXAMPLES / "zigzag.py").read_text()
        + "import os\nif 'UNISONO_RANK' in os.environ:\n    raise ValueError('here')\n"
    )
    done = peers.make_contenders(f"unisono:{path}", 2, None, answer_timeout_s=20)
    case = cases.make_cases(collectives.all_reduce, [1024], "float32", "sum", 2)
    found = measure(done, case, 2, Effort(repeats=1, budget_s=0.01)).results[0].times[done[0].name].unsupported
    assert "ValueError: here" in found


def test_an_incorrect_algorithm_is_rejected_once_with_its_location(capsys):
    assert main(["bench", "-n", "4", "--algorithm", str(EXAMPLES / "wrong" / "zigzag_twice.py")]) == 1
    error = capsys.readouterr().err
    assert error.count("is counted twice") == 1
    assert "rank 2, step" in error


def test_the_former_names_of_options_still_work(capsys):
    former = ["--rounds", "2", "--quickest-visit", "--time-budget", "0.02", "--bytes", "8"]
    assert main(["bench", "--peers-only", "--against", "memcpy", "--json", *former]) == 0
    assert json.loads(capsys.readouterr().out)["fastest_trial"] is True
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    assert "--rounds" not in capsys.readouterr().out
