from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import unisono
from unisono.cli import demo_training
from unisono.cli.main import VERBS, main, parser


def test_info_lists_the_installed_versions(capsys):
    assert main(["info"]) == 0
    assert unisono.__version__ in capsys.readouterr().out
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["engine"]["cpp_standard"] >= 202002
    assert facts["algorithms"] >= 39
    assert "2 MiB for each rank" in facts["shared_memory"]
    assert "tcp between hosts" in facts["transport"]
    assert "127.0.0.1" in facts["interfaces"]["lo"]
    assert "predicted choices" in facts["algorithm_table"]


LEARNED = demo_training.Training(4.1, 2.0, "zero3 on 4 ranks: loss 4.1000 -> 2.0000, 9.0 steps/s", "The ring\nof [1]")


@pytest.fixture
def no_training(monkeypatch):
    """Skip the training of the demo, which takes seconds; tests/cli/test_demo_training.py runs it."""
    monkeypatch.setattr(demo_training, "run", lambda: LEARNED)


@pytest.mark.usefixtures("no_training")
def test_the_demo_plays_compares_proves_and_trains(capsys):
    assert main(["demo"]) == 0
    printed = capsys.readouterr().out
    assert "all-gather then gives every rank [6, 10, 14, 18]" in printed
    assert "all-reduce gives every rank      [6, 10, 14, 18]" in printed
    assert "ring on 64 ranks: 126 steps" in printed
    assert "All eight collectives on 4 real processes" in printed
    assert "every element is right" in printed
    assert "5. Predict." in printed
    assert "simulated µs" in printed
    assert "   unisono run -n 4 examples/train.py --strategy zero3 --steps 150\n" in printed
    assert f"   {LEARNED.summary}\n" in printed
    assert "   | The ring of [1]\n" in printed


@pytest.mark.usefixtures("no_training")
def test_the_demo_is_available_as_data(capsys):
    assert main(["demo", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["then_all_gather"] == data["all_reduce"] == [6, 10, 14, 18]
    assert len(data["runs"]) == 8
    for row in data["runs"]:
        assert row["wrong"] == 0
        assert row["busbw"] > 0
    assert [each["algorithm"] for each in data["predictions"]] == ["ring", "rabenseifner"]
    for each in data["predictions"]:
        assert min(each["time_s"], each["simulated_s"], each["measured_s"]) > 0
    assert data["training"]["last_loss"] == LEARNED.last_loss


def test_the_demo_detects_a_wrong_element(monkeypatch):
    from unisono.cli import demo_on_ranks

    right = demo_on_ranks.spawn

    def one_wrong(function, size):
        answers = right(function, size)
        answers[2][0][0][7] += 1
        return answers

    monkeypatch.setattr(demo_on_ranks, "spawn", one_wrong)
    assert [row.wrong for row in demo_on_ranks.run_all()] == [1, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("verb", "hint"),
    [
        ("verfy", "did you mean 'verify'?"),
        ("explian", "did you mean 'explain'?"),
        ("nonsense", "expected one of list"),
    ],
)
def test_an_unknown_verb_gets_a_suggestion(capsys, verb, hint):
    assert main([verb]) == 2
    printed = capsys.readouterr()
    assert hint in printed.err
    assert printed.out == ""


def test_a_missing_argument_prints_the_usage(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["show"])
    assert caught.value.code == 2
    assert "usage: unisono" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [("list --json", "["), ("show ring -n 64 --text", "unisono schedule 1"), ("list", "broadcast")],
)
def test_a_closed_pipe_is_not_an_error(arguments, line):
    """As in `unisono list | head -n 1`: the reader closes the pipe early."""
    words = [sys.executable, "-m", "unisono", *arguments.split()]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
        assert command.stdout.readline().startswith(line)
        command.stdout.close()
        assert command.stderr.read() == ""
        assert command.wait(timeout=60) == 0


def test_output_to_a_file_has_no_escape_codes_and_no_trailing_blanks():
    for arguments in ("list gather", "verify ring -n 2-3", "info", "show ring --data"):
        words = [sys.executable, "-m", "unisono", *arguments.split()]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.stderr == ""
        assert "\x1b" not in done.stdout
        assert not [line for line in done.stdout.splitlines() if line.endswith(" ")]


def test_the_command_is_installed():
    done = subprocess.run([sys.executable, "-m", "unisono", "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"unisono {unisono.__version__}\n"


def test_without_a_verb_the_help_is_printed(capsys):
    assert main([]) == 2
    assert "Start with `unisono show ring" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["list", "show", "verify", "bench", "explain", "tune", "info", "demo"])
def test_the_help_describes_every_verb(capsys, verb):
    with pytest.raises(SystemExit) as caught:
        main([verb, "--help"])
    assert caught.value.code == 0
    printed = capsys.readouterr().out
    assert "``" not in printed
    assert "--json" in printed


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["show", "no_such_one", "--lang", "zh"], "没有名为 'no_such_one' 的算法"),
        (["verify", "no_such_one", "--lang=zh"], "没有名为 'no_such_one' 的算法"),
        (["shwo", "ring", "--lang", "zh"], "show"),
        (["show", "ring", "-n", "4", "--rank", "7", "--lang", "zh"], "应为 0 到 3 之间的 rank 编号"),
    ],
)
def test_errors_are_shown_in_the_requested_language(capsys, words, text):
    assert main(words) == 2
    printed = capsys.readouterr().err
    assert text in printed
    assert re.search("[\u4e00-\u9fff]", printed)
    assert main([word for word in words if "lang" not in word and word != "zh"]) == 2
    assert not re.search("[\u4e00-\u9fff]", capsys.readouterr().err)


def test_the_documentation_lists_the_verbs_with_and_without_chinese():
    in_chinese = {verb for verb in VERBS if "--lang" in subparser(verb).format_help()}
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
    line = next(line for line in page.split("\n\n") if line.startswith("On the command line"))
    with_option, without = line.split("The other verbs")
    assert {verb for verb in VERBS if f"`{verb}`" in with_option} == in_chinese
    assert {verb for verb in VERBS if f"`{verb}`" in without} == set(VERBS) - in_chinese


def subparser(verb):
    actions = [action for action in parser(verb)._actions if isinstance(action, argparse._SubParsersAction)]
    return actions[0].choices[verb]
