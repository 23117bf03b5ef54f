"""The ```console blocks of a page: commands after ``$`` and their output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"```console\n\$ (unisono [^\n]*)\n(.*?)```", re.DOTALL)
SECONDS_COLUMN = re.compile(r"^([✓✗] +\S+ +\d+ +\d+ +)\d+\.\d+", re.MULTILINE)
IN_ALL = re.compile(r"(in|用时) \d+\.\d+ (s|秒)$", re.MULTILINE)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return each command with the output that the page shows."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def printed_by(command: str) -> str:
    """Run a command of the project from its root; return the output without trailing blanks."""
    words = [sys.executable, "-m", *command.split()]
    plain = {name: value for name, value in os.environ.items() if name != "COLUMNS"}  # a variable that pytest sets
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=120, env=plain)
    return "\n".join(line.rstrip() for line in (done.stdout + done.stderr).strip("\n").splitlines()) + "\n"


def without_times(text: str) -> str:
    """Return the text with measured seconds blanked out, as they differ between runs."""
    return IN_ALL.sub(r"\1 # \2", SECONDS_COLUMN.sub(r"\1#", text))
