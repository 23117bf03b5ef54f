"""Helpers for tests of the page of a recorded run."""

from __future__ import annotations

from pathlib import Path

from browser import Browser


def show(browser: Browser, page: Path, link: str = "") -> None:
    """Open the page and wait until its first call is shown."""
    browser.open(page, link)
    browser.wait_for("document.documentElement.dataset.shown !== undefined")


def wait_for_call(browser: Browser, number: int) -> None:
    """Wait until another call is shown."""
    browser.wait_for(f"document.documentElement.dataset.shown === '{number}'")
