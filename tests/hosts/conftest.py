"""Test hosts for the tests of this folder, and the check that nothing is left behind on any of them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from host_jobs import skip_reason
from leaks import nothing_is_left_behind  # noqa: F401 (for every test here)
from test_hosts import TestHosts, what_is_missing

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """Mark the tests of this folder, and skip them where this machine cannot have test hosts."""
    own = [item for item in items if HERE in item.path.parents]
    missing = what_is_missing() if own else None
    for item in own:
        item.add_marker(pytest.mark.hosts)
        item.add_marker(pytest.mark.slow)
        if missing is not None:
            item.add_marker(skip_reason(missing))


@pytest.fixture(scope="module")
def all_hosts():
    """Return four hosts, which the tests of a file share."""
    with TestHosts(4) as made:
        yield made


@pytest.fixture
def hosts(all_hosts):
    """Return hosts ``a`` to ``d``. What a test does to their network ends with it; nothing may be left on them."""
    before = {host.name: left_on(host) for host in all_hosts.hosts}
    yield all_hosts
    for host in all_hosts.hosts:
        host.heal()
        host.carrier(up=True)
    deadline_s = time.monotonic() + 10.0
    while (left := {host.name: left_on(host) for host in all_hosts.hosts}) != before:
        assert time.monotonic() < deadline_s, f"left behind: {left}, before: {before}"
        time.sleep(0.1)


def left_on(host):
    """Return the processes, the shared memory and the listening sockets of a host."""
    files = host.run("sh", "-c", "ls -A /dev/shm; cat /proc/net/tcp /proc/net/tcp6 | grep -c ' 0A '").stdout
    return host.processes(), files.split()
