"""Lets tools/gpu_watch.py see where a process hangs.

Python imports this file when it starts, if the folder is on ``PYTHONPATH``; the folder holds nothing else. A process
that hangs may hold the interpreter's lock, so nothing here needs it later: on SIGUSR1, faulthandler writes the stacks
of all threads; on SIGUSR2, a thread of the engine writes what the calls on GPUs wait for.
"""

import contextlib
import faulthandler
import os
import signal
import sys
from pathlib import Path


def _watch(folder: Path) -> None:
    name = folder / str(os.getpid())
    # The file stays open: faulthandler writes to its descriptor.
    stacks = name.with_suffix(".stacks").open("w", encoding="utf-8")
    rank = os.environ.get("RANK") or os.environ.get("UNISONO_RANK")
    print(" ".join(sys.orig_argv)[:160], f"(rank {rank})" if rank else "", file=stacks, flush=True)
    faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
    with contextlib.suppress(Exception):  # a process that cannot import Unisono makes no calls
        from unisono import _engine

        _engine.describe_gpu_calls_on_signal(int(signal.SIGUSR2), str(name.with_suffix(".calls")))


if os.environ.get("UNISONO_WATCHED"):
    _folder = Path(os.environ["UNISONO_WATCHED"])
    _watch(_folder)
    os.register_at_fork(after_in_child=lambda: _watch(_folder))
