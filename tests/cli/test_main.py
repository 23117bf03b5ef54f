from __future__ import annotations

import json
import subprocess
import sys

import pytest

import unisono
from unisono.cli.main import main


def test_info_says_what_is_installed(capsys):
    assert main(["info"]) == 0
    assert unisono.__version__ in capsys.readouterr().out
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["engine"]["cpp_standard"] >= 202002
    assert facts["algorithms"] >= 39


def test_the_demo_plays_compares_and_proves(capsys):
    assert main(["demo"]) == 0
    printed = capsys.readouterr().out
    assert "all-gather then gives everyone [6, 10, 14, 18]" in printed
    assert "all-reduce gives everyone      [6, 10, 14, 18]" in printed
    assert "ring on 64 ranks: 126 steps" in printed


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["show"]])
def test_a_wrong_call_is_answered_with_the_usage(capsys, argv):
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert "usage: unisono" in capsys.readouterr().err


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m unisono list --json | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[\n"
    assert done.stderr == ""


def test_the_command_is_installed():
    done = subprocess.run([sys.executable, "-m", "unisono", "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"unisono {unisono.__version__}\n"
