"""Consoles, tables, paragraphs and progress bars, as every verb prints them."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import IO, Any, cast

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

PLAIN_WIDTH = 132  # of what goes to a file or a pipe
PROGRESS_EVERY_S = 5.0  # between two lines of progress
# The pieces between which a line may break: after a word, and after any Chinese character with the marks that follow
# it, which may not begin a line. Chinese words have no blanks between them, so a line preferably ends with a mark.
_CJK, _MARKS = r"\u2e80-\u9fff\u3000-\u303f\uff00-\uffef", "，。；：！？、）》”…"
PIECES = re.compile(rf"\s*[（《“]*(?:[^\s{_CJK}]+|\S)[{_MARKS}]*")
_CHINESE = re.compile(f"[{_CJK}]")


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Let the command end quietly: the reader has closed the pipe (`unisono list | head`)."""
        raise BrokenPipeError


class _WithoutTrailingBlanks(io.TextIOBase):
    """A file for plain text: tables are padded with blanks, which do not belong in a file."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file

    def write(self, text: str) -> int:
        """Write the text without blanks at the ends of its lines."""
        self.file.write(re.sub(r"[ ]+$", "", text, flags=re.MULTILINE))
        return len(text)

    def flush(self) -> None:
        """Flush the file."""
        self.file.flush()


def console(*, stderr: bool = False) -> Console:
    """Return a console: as wide as the terminal, or wide enough for the tables where there is none."""
    made = _Console(stderr=stderr, highlight=False)
    if made.is_terminal:
        return made
    width = None if "COLUMNS" in os.environ else PLAIN_WIDTH
    plain = cast("IO[str]", _WithoutTrailingBlanks(sys.stderr if stderr else sys.stdout))
    return _Console(file=plain, highlight=False, width=width)


def progress_bar(quiet: bool = False) -> Progress:
    """Return a progress bar on standard error, which disappears when the work is done."""
    shown_on = console(stderr=True)
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=shown_on, transient=True, disable=quiet or not shown_on.is_terminal,
    )  # fmt: skip


def table(*columns: str, title: str | None = None) -> Table:
    """Return a table in our style; a column whose name begins with > is flush right."""
    made = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=None, pad_edge=False)
    for column in columns:
        made.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left", no_wrap=True)
    return made


def print_table(out: Console, made: Table) -> None:
    """Print a whole table; a terminal that is too narrow continues its lines, and nothing is cut off."""
    needed = Measurement.get(out, out.options.update(max_width=10_000), made).maximum
    if needed > out.width:
        made.width = needed
    out.print(made, crop=False, no_wrap=True, overflow="ignore")


class GrowingTable:
    """A table whose rows are printed one by one; the widths of its columns are known before the first row.

    A name of a column that begins with > is flush right, as in ``table``; it may have two lines.
    """

    def __init__(self, out: Console, columns: Sequence[tuple[str, int]]) -> None:
        self.out = out
        names = [name.removeprefix(">").split("\n") for name, _ in columns]
        self.flush_right = [name.startswith(">") for name, _ in columns]
        self.widths = [
            max(width, *map(len, lines)) for (_, width), lines in zip(columns, names, strict=True)
        ]  # fmt: skip
        for number in range(max(map(len, names))):
            self.print_row(*((lines[number : number + 1] or [""])[0] for lines in names), style="bold")

    def print_row(self, *cells: str, style: str = "") -> None:
        """Print a row now; cells may be in rich's markup."""
        line = Text(style=style)
        for index, cell in enumerate(cells):
            text = Text.from_markup(cell)
            blanks = " " * max(0, self.widths[index] - text.cell_len)
            line.append("  " if index else "")
            line.append_text(Text.assemble(blanks, text) if self.flush_right[index] else Text.assemble(text, blanks))
        self.out.print(line, soft_wrap=True)
        self.out.file.flush()


class ProgressLines:
    """Progress for a standard error that is no terminal: a line now and then."""

    def __init__(self, total: int, every_s: float = PROGRESS_EVERY_S) -> None:
        self.total, self.every_s, self.done = total, every_s, 0
        self.shown_s = time.monotonic()

    def advance(self, activity: str) -> None:
        """Count a piece of work that begins; print a line if the last one is some time ago."""
        self.done += 1
        if time.monotonic() >= self.shown_s + self.every_s:
            self.shown_s = time.monotonic()
            print(f"{self.done} of {self.total}: {activity}", file=sys.stderr, flush=True)


def print_paragraph(
    out: Console, text: str, *, label: str = "", style: str = "", first: str = "", rest: str = ""
) -> None:
    """Print a paragraph that wraps between words, with a label in front of it.

    ``first`` indents the first line, ``rest`` the others.
    """
    colon = "：" if _CHINESE.search(text) else ": "
    shown = f"{label}{colon}{text}" if label else text
    for number, line in enumerate(wrapped(shown, out.width - max(len(first), len(rest)))):
        printed = Text((rest if number else first) + line, style)
        if label and not number:
            printed.stylize("cyan", len(first), len(first) + len(label))
        out.print(printed, soft_wrap=True)


def wrapped(text: str, width: int) -> list[str]:
    """Return a text as lines of at most ``width`` columns; a longer word has a line to itself."""
    lines: list[list[str]] = [[]]
    for piece in PIECES.findall(text):
        line = lines[-1]
        if line and cell_len("".join(line) + piece) > width:
            end = _last_mark(line, width) if _CHINESE.search(piece + line[-1]) else len(line)
            lines[-1], rest = line[:end], line[end:]
            lines.append([part.lstrip() if not number else part for number, part in enumerate([*rest, piece])])
        else:
            line.append(piece)
    return ["".join(line) for line in lines]


def _last_mark(line: list[str], width: int) -> int:
    """Return the number of pieces up to the last mark of a line; all of them if that leaves half of it empty."""
    ends = [end for end in range(1, len(line) + 1) if line[end - 1][-1] in _MARKS]
    return ends[-1] if ends and cell_len("".join(line[: ends[-1]])) > width / 2 else len(line)


def ranks(count: int) -> str:
    """Write a number of ranks."""
    return f"{count} rank{'' if count == 1 else 's'}"


def ratio(value: float) -> str:
    """Write a ratio to a lower bound: green if the bound is reached, red if it is far away."""
    colour = "green" if value < 1.05 else "yellow" if value < 2 else "red"
    return f"[{colour}]{value:.2f}×[/]"


def fraction(value: Fraction) -> str:
    """Write an exact fraction of the vector, with its decimal value."""
    if value.denominator == 1:
        return str(value)
    short = f"{float(value):.3g}"
    return f"{value} = {short}" if Fraction(short) == value else f"{value} ≈ {float(value):.2f}"


def print_json(data: Any) -> None:
    """Print data for programs."""
    print(json.dumps(data, indent=2, ensure_ascii=False, default=str))
