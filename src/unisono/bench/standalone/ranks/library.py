"""What a library must be able to do to be measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from .buffers import Buffers


class Unsupported(Exception):
    """The library cannot do what is asked for; it can do other things."""


class Library(ABC):
    """A library that is measured: how it starts, and how it is called."""

    rank: int
    size: int
    version = ""
    communicates = True  # whether there is a result to be checked

    @abstractmethod
    def barrier(self) -> None:
        """Wait for all ranks."""

    @abstractmethod
    def call(self, buffers: Buffers, command: dict[str, Any]) -> Callable[[], object]:
        """Return what runs the collective once; whatever can be prepared, is."""

    def close(self) -> None:  # noqa: B027 (not everyone has to)
        """Take leave of the others."""
