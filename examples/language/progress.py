"""A progress bar on a terminal; elsewhere, ten lines of progress."""

from __future__ import annotations

import os
import signal
import sys
from typing import IO, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LINES = 10  # without a terminal


class Steps:
    """Shows the progress of a training, on rank 0 only."""

    def __init__(self, steps: int, is_shown: bool) -> None:
        self.steps, self.is_shown = steps, is_shown
        self.bar: Progress | None = None
        self.terminal = _terminal() if is_shown else None

    def __enter__(self) -> Steps:
        if self.terminal is not None:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self.bar = Progress(*columns, console=Console(file=self.terminal, force_terminal=True), transient=True)
            self.bar.add_task("loss ......", total=self.steps)
            self.bar.start()
        return self

    def show(self, step: int, loss: float) -> None:
        """Show the loss of a step."""
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=step, description=f"loss {loss:.4f}")
        elif self.is_shown and step % -(-self.steps // LINES) == 0:
            print(f"step {step:4} of {self.steps}: loss {loss:.4f}", flush=True)

    def __exit__(self, *_: Any) -> None:
        if self.bar is not None:
            self.bar.stop()


def _terminal() -> IO[str] | None:
    """Return the terminal on which a bar can be drawn, if there is one.

    ``unisono run`` forwards whole lines, and a bar is not a line; so the bar goes to the terminal of ``unisono run``
    directly.
    """
    if sys.stderr.isatty():
        return sys.stderr
    if "UNISONO_RANK" not in os.environ:
        return None
    try:
        descriptor = os.open(f"/proc/{os.getppid()}/fd/2", os.O_WRONLY | os.O_APPEND | os.O_NOCTTY)
    except OSError:
        return None
    if not os.isatty(descriptor):
        os.close(descriptor)
        return None
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # after `stty tostop`, a background process may not write
    return open(descriptor, "w", encoding="utf-8")
