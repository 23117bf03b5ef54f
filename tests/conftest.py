"""Fixtures and hooks that all tests share."""

from __future__ import annotations

import gc
import itertools
import resource
import signal
import subprocess
import sys

import pytest

import browser as driving
from console_blocks import ROOT
from page_checks import checking
from shared_folders import made_once

SITE_CPU_S = 120  # so that CI builds the site within two minutes, on one core
SITE_LIMIT_S = 900  # on a busy machine

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


@pytest.fixture(scope="session")
def one_browser(tmp_path_factory):
    """Return a browser that all tests in this process share."""
    if not driving.is_there():
        pytest.skip(driving.MISSING)
    with driving.running(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def browser(one_browser):
    """Return the shared browser with the usual window and preferences."""
    one_browser.set_up()
    return one_browser


@pytest.fixture
def checker(browser):
    """Return a checker of pages in the shared browser."""
    with checking(browser) as made:
        yield made


@pytest.fixture(scope="session")
def built_site(tmp_path_factory):
    """Build the site once, like `make site`, and return its folder."""

    def build(folder):
        command = [sys.executable, str(ROOT / "tools" / "build_site.py"), "-o", str(folder / "html")]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, capture_output=True, text=True, timeout=SITE_LIMIT_S)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done.stdout + done.stderr  # a broken link is an error
        assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < SITE_CPU_S

    return made_once(tmp_path_factory, "built_site", build) / "html"


def pytest_collection_finish():
    """Exempt the modules and tests from garbage collection, which would copy them in every forked process."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter):
    """Print the tests that were skipped because a program is missing, and how to install it."""
    reasons = {str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", []) if report.longrepr}
    for reason in sorted(reason for reason in reasons if "SKIPPED, NOT" in reason):
        terminalreporter.write_line(reason.removeprefix("Skipped: "), yellow=True, bold=True)
