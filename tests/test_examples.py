"""Every example runs as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# tests/torch_backend/test_examples_of_training.py and tests/parallel/test_train_example.py run these.
TRAINING = ("ddp.py", "fsdp2.py", "train.py")
EXAMPLES = sorted(
    path for path in (Path(__file__).parent.parent / "examples").glob("*.py") if path.name not in TRAINING
)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_example_runs(path):
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_zigzag_example_agrees_with_the_tour():
    done = subprocess.run(
        [sys.executable, EXAMPLES[0].parent / "zigzag.py"], capture_output=True, text=True, timeout=120
    )
    assert "played: [ 6 10 14 18]" in done.stdout
    assert "all_reduce/zigzag: 14 rounds, 2.00 of the message sent per rank" in done.stdout
