"""Tests of the PyTorch backend; without torch there is nothing to test."""

from __future__ import annotations

import tempfile

import pytest
from fault_ranks import the_nursery

from leaks import Leaks

pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(tmp_path_factory, monkeypatch):
    """Every test here: no process, descriptor, shared memory or temporary file is left."""
    own = str(tmp_path_factory.mktemp("temporary"))
    monkeypatch.setenv("TMPDIR", own)
    monkeypatch.setattr(tempfile, "tempdir", own)
    leaks = Leaks()
    yield
    leaks.check()


@pytest.fixture(scope="session")
def nursery():
    """The process that ranks of tests of faults come from: there before such a test begins, and after it."""
    yield the_nursery()
    the_nursery().close()
