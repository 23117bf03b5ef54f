"""Tables that are printed while they grow, and lines of progress."""

from __future__ import annotations

import io

from rich.console import Console

from unisono.cli.output import GrowingTable, ProgressLines


class Flushed(io.StringIO):
    """A file that remembers what had been written when it was flushed."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def flush(self):
        self.seen.append(self.getvalue())


def test_every_row_is_written_and_flushed_at_once():
    file = Flushed()
    rows = GrowingTable(Console(file=file, width=80), [(">bytes", 4), ("type", 7), (">time\nµs", 6)])
    assert file.seen[-1].splitlines() == ["bytes  type       time", "                    µs"]
    rows.print_row("8", "float32", "[red]1.5[/]")
    assert file.seen[-1].splitlines()[-1] == "    8  float32     1.5"


def test_progress_is_a_line_now_and_then(capsys):
    silent, talkative = ProgressLines(3, every_s=1000), ProgressLines(3, every_s=0)
    for lines in (silent, talkative):
        lines.advance("first")
    assert capsys.readouterr().err == "1 of 3: first\n"
