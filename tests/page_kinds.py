"""A page of each kind, written like a user writes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from console_blocks import ROOT
from launching import LIMIT_S
from unisono import draw, plan
from unisono.cli.main import main
from unisono.planner import what_would_change
from unisono.planner.page import save_page

# Pages of the gallery that stand for their kind.
FROM_THE_GALLERY = (
    "index",
    "all_reduce-hierarchical",  # phases, nodes and a long program
    "barrier-dissemination",  # without data
    "compare-all_reduce",
    "lesson-3-halves",  # parts that continue each other
    "lesson-7-zero3",
    "lesson-4-busbw",
    "lesson-8-race",
)
OTHERS = ("run", "simulated", "failing", "race", "circle", "matrix", "plan")
KINDS = (*FROM_THE_GALLERY, *OTHERS)

SLOW_RANK = """
import time, numpy as np, unisono
with unisono.connect() as comm:
    for step in range(3):
        time.sleep(0.040 if comm.rank == 2 else 0.002)
        comm.all_reduce(np.ones(1000 * comm.size, np.float32), algorithm="ring")
    comm.split(comm.rank % 2).all_gather(np.ones(10), np.ones(5), algorithm="ring")
"""


def write_others(folder: Path) -> None:
    """Write the pages that the gallery does not have."""
    draw("ring", size=8, network="dgx-h100").save(folder / "simulated.html")
    draw(["ring", "recursive_doubling", "tree"], size=5).save(folder / "race.html")
    draw("ring", size=64).save(folder / "circle.html")
    draw("ring", size=100).save(folder / "matrix.html")
    found = plan("layers=4,hidden=256,heads=8,vocabulary=1000,sequence=512,experts=4", gpus=16, tokens="64K")
    save_page(folder / "plan.html", found, what_would_change(found))
    wrong = ROOT / "examples" / "wrong" / "zigzag_twice.py"
    assert main(["draw", str(wrong), "-n", "5", "-o", str(folder / "failing.html"), "--no-open"]) == 1
    (folder / "script.py").write_text(SLOW_RANK)
    command = [sys.executable, "-m", "unisono", "run", "-n", "4", "--trace", "run", "script.py"]
    subprocess.run(command, cwd=folder, check=True, timeout=LIMIT_S, stdout=subprocess.DEVNULL)
    draw(folder / "run").save(folder / "run.html")
