"""Write the tables of collectives in docs/parallel/*.md from the logs of ``record()``: ``make docs``.

A page contains the markers ``<!-- collectives: data_parallel.step -->`` and ``<!-- end -->``. The lines between them
are replaced by the result of the function ``step`` of tools/parallel_steps/data_parallel.py. The function runs on
RANKS ranks (a constant of its file), gets their group, trains one step, and returns its log, or text in Markdown. All
ranks must return the same. To add a strategy, write such a file and a page that names its functions.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

import unisono
from unisono.parallel import Log, group_of

ROOT = Path(__file__).parent.parent
TABLE = re.compile(r"(<!-- collectives: (\w+)\.(\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """Return the pages that contain such tables."""
    every = sorted((ROOT / "docs" / "parallel").glob("*.md"))
    return [path for path in every if TABLE.search(path.read_text(encoding="utf-8"))]


def page(text: str) -> str:
    """Return the page with current tables."""
    return TABLE.sub(lambda found: f"{found[1]}{table(found[2], found[3])}\n{found[4]}", text)


def table(file: str, function: str) -> str:
    """Run one step of a strategy on new ranks; return the table for its page."""
    steps = import_module(f"parallel_steps.{file}")
    found = unisono.spawn(_on_a_rank, steps.RANKS, getattr(steps, function), timeout=60)
    assert all(text == found[0] for text in found), f"{file}.{function}: ranks return different tables"
    return str(found[0]).rstrip()


def _on_a_rank(comm: unisono.Communicator, step: Any) -> str:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    result: Log | str = step(group_of(comm))
    return result.table() if isinstance(result, Log) else result


if __name__ == "__main__":
    for path in pages():
        path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
