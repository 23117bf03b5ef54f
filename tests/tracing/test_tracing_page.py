"""The statements of docs/tracing.md are true."""

from __future__ import annotations

import re
import subprocess
import sys

from console_blocks import ROOT
from unisono.comm.tracing import EVENTS
from unisono.tracing import read_run, slow_rank
from unisono.tracing.events import EVENT
from unisono.tracing.reading import MOST_BYTES
from unisono.tracing.stragglers import OF_A_CALL, PACE, TIMES_THE_NEXT

PAGE = (ROOT / "docs" / "tracing.md").read_text(encoding="utf-8")


def test_the_example_is_recorded_and_its_slow_rank_is_named(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0])
    arguments = re.findall(r"\$ unisono (.*)\n", PAGE)[0].split()
    done = subprocess.run(
        [sys.executable, "-m", "unisono", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    (group,) = read_run(tmp_path / "run").communicators
    slow = slow_rank(group)
    assert slow is not None
    assert slow.rank == 2


def test_the_numbers_in_the_page_agree_with_the_code():
    assert f"last {EVENTS:,} events" in PAGE
    assert f"{EVENT.itemsize} bytes each" in PAGE
    assert f"larger than {MOST_BYTES // 2**20} MiB" in PAGE
    assert (OF_A_CALL, TIMES_THE_NEXT, PACE) == (0.1, 3, 1.5)  # "a tenth of a call", "three times", "one and a half"
