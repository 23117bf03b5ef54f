"""Measures contenders in turns: A B C at every case, then B C A at every case, then C A B.

A machine is never idle. Measuring one library now and another one later compares two states of the machine.
Contenders that take turns within seconds run under the same load, the more so over several repeats, each of which
starts with another contender. A repeat visits all cases before the next repeat begins, so that a disturbance of some
seconds affects only one trial of a contender at a case. A contender that is alone is not compared with any other: its
repeats at a case follow each other, so that the result of each case is known soon.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from unisono.bench.cases import Case
from unisono.bench.contender import CaseUnsupported, Contender, ContenderFailed, Trial, TrialOptions

FEWEST, MOST = 3, 10_000  # calls in one trial
FIRST = TrialOptions(iterations=FEWEST, warmup=2, check=True)  # its times do not count


@dataclass(frozen=True)
class Effort:
    """How long to measure: the repeats, and the seconds for each contender at each case, all repeats together."""

    repeats: int = 5
    budget_s: float = 0.5
    # The quantile of call times to compare: the median, or a lower one on a machine with other load.
    quantile: float = 0.5
    # Count only the fastest trial of a contender: for virtual machines, whose cores are moved between trials.
    fastest_trial: bool = False


@dataclass
class Times:
    """All trials of one contender at one case.

    The time of a call is measured on every rank. Contenders are compared by a quantile (by default the median) of all
    calls of a rank, on the slowest rank: a rank that only sends finishes early, before the others do.
    """

    effort: Effort = Effort()
    calls_s: list[list[float]] = field(default_factory=list)  # by rank
    means_s: list[float] = field(default_factory=list)  # by trial
    trials_s: list[float] = field(default_factory=list)  # the compared time of each trial alone
    latencies_s: list[float] = field(default_factory=list)  # of a call that is waited for, by trial
    expected_s: float = 0.0  # of the next call, according to the last trial
    wrong: int = 0
    unsupported: str | None = None

    def add(self, trial: Trial) -> None:
        """Add a trial."""
        self.calls_s = self.calls_s or [[] for _ in trial.seconds]
        for mine, new in zip(self.calls_s, trial.seconds, strict=True):
            mine += new
        self.means_s.append(trial.mean_s)
        self.trials_s.append(_longest(trial.seconds, self.effort.quantile))
        self.wrong += trial.wrong
        if trial.latency_s is not None:
            self.latencies_s.append(trial.latency_s)

    def quantile_s(self, part: float) -> float:
        """Return a quantile of the call times, on the slowest rank."""
        return _longest(self.calls_s, part)

    @property
    def time_s(self) -> float:
        """Return the time by which contenders are compared."""
        return min(self.trials_s) if self.effort.fastest_trial else self.quantile_s(self.effort.quantile)

    @property
    def mean_s(self) -> float:
        """Return the mean time of a call between two barriers: the median over all trials."""
        return float(np.median(self.means_s))

    @property
    def latency_s(self) -> float | None:
        """Return the time of a call that is waited for, where calls only enqueue: the median over all trials."""
        return float(np.median(self.latencies_s)) if self.latencies_s else None

    @property
    def calls(self) -> int:
        """Return the number of timed calls on each rank."""
        return len(self.calls_s[0]) if self.calls_s else 0


def _longest(ranks: list[list[float]], part: float) -> float:
    return max(float(np.quantile(calls, part)) for calls in ranks)


@dataclass
class Result:
    """The times of all contenders at one case."""

    case: Case
    times: dict[str, Times] = field(default_factory=dict)  # of each contender that took part

    def fastest(self, names: Iterable[str]) -> str | None:
        """Return the name of the contender that took the least time; None if none of them was measured."""
        timed = [name for name in names if name in self.times and self.times[name].calls]
        return min(timed, key=lambda name: self.times[name].time_s, default=None)


@dataclass
class Measurement:
    """All results of a measurement."""

    size: int
    contenders: list[Contender]
    effort: Effort = Effort()
    results: list[Result] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)  # contenders that failed, and why
    hosts: tuple[int, ...] = ()  # the number of ranks on each host; empty: all are on this one
    rate: float | None = None  # bytes per second of the slowest link between hosts


def measure(
    contenders: list[Contender],
    cases: list[Case],
    size: int,
    effort: Effort,
    tell: Callable[[str], None] = lambda activity: None,
    on_result: Callable[[Measurement, Result], None] = lambda measurement, result: None,
    *,
    hosts: tuple[int, ...] = (),
    rate: float | None = None,
) -> Measurement:
    """Start all contenders, let them take turns at every case, and close them in any event.

    ``on_result`` is called with each result when it is complete. ``hosts`` are the numbers of ranks on the hosts, and
    ``rate`` the bytes per second of the slowest link between them, for the report.
    """
    measurement = Measurement(size, contenders, effort, hosts=hosts, rate=rate)
    measurement.results = [Result(case) for case in cases]
    try:
        for contender in contenders:
            contender.start()
        for contender in contenders:
            tell(f"starting {contender.name}")
            with _dropping(measurement, contender):
                contender.wait_until_ready()
        for number, result in _turns(measurement):
            _run_trials(measurement, result, number, tell)
            if number == effort.repeats:
                kept = {name: times for name, times in result.times.items() if times.calls or times.unsupported}
                result.times = kept
                on_result(measurement, result)
    finally:
        _close_all(contenders)
    return measurement


def _turns(measurement: Measurement) -> Iterator[tuple[int, Result]]:
    """Yield the number of each repeat and its case, in the order in which they are measured."""
    repeats = range(measurement.effort.repeats + 1)
    if len(measurement.contenders) == 1:
        yield from ((number, result) for result in measurement.results for number in repeats)
    else:
        yield from ((number, result) for number in repeats for result in measurement.results)


def _run_trials(measurement: Measurement, result: Result, number: int, tell: Callable[[str], None]) -> None:
    """Run one trial of every contender at a case; trial 0 only finds out how long a call takes."""
    effort, case = measurement.effort, result.case
    turn = number % max(1, len(measurement.contenders))
    for contender in measurement.contenders[turn:] + measurement.contenders[:turn]:
        times = result.times.setdefault(contender.name, Times(effort))
        if contender.name in measurement.dropped or times.unsupported:
            continue
        tell(f"{case.collective} {case.bytes} B {contender.name}")
        options = _options_of_trial(effort, times.expected_s, last=number == effort.repeats) if number else FIRST
        with _dropping(measurement, contender):
            try:
                trial = contender.measure(case, options)
            except CaseUnsupported as error:
                times.unsupported = str(error)
                continue
            times.expected_s = _longest(trial.seconds, 0.5)
            if number:
                times.add(trial)
            else:
                times.wrong += trial.wrong


def _options_of_trial(effort: Effort, call_s: float, last: bool) -> TrialOptions:
    """Return the options of a trial that fits into its share of the time."""
    fit = int(effort.budget_s / effort.repeats / max(call_s, 1e-9))
    iterations = min(MOST, max(FEWEST, fit))
    return TrialOptions(iterations, warmup=min(100, 1 + iterations // 10), check=last)


@contextlib.contextmanager
def _dropping(measurement: Measurement, contender: Contender) -> Iterator[None]:
    """Drop the contender from the measurement if it fails in the body."""
    try:
        yield
    except ContenderFailed as error:
        measurement.dropped[contender.name] = str(error)
        contender.close()


def _close_all(contenders: list[Contender]) -> None:
    """Close every contender, even if closing another one is interrupted."""
    if contenders:
        try:
            contenders[0].close()
        finally:
            _close_all(contenders[1:])
