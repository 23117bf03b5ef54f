"""Output of ranks is assembled into whole lines, and tracebacks of a KeyboardInterrupt are hidden after Ctrl-C."""

from __future__ import annotations

import pytest

from unisono.launch.line_prefix import InterruptFilter, LineAssembler, with_prefix


def test_pieces_are_assembled_into_lines():
    lines = LineAssembler()
    assert lines.take(b"one") == b""
    assert lines.take(b" line\ntwo\nthr") == b"one line\ntwo\n"
    assert lines.take(b"ee\n") == b"three\n"
    assert lines.take(b"no end") == b""
    assert lines.rest() == b"no end\n"
    assert lines.rest() == b""


def test_every_line_gets_the_prefix():
    assert with_prefix(b"[2] ", b"one\n\nthree\n") == b"[2] one\n[2] \n[2] three\n"
    assert with_prefix(b"", b"one\n") == b"one\n"
    assert with_prefix(b"[2] ", b"") == b""


TRACE = b'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    work()\n'


@pytest.mark.parametrize(
    "hidden",
    [
        TRACE + b"KeyboardInterrupt\n",
        TRACE + b"KeyboardInterrupt: \n",
        TRACE + b"ValueError: x\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + TRACE + b"KeyboardInterrupt\n",
        b"Fatal Python error: init_import_site: Failed to import the site module\nPython runtime state: initialized\n"
        + TRACE + b"KeyboardInterrupt\n",
        TRACE + b"ImportError: \n\nImporting the numpy C-extensions failed.\n",
    ],
)  # fmt: skip
def test_the_traceback_of_an_interrupt_is_hidden(hidden):
    for split in range(0, len(hidden), 7):
        lines, shown = LineAssembler(), InterruptFilter()
        pieces = [lines.take(piece) for piece in (b"working\n" + hidden[:split], hidden[split:])]
        assert b"".join(map(shown.take, pieces)) == b"working\n"
        assert shown.rest() == b""


@pytest.mark.parametrize(
    "error",
    [
        TRACE + b"OSError: no space left\n",
        TRACE + b"KeyboardInterrupt\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + TRACE + b"OSError: the checkpoint was not written\n",
        TRACE + b"unisono.errors.GoalError: wrong\n  expected: KeyboardInterrupt\n",
    ],
)  # fmt: skip
def test_any_other_error_is_shown_when_the_rank_has_ended(error):
    shown = InterruptFilter()
    assert shown.take(b"saving\n") == b"saving\n"
    assert shown.take(error) == b""
    assert shown.rest() == error
