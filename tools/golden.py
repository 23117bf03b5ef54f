"""Write the golden files: every built-in algorithm on five ranks, as a schedule and as engine instructions."""

from pathlib import Path

from unisono.algorithms import BUILT_IN
from unisono.compiler import lower
from unisono.schedule import Schedule
from unisono.schedule.text import format_schedule
from unisono.verifier import proved

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"


def lowered_text(schedule: Schedule) -> str:
    """Return the instructions of all ranks."""
    found = proved(schedule)
    ranks = (f"rank {rank}\n{lower(found, rank).text}" for rank in range(schedule.size))
    return f"# {schedule.label} on {schedule.size} ranks\n" + "".join(ranks)


if __name__ == "__main__":
    for folder in (GOLDEN, GOLDEN / "lowered"):
        folder.mkdir(exist_ok=True)
        for old in folder.glob("*.txt"):
            old.unlink()
    for algorithm in BUILT_IN:
        name = f"{algorithm.collective}-{algorithm.name}.txt"
        (GOLDEN / name).write_text(format_schedule(algorithm.schedule(5)))
        (GOLDEN / "lowered" / name).write_text(lowered_text(algorithm.schedule(5)))
