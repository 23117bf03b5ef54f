"""Writes the output of every command into the tour and other pages: ``python tools/tour_pages.py``.

A ```console block shows one command after ``$``; the lines below it are replaced by what the command prints.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from console_blocks import printed_by, without_times  # noqa: E402

PAGES = tuple(ROOT / "docs" / name for name in ("tour.md", "tour.zh.md", "planner.md", "choice.md"))
BLOCK = re.compile(r"```console\n\$ (unisono [^\n]*)\n(.*?)```", re.DOTALL)


def with_outputs(text: str) -> str:
    """Return the text of a page with the current output of its commands; measured seconds stay as they were."""

    def block(match: re.Match[str]) -> str:
        printed = printed_by(match[1])
        shown = match[2] if without_times(printed) == without_times(match[2]) else printed
        return f"```console\n$ {match[1]}\n{shown}```"

    return BLOCK.sub(block, text)


if __name__ == "__main__":
    for page in PAGES:
        with tempfile.TemporaryDirectory() as empty:
            os.environ["XDG_CACHE_HOME"] = empty  # without the proofs of earlier commands
            page.write_text(with_outputs(page.read_text(encoding="utf-8")), encoding="utf-8")
