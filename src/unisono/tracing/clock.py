"""Identifies the clock of the times in a trace.

CLOCK_MONOTONIC is one clock for all processes of a machine, so times of its ranks can be compared directly. A
container may have a different clock (a time namespace), and another machine always has one. So a trace names its
clock, and a reader refuses to mix clocks; joining.py aligns them first.
"""

from __future__ import annotations

import os
from pathlib import Path

NAME = "CLOCK_MONOTONIC"


def this_clock() -> dict[str, str]:
    """Return the identity of the clock of this process."""
    return {"name": NAME, "machine": _boot(), "namespace": _time_namespace()}


def _boot() -> str:
    """Return the boot id of the machine: its clock restarts at every boot."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


def _time_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/time")
    except OSError:  # before Linux 5.6 there are no time namespaces
        return "none"
