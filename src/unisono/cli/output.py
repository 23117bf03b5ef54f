"""What all verbs print with."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.table import Table

PLAIN_WIDTH = 132  # of tables that go to a file or a pipe


def console(*, stderr: bool = False) -> Console:
    """Return a console: as wide as the terminal, or wide enough for the tables where there is none."""
    plain = Console(stderr=stderr, highlight=False)
    if plain.is_terminal or "COLUMNS" in os.environ:
        return plain
    return Console(stderr=stderr, highlight=False, width=PLAIN_WIDTH)


def table(*columns: str, title: str | None = None) -> Table:
    """Return a table in our style; a column whose name begins with > is flush right."""
    made = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=None, pad_edge=False)
    for column in columns:
        made.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left")
    return made


def ratio(value: float) -> str:
    """Write a distance to a bound: green is there, red is far away."""
    colour = "green" if value < 1.05 else "yellow" if value < 2 else "red"
    return f"[{colour}]{value:.2f}×[/]"


def fraction(value: Fraction) -> str:
    """Write an exact part of the message, with what it comes to."""
    return str(value) if value.denominator == 1 else f"{value} = {float(value):.2f}"


def print_json(data: Any) -> None:
    """Print data for programs."""
    print(json.dumps(data, indent=2, ensure_ascii=False, default=str))
