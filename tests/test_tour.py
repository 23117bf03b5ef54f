"""The tour, in English and in Chinese: every command runs and prints the output shown on the page."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from console_blocks import ROOT, blocks, printed_by, without_times

TOURS = [ROOT / "docs" / "tour.md", ROOT / "docs" / "tour.zh.md"]
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
# Commands whose output differs each time: they must succeed, and the page shows none of their output.
RUN_ONLY = re.compile(r"```sh\n\$ (unisono [^\n]*)\n```")


@pytest.mark.parametrize(
    ("command", "shown"),
    [pytest.param(*block, id=f"{page.name}: {block[0]}") for page in TOURS for block in blocks(page)],
)
def test_a_command_prints_what_the_page_shows(command, shown):
    """If this fails after an intended change, run python tools/tour_pages.py."""
    assert without_times(printed_by(command)) == without_times(shown)


def commands_to_run() -> list[object]:
    commands = dict.fromkeys(command for page in TOURS for command in RUN_ONLY.findall(page.read_text("utf-8")))
    # The tests of the README run the same training, so `make test` leaves this one out.
    return [
        pytest.param(command, marks=pytest.mark.long if "examples/train.py" in command else ())
        for command in commands
    ]


@pytest.mark.slow
@pytest.mark.parametrize("command", commands_to_run())
def test_a_command_without_output_succeeds(command, tmp_path):
    words = [str(tmp_path / word) if word.endswith(".html") else word for word in command.split()]
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr


def test_both_tours_have_the_same_parts():
    english, chinese = (page.read_text(encoding="utf-8") for page in TOURS)
    # Where a command prints Chinese, the Chinese tour passes the option for it.
    assert [command.replace(" --lang zh", "") for command, _ in blocks(TOURS[1])] == [
        command for command, _ in blocks(TOURS[0])
    ]
    assert RUN_ONLY.findall(english) == [command.replace(" --lang zh", "") for command in RUN_ONLY.findall(chinese)]
    assert len(blocks(TOURS[0])) >= 9
    assert len(RUN_ONLY.findall(english)) >= 3
    for pattern in (r"^## ", r"^```python", r"^- "):
        assert len(re.findall(pattern, english, re.MULTILINE)) == len(re.findall(pattern, chinese, re.MULTILINE))


@pytest.mark.parametrize("page", TOURS, ids=lambda page: page.name)
def test_the_python_of_the_tour_runs_in_order(page, monkeypatch):
    monkeypatch.chdir(ROOT)  # one of the blocks names a file of the examples
    space: dict[str, object] = {}
    for code in PYTHON.findall(page.read_text(encoding="utf-8")):
        exec(compile(code, page.name, "exec"), space)
    assert {"even_odd_ring", "zigzag", "two_nodes", "comm"} <= set(space)
