"""Runs the Python programs of a document: ``document_programs.py PAGE RANKS``, on every rank of a job."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from document_blocks import Block, python_blocks
from document_rules import PYTHON, Script, rule_of


def script_of(block: Block) -> Script | None:
    """Return how a program runs here, or None if it does not."""
    rule = rule_of(PYTHON, block.page, block.text)
    what = rule.what if rule else Script()
    return what if isinstance(what, Script) else None


def run_programs(page: str, ranks: int, line: int | None = None) -> int:
    """Run the programs of a page that take this number of ranks, or the one on a line; return how many ran."""
    spaces: dict[Script, dict[str, Any]] = {}
    count = 0
    for block in python_blocks():
        script = script_of(block)
        if block.page != page or script is None or script.ranks != ranks or line not in (None, block.line):
            continue
        if script.separately or script not in spaces:
            spaces[script] = {"__name__": "document"}
            exec(compile(script.before, f"before {block.place}", "exec"), spaces[script])
        with contextlib.suppress(SystemExit):  # a program may end
            exec(compile(program_of(block, script), block.place, "exec"), spaces[script])
        count += 1
    return count


def program_of(block: Block, script: Script | None) -> str:
    """Return the text of a program; lines with ``yield`` are the body of a function."""
    if script is None or not script.in_function:
        return block.text
    return "def program(rank, size):\n" + "".join(f"    {line}\n" for line in block.text.splitlines())


if __name__ == "__main__":
    print(run_programs(sys.argv[1], int(sys.argv[2])))
