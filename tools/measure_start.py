"""Measure how long a job takes to start, and how soon survivors get an error after a rank is killed.

python tools/measure_start.py           4 ranks, and the loss of a rank
python tools/measure_start.py -n 64     64 ranks
"""

from __future__ import annotations

import argparse
import os
import resource
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


def start_bare(size: int) -> None:
    """Start interpreters that only import numpy."""
    ranks = [subprocess.Popen([sys.executable, "-c", "import numpy"]) for _ in range(size)]
    for rank in ranks:
        rank.wait()


def start_job(size: int, script: str) -> None:
    """Start ranks that make one all-reduce."""
    subprocess.run([sys.executable, "-m", "unisono", "run", "-n", str(size), script], check=True)


def cpu_seconds() -> float:
    """Return the processor time of all processes that this one has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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


def measure_start(size: int) -> None:
    """Print how long bare interpreters and a job take, in turns, so that both share the same disturbances."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "first.py"
        script.write_text(SCRIPT)
        actions = {
            f"{size} times `import numpy`": lambda: start_bare(size),
            f"unisono run -n {size}, one all-reduce": lambda: start_job(size, str(script)),
        }
        times: dict[str, list[float]] = {name: [] for name in actions}
        processor: dict[str, list[float]] = {name: [] for name in actions}
        for _ in range(REPEATS):
            for name, action in actions.items():
                before = cpu_seconds()
                times[name].append(seconds(action))
                processor[name].append(cpu_seconds() - before)
    for name in actions:
        print(
            f"{name + ':':<40} median {statistics.median(times[name]):.3f} s, {min(times[name]):.3f} to "
            f"{max(times[name]):.3f} s; {statistics.median(processor[name]):.2f} s of processor time"
        )


def measure_loss() -> None:
    """Print how soon the other ranks get an error after a rank is killed."""
    for size in (2, 4, 8):
        delays = [
            outcome.value
            for _ in range(5)
            for outcome in outcomes_of(die_or_learn, size)[:-1]
            if outcome.value is not None
        ]
        print(f"{size} ranks, one killed: all others have the error after {max(delays) * 1e3:.0f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, help="ranks (default: 4); with it, the loss of a rank is not measured")
    options = parser.parse_args()
    measure_start(options.n or 4)
    if options.n is None:
        measure_loss()
