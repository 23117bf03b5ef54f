"""SimGrid's SMPI, an independent simulator, computes the same times within 1 %."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "compare_simgrid.py"


@pytest.mark.long
@pytest.mark.skipif(shutil.which("smpicc") is None, reason="SimGrid is not installed")
def test_simgrid_agrees_within_one_percent(tmp_path):
    rows_file = tmp_path / "rows.json"
    subprocess.run([sys.executable, str(TOOL), "--json", str(rows_file)], check=True, capture_output=True)
    rows = json.loads(rows_file.read_text())
    assert len(rows) == 30
    assert max(abs(row["difference"]) for row in rows) < 0.01
