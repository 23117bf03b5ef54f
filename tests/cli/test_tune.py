"""``unisono tune``."""

from __future__ import annotations

import json

import pytest

from unisono.cli.main import main
from unisono.comm.tables import load_table, table_path


@pytest.mark.slow
def test_what_was_measured_is_shown_stored_and_named_by_info(capsys):
    assert main(["tune", "-n", "2", "--budget", "1"]) == 0
    printed = capsys.readouterr().out
    assert "2 ranks, measured in" in printed
    assert str(table_path()) in printed.replace("\n", "")  # a long one goes over several lines
    assert load_table()["all_reduce"]["2"][0][0] == 0
    assert main(["info"]) == 0
    assert "measured for 2 ranks" in capsys.readouterr().out


@pytest.mark.slow
def test_a_dry_run_stores_nothing(capsys):
    assert main(["tune", "-n", "2", "--budget", "1", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ranks"] == 2
    assert load_table() == {}


def test_nonsense_is_refused(capsys):
    assert main(["tune", "-n", "1"]) == 2
    assert "nothing to choose with one rank" in capsys.readouterr().err
    assert main(["tune", "-n", "2", "--budget", "0"]) == 2
    assert "expected seconds" in capsys.readouterr().err
