"""Fixtures and hooks that all tests share."""

from __future__ import annotations

import gc
import itertools
import signal

import pytest

# A shell that starts the tests in the background makes them ignore Ctrl-C, which some tests send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def _caches(tmp_path_factory):
    """Return names of directories, which do not exist yet; most of the thousands of tests do not need theirs."""
    folder = tmp_path_factory.mktemp("caches")
    return (str(folder / str(number)) for number in itertools.count())


@pytest.fixture(autouse=True)
def _private_cache(_caches, monkeypatch):
    """Keep the tests and the user's cache separate."""
    monkeypatch.setenv("XDG_CACHE_HOME", next(_caches))


def pytest_collection_finish():
    """Exempt the modules and tests from garbage collection, which would copy them in every forked process."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter):
    """Print the tests that were skipped because a program is missing, and how to install it."""
    reasons = {str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", []) if report.longrepr}
    for reason in sorted(reason for reason in reasons if "SKIPPED, NOT" in reason):
        terminalreporter.write_line(reason.removeprefix("Skipped: "), yellow=True, bold=True)
