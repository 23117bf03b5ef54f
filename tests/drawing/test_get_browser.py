"""`make test` gets a browser where it may, and else says how to."""

from __future__ import annotations

import subprocess

import pytest

import get_browser


@pytest.fixture
def machine(monkeypatch):
    """A machine that has nothing but apt-get; return the commands that are run on it."""
    commands = []

    def run(command, **_):
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(get_browser.shutil, "which", lambda name: name if name == "apt-get" else None)
    monkeypatch.setattr(get_browser.os, "geteuid", lambda: 0)
    monkeypatch.setattr(get_browser.subprocess, "run", run)
    return commands


EVERYTHING = ["chromium", "chromium-driver", "nodejs", "npm"]


def test_root_gets_what_is_missing(machine, capsys):
    get_browser.main()
    assert machine == [["apt-get", "update"], ["apt-get", "install", "--yes", "--no-install-recommends", *EVERYTHING]]
    assert capsys.readouterr().err == ""


def test_what_is_there_is_not_installed_again(machine, monkeypatch, capsys):
    monkeypatch.setattr(get_browser.shutil, "which", lambda name: name)
    get_browser.main()
    assert machine == []
    assert capsys.readouterr().out == ""


def test_who_is_not_root_is_told_how(machine, monkeypatch, capsys):
    monkeypatch.setattr(get_browser.os, "geteuid", lambda: 1000)
    get_browser.main()
    assert machine == []
    said = capsys.readouterr().err
    assert said == f"SKIPPED: the page is not tested in a browser; as root: apt-get install {' '.join(EVERYTHING)}\n"


def test_an_installation_that_fails_does_not_end_the_tests(machine, monkeypatch, capsys):
    def fail(command, **_):
        return subprocess.CompletedProcess(command, 100, "", "no such package")

    monkeypatch.setattr(get_browser.subprocess, "run", fail)
    get_browser.main()
    assert "apt-get update: no such package" in capsys.readouterr().err
