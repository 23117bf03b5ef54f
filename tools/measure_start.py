"""Measure how long a job takes to start, and how soon survivors get an error after a rank is killed."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from timing import seconds
from unisono.errors import PeerLost
from unisono.launch.spawn import outcomes_of

REPEATS = 9
SCRIPT = "import numpy as np, unisono\nwith unisono.connect() as comm:\n    comm.all_reduce(np.ones(4))\n"


def four_bare() -> None:
    """Start four interpreters that only import numpy."""
    ranks = [subprocess.Popen([sys.executable, "-c", "import numpy"]) for _ in range(4)]
    for rank in ranks:
        rank.wait()


def job_of_four(script: str) -> None:
    """Start four ranks that make one all-reduce."""
    subprocess.run([sys.executable, "-m", "unisono", "run", "-n", "4", script], check=True)


def die_or_learn(comm) -> float:
    """Kill the last rank; return the seconds until this rank gets the error."""
    x = np.ones(1000)
    comm.all_reduce(x)
    if comm.rank == comm.size - 1:
        time.sleep(0.1)  # until the others wait
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    try:
        comm.all_reduce(x)
    except PeerLost:
        return time.monotonic() - began - 0.1
    raise AssertionError("the call succeeded without the killed rank")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "first.py"
        script.write_text(SCRIPT)
        bare, ours = [], []
        for _ in range(REPEATS):  # in turns, so that both share the same disturbances
            bare.append(seconds(four_bare))
            ours.append(seconds(lambda: job_of_four(str(script))))
    print(f"four times `import numpy`:            median {statistics.median(bare):.3f} s, minimum {min(bare):.3f} s")
    print(f"unisono run -n 4, one all-reduce:     median {statistics.median(ours):.3f} s, minimum {min(ours):.3f} s")
    for size in (2, 4, 8):
        delays = [
            outcome.value
            for _ in range(5)
            for outcome in outcomes_of(die_or_learn, size)[:-1]
            if outcome.value is not None
        ]
        print(f"{size} ranks, one killed: all others have the error after {max(delays) * 1e3:.0f} ms")
