"""Links, and the table of all directed links of a network."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Times = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Link:
    """One direction of a cable, of a port, or of the memory of a host. ``bandwidth`` is in bytes per second."""

    name: str
    latency_s: float
    bandwidth: float


@dataclass(frozen=True)
class Section:
    """Links of one kind with consecutive ids, ``count`` of them; ``name`` makes the name of the link at an index."""

    count: int
    latency_s: float
    bandwidth: float
    name: Callable[[int], str]


class LinkTable:
    """The links of a network: arrays ``latency_s`` and ``bandwidth`` (bytes per second), indexed by the id of a link.

    ``len(table)`` is the number of links; ``table[id]`` is one of them, with its name.
    """

    def __init__(self, sections: Iterable[Section]) -> None:
        """Number the links of ``sections`` in their order."""
        self._sections = tuple(sections)
        counts = [section.count for section in self._sections]
        self._starts = [sum(counts[:index]) for index in range(len(counts))]
        self.latency_s: Times = np.repeat([section.latency_s for section in self._sections], counts)
        self.bandwidth: Times = np.repeat([section.bandwidth for section in self._sections], counts)

    def __len__(self) -> int:
        return len(self.latency_s)

    def __getitem__(self, link: int) -> Link:
        if not 0 <= link < len(self):
            raise IndexError(link)
        return Link(self.name(link), float(self.latency_s[link]), float(self.bandwidth[link]))

    def name(self, link: int) -> str:
        """Return the name of a link."""
        index = bisect_right(self._starts, link) - 1
        while not self._sections[index].count:  # an empty section starts where the next one does
            index -= 1
        return self._sections[index].name(int(link) - self._starts[index])
