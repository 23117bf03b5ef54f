"""examples/train.py as its users run it: alone, by ``unisono run``, by torchrun, on a terminal and in a pipe."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from forked_scripts import run_script

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "train.py")
ALONE = [sys.executable]
TWO_RANKS = [sys.executable, "on two ranks"]  # without a launcher
UNISONO = [*ALONE, "-m", "unisono", "run"]
TORCHRUN = [*ALONE, "-m", "torch.distributed.run", "--standalone"]
SHORT = ["--steps", "3", "--sample", "30"]
ENDING = re.compile(
    r"(\w+) on (\d) ranks?, 3 steps of \d+ rows: loss ([\d.]+) -> ([\d.]+), [\d.]+ steps/s, ([\d.]+) MB"
)


def run(launcher, *words):
    """Run it to its end."""
    if launcher in (ALONE, TWO_RANKS):
        return run_script(EXAMPLE, *SHORT, *words, size=2 if launcher is TWO_RANKS else None)[0]
    return subprocess.run([*launcher, EXAMPLE, *SHORT, *words], capture_output=True, text=True, timeout=120)


def ending(launcher, *words):
    """Run it; return strategy, ranks, first and last loss, and MB per step, as its last line states them."""
    done = run(launcher, *words)
    assert done.returncode == 0, done.stderr
    strategy, ranks, first, last, sent = ENDING.search(done.stdout).groups()
    assert float(last) < float(first) - 0.1
    return strategy, int(ranks), float(first), float(last), float(sent)


def test_alone_it_trains_and_prints_a_sample():
    done = run(ALONE, "--strategy", "moe")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line[: len("step    1 of 3: loss")] for line in lines[:3]] == [
        f"step {n:4} of 3: loss" for n in (1, 2, 3)
    ]
    assert ENDING.match(lines[3]).group(1, 2, 5) == ("moe", "1", "0.00")
    assert lines[4].startswith("The ")
    assert "\x1b" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "launcher",
    [
        pytest.param([*UNISONO, "-n", "2"], marks=pytest.mark.long),  # the tests of the README run it, on 4 ranks
        [*TORCHRUN, "--nproc-per-node", "2"],
    ],
    ids=["unisono run", "torchrun"],
)
def test_it_trains_with_the_algorithm_of_a_file_as_well_as_alone(launcher):
    mine = str(Path(EXAMPLE).with_name("zigzag.py"))
    done = run(launcher, "--algorithm", f"{mine}:zigzag")
    assert done.returncode == 0, done.stderr
    assert f"all_reduce: {mine}:zigzag" in done.stdout
    assert ENDING.search(done.stdout).group(3, 4) == ENDING.search(run(ALONE).stdout).group(3, 4)


@pytest.mark.long
def test_gradients_are_reduced_with_the_given_algorithm():
    """A wrong algorithm stops the training, so the test above used the right one."""
    wrong = str(Path(EXAMPLE).parent / "wrong" / "zigzag_twice.py")
    done = run([*UNISONO, "-n", "3"], "--algorithm", wrong)
    assert done.returncode != 0
    assert "is counted twice" in done.stderr


def test_an_algorithm_that_does_not_exist_is_refused():
    for words in (["--algorithm", "rnig"], ["--algorithm", "ring", "--backend", "gloo"]):
        done = run(ALONE, *words)
        assert done.returncode == 2
        assert "--algorithm" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_only_rank_0_prints_progress():
    done = run([*UNISONO, "-n", "2"], "--strategy", "zero3", "--codec", "bf16", "--collectives")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert all(line.startswith("[0] ") for line in done.stdout.splitlines())
    assert "[0] | backward | reduce_scatter | blocks.1 |" in done.stdout
    assert ENDING.search(done.stdout).group(1, 2) == ("zero3", "2")


@pytest.mark.long
def test_under_torchrun_a_codec_with_error_feedback_reaches_the_loss_of_gloo():
    ours = ending([*TORCHRUN, "--nproc-per-node", "2"], "--codec", "int8", "--error-feedback")
    gloo = ending([*TORCHRUN, "--nproc-per-node", "2"], "--backend", "gloo")
    assert ours == ("ddp", 2, gloo[2], pytest.approx(gloo[3], abs=0.001), pytest.approx(gloo[4] * 0.2578, abs=0.01))


@pytest.mark.slow
@pytest.mark.parametrize(
    "launcher", [pytest.param(ALONE, marks=pytest.mark.long), [*UNISONO, "-n", "2"]], ids=["alone", "unisono run"]
)
def test_on_a_terminal_there_is_a_progress_bar(launcher):
    ours, theirs = os.openpty()
    with subprocess.Popen([*launcher, EXAMPLE, *SHORT], stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        shown = b""
        while piece := _read(ours):
            shown += piece
        printed = process.stdout.read()
        assert process.wait(timeout=60) == 0
    os.close(ours)
    assert "3/3" in shown.decode()
    assert re.search(r"loss \d\.\d{4} ", shown.decode())
    assert "step    1 of 3" not in printed
    assert ENDING.search(printed)


def _read(descriptor):
    try:
        return os.read(descriptor, 4096)
    except OSError:  # the other end is closed
        return b""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "words", "message"),
    [
        (ALONE, ("--strategy", "tp", "--tp", "3"), "mesh: dp=-1 × tp=3 needs a multiple of 3 ranks, the group has 1"),
        pytest.param(
            ALONE, ("--codec", "fp4"), "there is no codec 'fp4'; expected one of fp16, bf16", marks=pytest.mark.long
        ),
        pytest.param(ALONE, ("--tp", "2"), "--tp does not go with ddp", marks=pytest.mark.long),
        (TWO_RANKS, ("--strategy", "tp", "--codec", "int8"), "--codec is for averaged gradients"),
    ],
)
def test_a_wrong_option_is_one_line_without_a_traceback(launcher, words, message):
    done = run(launcher, *words)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
