"""The report of errors that have ended several ranks: equal errors are shown once, with the ranks they occurred on.

Frames of Unisono are left out of tracebacks: the user's frames show the call, and the message states the problem. An
InternalError keeps all frames, since it is to be reported.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from unisono.bootstrap import messages
from unisono.errors import Aborted, InternalError, PeerLost
from unisono.message import Message, listed

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

# A *consequence* is an error that another rank caused: it was lost, or it aborted the communicator.
Kind = Literal["error", "consequence", "interrupt"]


class Report(NamedTuple):
    """An uncaught exception of a rank."""

    rank: int
    kind: Kind
    text: str  # the traceback and the message
    summary: str  # the message alone


def report_of(rank: int, error: BaseException) -> Report:
    """Return the report of an uncaught exception."""
    if isinstance(error, KeyboardInterrupt):
        return Report(rank, "interrupt", "", "")
    kind: Kind = "consequence" if isinstance(error, PeerLost | Aborted) else "error"
    return Report(rank, kind, user_traceback(error), _summary(error))


def user_traceback(error: BaseException, *, message: bool = True) -> str:
    """Return the traceback of an exception without the frames of Unisono; ``message`` says whether to end with it."""
    described = traceback.TracebackException.from_exception(error)
    if not isinstance(error, InternalError):
        _hide_frames(described)
    text = "".join(described.format())
    return text if message else text.removesuffix("".join(described.format_exception_only()))


def _hide_frames(described: traceback.TracebackException | None) -> None:
    if described is None:
        return
    frames = [frame for frame in described.stack if not frame.filename.startswith(PACKAGE)]
    if frames:
        described.stack = traceback.StackSummary.from_list(frames)
    _hide_frames(described.__cause__)
    _hide_frames(described.__context__)


def _summary(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def fold(reports: Iterable[Report], size: int) -> str:
    """Return the reports of all ranks as one text, which ends with a newline.

    The first error is shown with its traceback, further ones only with their messages. Consequences of an error come
    after it; those of an interrupt are left out.
    """
    by_kind: dict[Kind, list[Report]] = {"error": [], "consequence": [], "interrupt": []}
    for report in sorted(reports, key=lambda report: report.rank):
        by_kind[report.kind].append(report)
    groups = _equal(by_kind["error"])
    if by_kind["interrupt"] and not groups:
        ranks = name_ranks([report.rank for report in by_kind["interrupt"]], size)
        return f"{messages.INTERRUPTED_RANKS(ranks=ranks)}\n"
    groups += _equal(by_kind["consequence"])
    shown = []
    for number, group in enumerate(groups):
        ranks = name_ranks([report.rank for report in group], size)
        first = group[0]
        shown.append(
            f"{messages.ERROR_ON(ranks=ranks)}\n{first.text}" if number == 0 else f"{ranks}: {first.summary}\n"
        )
    return "".join(shown)


def _equal(reports: Sequence[Report]) -> list[list[Report]]:
    """Return the reports in groups of equal text, in the order of their lowest ranks."""
    groups: dict[str, list[Report]] = {}
    for report in reports:
        groups.setdefault(report.text, []).append(report)
    return list(groups.values())


def spans(ranks: Sequence[int]) -> str:
    """Return e.g. "0-2, 5" for sorted ranks."""
    pairs: list[list[int]] = []
    for rank in ranks:
        if pairs and pairs[-1][1] == rank - 1:
            pairs[-1][1] = rank
        else:
            pairs.append([rank, rank])
    return listed(str(first) if first == last else f"{first}-{last}" for first, last in pairs)


def name_ranks(ranks: Sequence[int], size: int) -> Message:
    """Return e.g. "ranks 0-2, 5 of 8" or "all 8 ranks" for sorted ranks."""
    if len(ranks) == size > 1:
        return messages.ALL_RANKS(size=size)
    return (messages.RANK if len(ranks) == 1 else messages.RANKS)(ranks=spans(ranks), size=size)
