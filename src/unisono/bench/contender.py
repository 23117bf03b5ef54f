"""What takes part in a measurement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from unisono.bench.cases import Case


class ContenderFailed(Exception):
    """A contender could not start, died, or did not answer in time: it is out of the run."""


class CaseUnsupported(Exception):
    """A contender cannot do this case; it may do others."""


@dataclass(frozen=True)
class TrialOptions:
    """How often a case is to be run in one trial."""

    iterations: int
    warmup: int
    check: bool


@dataclass(frozen=True)
class Trial:
    """What came of it: the seconds of every call on every rank."""

    seconds: list[list[float]]  # of each rank, of each call
    mean_s: float  # per call between two barriers, on the rank where it was longest
    wrong: int  # elements, on all ranks


class Contender(ABC):
    """A group of ranks that measures on command.

    ``start`` begins to start it and returns at once, so that many can start together; ``wait_until_ready`` returns
    when all ranks have met. ``close`` may be called at any time, also twice.
    """

    name: str
    version: str = ""
    # Whether bytes move between ranks, so that busbw means something.
    communicates: bool = True

    @abstractmethod
    def start(self) -> None:
        """Start the ranks."""

    @abstractmethod
    def wait_until_ready(self) -> None:
        """Wait until all ranks have met; ContenderFailed if they do not."""

    @abstractmethod
    def measure(self, case: Case, options: TrialOptions) -> Trial:
        """Run the case; CaseUnsupported or ContenderFailed if that cannot be."""

    @abstractmethod
    def close(self) -> None:
        """End all ranks and leave nothing behind."""
