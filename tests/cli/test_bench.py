from __future__ import annotations

import json

import pytest

from unisono.cli.main import main

SHORT = ["bench", "--peers-only", "--repeats", "2", "--time-budget", "0.02", "--bytes", "8,1KiB"]


def test_the_columns_are_those_of_nccl_tests(capsys):
    assert main([*SHORT, "--against", "memcpy"]) == 0
    assert "2 ranks on" in capsys.readouterr().out


def test_we_take_part_unless_left_out(capsys):
    assert main(["bench", "--repeats", "2", "--time-budget", "0.02", "--bytes", "8,1KiB", "--algorithm", "ring"]) == 0
    printed = capsys.readouterr().out
    assert "type     op" in printed
    assert "256  float32  sum" in printed


def test_who_is_dropped_is_said_and_the_others_are_measured(capsys, tmp_path):
    for program in ("python", "mpiexec"):
        (tmp_path / "mpich" / "bin").mkdir(parents=True, exist_ok=True)
        (tmp_path / "mpich" / "bin" / program).write_text("#!/bin/sh\necho broken as can be >&2\nexit 5\n")
        (tmp_path / "mpich" / "bin" / program).chmod(0o755)
    assert main([*SHORT, "--against", "memcpy,mpich:default", "--peers", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert "dropped mpich:default: it ended with code 5" in captured.err
    assert "broken as can be" in captured.err
    assert "memcpy" in captured.out
    assert main([*SHORT, "--against", "mpich:default", "--peers", str(tmp_path)]) == 3


def test_data_for_programs(capsys):
    assert main([*SHORT, "all_gather", "--against", "memcpy", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["ranks"] == 2
    assert [case["bytes"] for case in data["cases"]] == [8, 1024]
    assert data["cases"][0]["results"][0]["contender"] == "memcpy"
    assert data["cases"][0]["results"][0]["time_us"] > 0


def test_a_picture(tmp_path, capsys):
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
        (["--algorithm", "all_gather/ring"], "all_gather/ring is no algorithm of all_reduce"),
        (["--peers-only"], "nobody to measure"),
        (["--against", "memcpy", "--plot", "a.gif"], "ends in .png"),
        (["--time-budget", "0"], "expected more than 0"),
        (["--time-budget", "nan"], "expected more than 0"),
        (["--quantile", "1.5"], "from 0 to 1"),
        (["--quantile", "nan"], "from 0 to 1"),
    ],
)
def test_nonsense_is_refused_before_anything_starts(capsys, arguments, complaint):
    assert main(["bench", *arguments]) == 2
    assert complaint in capsys.readouterr().err
