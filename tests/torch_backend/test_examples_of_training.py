"""The training examples run under torchrun, with Unisono and with Gloo."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def run(example, size, *options):
    """Run an example; return the finished process and the losses that it printed."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)]
    done = subprocess.run([*command, EXAMPLES / example, *options], capture_output=True, text=True, timeout=180)
    return done, [float(found) for found in re.findall(r": loss ([\d.]+)", done.stdout)]


def losses(example, size, *options):
    """Run an example with Unisono, which must succeed; return its losses."""
    done, found = run(example, size, *options)
    assert done.returncode == 0, done.stderr
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "size", "options", "count", "learned"),
    [
        ("ddp.py", 2, ["--epochs", "10"], 10, 0.5),  # half of the epochs
        pytest.param("fsdp2.py", 2, [], 6, 0.3, marks=pytest.mark.long),
        pytest.param("ddp.py", 4, [], 20, 0.3, marks=pytest.mark.long),
        pytest.param("fsdp2.py", 4, [], 6, 0.3, marks=pytest.mark.long),
    ],
)
def test_an_example_prints_the_same_losses_as_on_gloo(example, size, options, count, learned):
    ours = losses(example, size, *options)
    assert len(ours) == count
    assert ours[-1] < learned * ours[0]
    # Of Gloo, only the output counts: in about one of ten runs, a Gloo rank aborted during exit, after the last line.
    _, theirs = run(example, size, *options, "--backend", "gloo")
    # Rounding depends on the order of a sum, and its effect grows from step to step.
    assert ours == pytest.approx(theirs, rel=0.02, abs=0.005)


@pytest.mark.parametrize("example", ["ddp.py", "fsdp2.py"])
def test_the_examples_mention_unisono_only_as_the_backend_name(example):
    program = (EXAMPLES / example).read_text(encoding="utf-8")
    assert program.count("unisono") == 1
    assert 'default="unisono"' in program
