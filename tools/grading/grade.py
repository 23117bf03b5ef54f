"""The grade of one kind of prediction on one machine, and its text."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

CLOSE = 1.05  # a pick that takes up to this multiple of the best time counts as the best
MOST_REGRET = 1.1  # beyond it, a pick is listed by name


@dataclass(frozen=True)
class Pick:
    """The choice that a prediction leads to, at one point (a machine, a collective and a size, for example)."""

    where: str
    picked: str
    best: str
    regret: float  # measured time of the pick / measured time of the best


@dataclass(frozen=True)
class Grade:
    """The comparison of predictions with measurements that were not used for calibration.

    ``errors`` are |predicted / measured - 1|. ``targets`` maps "median", "best" and "regret" to what was asked for.
    ``parameters``, ``fitted_to`` and ``remarks`` are paragraphs of the page, in Markdown.
    """

    title: str
    errors: Sequence[float]
    picks: Sequence[Pick] = ()
    parameters: str = ""
    fitted_to: str = ""
    remarks: str = ""
    targets: dict[str, float] = field(default_factory=dict)
    close: float = CLOSE  # a pick with at most this regret counts as the best
    only_in_summary: bool = False  # no section: the sum of other grades, for example

    @property
    def median(self) -> float:
        """The median error."""
        return statistics.median(self.errors)

    @property
    def p90(self) -> float:
        """The error that one row in ten exceeds."""
        return sorted(self.errors)[min(len(self.errors) - 1, int(0.9 * len(self.errors)))]

    @property
    def best(self) -> float | None:
        """The share of points at which the pick is the best, or close to it."""
        return sum(pick.regret <= self.close for pick in self.picks) / len(self.picks) if self.picks else None

    @property
    def regret(self) -> float | None:
        """The largest regret."""
        return max(pick.regret for pick in self.picks) if self.picks else None

    def row(self) -> str:
        """Return the line of the summary, with the targets in brackets."""
        cells = [
            self.title,
            str(len(self.errors)),
            f"{self.median:.1%}{self._target('median', '{:.0%}')}",
            f"{self.p90:.0%}",
            "" if self.best is None else f"{self.best:.1%} of {len(self.picks)}{self._target('best', '{:.0%}')}",
            "" if self.regret is None else f"{self.regret:.2f}{self._target('regret', '{:.1f}')}",
        ]
        return "| " + " | ".join(cells) + " |"

    def _target(self, name: str, form: str) -> str:
        return f" ({form.format(self.targets[name])})" if name in self.targets else ""

    def section(self) -> str:
        """Return the section of the page."""
        parts = [f"### {self.title}", self.parameters, self.fitted_to, "\n".join([*HEADER, self.row()])]
        wrong = sorted((pick for pick in self.picks if pick.regret > self.close), key=lambda pick: -pick.regret)
        if wrong:
            lines = ["| point | predicted best | measured best | regret |", "|---|---|---|---:|"]
            lines += [f"| {pick.where} | {pick.picked} | {pick.best} | {pick.regret:.2f} |" for pick in wrong]
            parts += [
                f"Points at which the pick takes more than {self.close:.2f} times the best time:",
                "\n".join(lines),
            ]
        return "\n\n".join(part for part in [*parts, self.remarks] if part)


HEADER = (
    "| machine | rows graded | median error | 90th percentile | best algorithm predicted | largest regret |",
    "|---|---:|---:|---:|---:|---:|",
)


def summary(grades: Sequence[Grade]) -> str:
    """Return the table of all grades."""
    return "\n".join([*HEADER, *(grade.row() for grade in grades)])
