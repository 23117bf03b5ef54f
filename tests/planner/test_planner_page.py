"""The page about the planner shows what the commands print."""

from __future__ import annotations

import pytest

from console_blocks import ROOT, blocks
from unisono.cli.main import main

PAGE = ROOT / "docs" / "planner.md"


def test_the_page_has_commands():
    assert blocks(PAGE)


@pytest.mark.parametrize(("command", "shown"), blocks(PAGE), ids=lambda text: text.splitlines()[0][:60])
def test_a_command_prints_what_the_page_shows(command, shown, capsys, monkeypatch):
    """If this fails, run make docs."""
    monkeypatch.delenv("COLUMNS", raising=False)
    main(command.split()[1:])
    captured = capsys.readouterr()
    printed = "\n".join(line.rstrip() for line in (captured.out + captured.err).strip("\n").splitlines()) + "\n"
    assert printed == shown
