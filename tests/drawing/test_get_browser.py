"""`make test` installs a browser if it may, and otherwise prints how to install one."""

from __future__ import annotations

import subprocess

import pytest

import get_browser


@pytest.fixture
def machine(monkeypatch):
    """Simulate a machine that has only apt-get; return the commands that are run on it."""
    commands = []

    def run(command, **_):
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(get_browser.shutil, "which", lambda name: name if name == "apt-get" else None)
    monkeypatch.setattr(get_browser.os, "geteuid", lambda: 0)
    monkeypatch.setattr(get_browser.subprocess, "run", run)
    return commands


EVERYTHING = ["chromium", "chromium-driver", "nodejs", "npm"]


def test_root_installs_what_is_missing(machine, capsys):
    get_browser.main()
    assert machine == [["apt-get", "update"], ["apt-get", "install", "--yes", "--no-install-recommends", *EVERYTHING]]
    assert capsys.readouterr().err == ""


def test_installed_packages_are_not_installed_again(machine, monkeypatch, capsys):
    monkeypatch.setattr(get_browser.shutil, "which", lambda name: name)
    get_browser.main()
    assert machine == []
    assert capsys.readouterr().out == ""


def test_other_users_are_told_how_to_install(machine, monkeypatch, capsys):
    monkeypatch.setattr(get_browser.os, "geteuid", lambda: 1000)
    get_browser.main()
    assert machine == []
    said = capsys.readouterr().err
    assert said == f"SKIPPED: the page is not tested in a browser; as root: apt-get install {' '.join(EVERYTHING)}\n"


def test_a_failing_installation_does_not_end_the_tests(machine, monkeypatch, capsys):
    def fail(command, **_):
        return subprocess.CompletedProcess(command, 100, "", "no such package")

    monkeypatch.setattr(get_browser.subprocess, "run", fail)
    get_browser.main()
    assert "apt-get update: no such package" in capsys.readouterr().err
