"""The interface of a contender: it starts ranks, runs trials and closes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from unisono.bench.cases import Case


class ContenderFailed(Exception):
    """A contender could not start, died, or did not answer in time; it is dropped from the measurement."""


class CaseUnsupported(Exception):
    """A contender does not support this case; it may support others."""


@dataclass(frozen=True)
class TrialOptions:
    """The calls of one trial: how many are timed, how many warm up, and whether results are checked."""

    iterations: int
    warmup: int
    check: bool


@dataclass(frozen=True)
class Trial:
    """The result of one trial: the seconds of every call on every rank."""

    seconds: list[list[float]]  # by rank, then by call
    mean_s: float  # per call between two barriers, on the slowest rank
    wrong: int  # wrong elements on all ranks together
    latency_s: float | None = None  # of a call that is waited for, on the slowest rank; where calls only enqueue


class Contender(ABC):
    """A set of ranks that measures on command.

    ``start`` returns before the ranks are ready, so that many contenders can start at the same time;
    ``wait_until_ready`` returns when all ranks are connected. ``close`` may be called at any time, and twice.
    """

    name: str
    version: str = ""
    # False if no bytes move between ranks, so that busbw has no meaning.
    communicates: bool = True

    @abstractmethod
    def start(self) -> None:
        """Start the ranks."""

    @abstractmethod
    def wait_until_ready(self) -> None:
        """Wait until all ranks are connected; raise ContenderFailed if they do not connect."""

    @abstractmethod
    def measure(self, case: Case, options: TrialOptions) -> Trial:
        """Run a trial of the case; raise CaseUnsupported or ContenderFailed if that is impossible."""

    @abstractmethod
    def close(self) -> None:
        """End all ranks and remove their files."""
