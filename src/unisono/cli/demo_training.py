"""The part of ``unisono demo`` that trains a model: examples/train.py, started as a user would start it."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

EXAMPLE = "examples/train.py"
ROOT = Path(__file__).parents[3]  # of the source tree, if we run from there
RANKS = 4
STEPS = 150  # some 15 seconds on two cores
LIMIT_S = 120.0
ENDING = re.compile(r"^.*: loss (?P<first>[\d.]+) -> (?P<last>[\d.]+), .*$", re.MULTILINE)


class Training(NamedTuple):
    """What came of it; or why nothing did."""

    first_loss: float | None = None
    last_loss: float | None = None
    summary: str = ""  # the last line of figures
    sample: str = ""  # a text by the model
    missing: str = ""  # what is not there, so that there was no training
    error: str = ""

    @property
    def right(self) -> bool:
        """Whether the model has learned something, or nobody could have taught it."""
        if self.first_loss is None or self.last_loss is None:
            return bool(self.missing)
        return self.last_loss < self.first_loss


def words() -> list[str]:
    """Return the command, as one would type it after ``unisono``."""
    return ["run", "-n", str(RANKS), EXAMPLE, "--strategy", "zero3", "--steps", str(STEPS)]


def missing() -> str:
    """Return what is not there that the training needs."""
    if find_spec("torch") is None:
        return "torch is not installed (pip install torch)"
    if not (ROOT / EXAMPLE).is_file():
        return f"{EXAMPLE} is not here; it is in the source tree of Unisono"
    return ""


def run() -> Training:
    """Train. Standard error is ours, so that there is a progress bar if it is a terminal."""
    reason = missing()
    if reason:
        return Training(missing=reason)
    verb, *rest = words()
    command = [sys.executable, "-m", "unisono", verb, "--no-prefix", *rest]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return Training(error=f"the training was not over after {LIMIT_S:.0f} s")
    ending = ENDING.search(done.stdout)
    if done.returncode or ending is None:
        return Training(error=f"the training ended with exit code {done.returncode}")
    sample = done.stdout[ending.end() :].strip()
    return Training(float(ending["first"]), float(ending["last"]), ending[0], sample)
