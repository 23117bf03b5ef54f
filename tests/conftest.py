"""Fixtures and hooks that all tests share."""

from __future__ import annotations

import signal

import pytest

# A shell that starts the tests in the background makes them ignore Ctrl-C, which some tests send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _private_cache(tmp_path, monkeypatch):
    """Keep the tests and the user's cache separate."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def pytest_terminal_summary(terminalreporter):
    """Print the tests that were skipped because a program is missing, and how to install it."""
    reasons = {str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", []) if report.longrepr}
    for reason in sorted(reason for reason in reasons if "SKIPPED, NOT" in reason):
        terminalreporter.write_line(reason.removeprefix("Skipped: "), yellow=True, bold=True)
