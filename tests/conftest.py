"""What all tests share."""

from __future__ import annotations

import signal

import pytest

# Whoever starts the tests in the background of a shell passes on that Ctrl-C is ignored; some tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _private_cache(tmp_path, monkeypatch):
    """Keep proofs of tests out of the user's cache, and the user's out of the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def pytest_terminal_summary(terminalreporter):
    """Say loudly what was not tested for want of a program, and how to get it."""
    reasons = {str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", []) if report.longrepr}
    for reason in sorted(reason for reason in reasons if "SKIPPED, NOT" in reason):
        terminalreporter.write_line(reason.removeprefix("Skipped: "), yellow=True, bold=True)
