"""The part of ``unisono demo`` that trains a model: it runs examples/train.py as a user would."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from unisono import native_engine
from unisono.cli import messages

EXAMPLE = "examples/train.py"
ROOT = Path(__file__).parents[3]  # the root of the source tree, if the package runs from there
RANKS = 4
STEPS = 150  # about 15 seconds on two cores
LIMIT_S = 120.0
ENDING = re.compile(r"^.*: loss (?P<first>[\d.]+) -> (?P<last>[\d.]+), .*$", re.MULTILINE)


class Training(NamedTuple):
    """The result of the training, or the reason why there is none."""

    first_loss: float | None = None
    last_loss: float | None = None
    summary: str = ""  # the line with the losses and the speed
    sample: str = ""  # a text that the model has written
    missing: str = ""  # the reason why nothing was trained
    error: str = ""

    @property
    def right(self) -> bool:
        """Return whether the model has learned, or could not be trained here."""
        if self.first_loss is None or self.last_loss is None:
            return bool(self.missing)
        return self.last_loss < self.first_loss


def words() -> list[str]:
    """Return the arguments of the command ``unisono``."""
    return ["run", "-n", str(RANKS), EXAMPLE, "--strategy", "zero3", "--steps", str(STEPS)]


def missing() -> str:
    """Return the reason why nothing can be trained here; empty if it can."""
    if not native_engine.is_installed():
        return native_engine.missing().message
    if find_spec("torch") is None:
        return messages.NO_TORCH()
    if not (ROOT / EXAMPLE).is_file():
        return messages.NO_EXAMPLE(example=EXAMPLE)
    return ""


def run() -> Training:
    """Train. Standard error is inherited, so that a terminal shows a progress bar."""
    reason = missing()
    if reason:
        return Training(missing=reason)
    verb, *rest = words()
    command = [sys.executable, "-m", "unisono", verb, "--no-prefix", *rest]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return Training(error=messages.TRAINING_TOO_LONG(seconds=f"{LIMIT_S:.0f}"))
    ending = ENDING.search(done.stdout)
    if done.returncode or ending is None:
        return Training(error=messages.TRAINING_FAILED(code=done.returncode))
    sample = done.stdout[ending.end() :].strip()
    return Training(float(ending["first"]), float(ending["last"]), ending[0], sample)
