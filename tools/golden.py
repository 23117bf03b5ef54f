"""Write the golden schedules: every built-in algorithm on five ranks, in text form."""

from pathlib import Path

from unisono.algorithms import BUILT_IN
from unisono.schedule.text import format_schedule

folder = Path(__file__).parent.parent / "tests" / "golden"
folder.mkdir(exist_ok=True)
for old in folder.glob("*.txt"):
    old.unlink()
for algorithm in BUILT_IN:
    name = f"{algorithm.collective}-{algorithm.name}.txt"
    (folder / name).write_text(format_schedule(algorithm.schedule(5)))
