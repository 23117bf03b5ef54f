"""The interface of a library that is measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from .buffers import Buffers


class Unsupported(Exception):
    """The library does not support this case; it may support others."""


class Library(ABC):
    """A library that is measured."""

    rank: int
    size: int
    version = ""
    communicates = True  # whether there is a result to check

    @abstractmethod
    def barrier(self) -> None:
        """Wait for all ranks."""

    @abstractmethod
    def call(self, buffers: Buffers, command: dict[str, Any]) -> Callable[[], object]:
        """Return a function that runs the collective once; everything else is prepared here."""

    def close(self) -> None:  # noqa: B027 (optional)
        """Disconnect from the other ranks."""
