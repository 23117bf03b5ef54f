"""Which clock the times of a trace are of.

All ranks are on one machine, and CLOCK_MONOTONIC is one clock for all of its processes: times of different ranks
can be compared as they are. A container can have a clock of its own (a time namespace), and another machine has one
in any case; so a trace says which clock it was, and whoever reads one refuses to mix them.
"""

from __future__ import annotations

import os
from pathlib import Path

NAME = "CLOCK_MONOTONIC"


def this_clock() -> dict[str, str]:
    """Return what tells the clock of this process from others."""
    return {"name": NAME, "machine": _boot(), "namespace": _time_namespace()}


def _boot() -> str:
    """Name the machine since it was started: the clock begins anew with it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


def _time_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/time")
    except OSError:  # older than Linux 5.6: there are none
        return "none"
