"""Resolves the names of algorithms on the command line, and stops code of a user that does not return."""

from __future__ import annotations

from pathlib import Path

from unisono.algorithms import Algorithm, user_files
from unisono.algorithms.user_files import WrittenSchedule
from unisono.cli.watchdog import watched
from unisono.collectives import Collective

__all__ = ["WrittenSchedule", "algorithms_in", "resolve"]


def resolve(name: str, collective: Collective | None = None) -> Algorithm | WrittenSchedule:
    """Return the algorithm that a name on the command line stands for."""
    return user_files.resolve(name, collective, watch=watched)


def algorithms_in(file: str | Path) -> list[Algorithm | WrittenSchedule]:
    """Return the algorithms that a file declares."""
    return user_files.algorithms_in(file, watch=watched)
