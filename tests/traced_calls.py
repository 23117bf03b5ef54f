"""Calls for the tests that record ranks."""

from __future__ import annotations

import numpy as np


def record(comm, path, action, **options):
    """Return the result of ``action(comm)``, recorded in a trace."""
    with comm.trace(path, **options):
        return action(comm)


def many_calls(comm):
    """Make a hundred short calls."""
    for _ in range(100):
        comm.all_reduce(np.ones(10), algorithm="ring")
