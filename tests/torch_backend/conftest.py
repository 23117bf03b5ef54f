"""Tests of the PyTorch backend; without torch there is nothing to test."""

from __future__ import annotations

import tempfile

import pytest

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
