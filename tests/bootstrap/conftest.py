"""The check that nothing is left behind, and certificates, for the tests of this folder."""

from __future__ import annotations

import pytest

from certificates import Authority
from leaks import nothing_is_left_behind  # noqa: F401 (for every test here)


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"), "ours")


@pytest.fixture(scope="session")
def tls(authority):
    return authority.issue("host")


@pytest.fixture(scope="session")
def other_tls(tmp_path_factory):
    """Return a certificate of another authority."""
    return Authority(tmp_path_factory.mktemp("other"), "other").issue("host")
