"""Pictures of a page: a step as SVG, the animation as GIF.

The page paints them itself (page/common/export.mjs); here an installed browser opens it without a window and prints
the document, which then holds nothing but the picture. docs/adr/0068-pictures.md gives the reasons.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from unisono.drawing import messages
from unisono.errors import UsageError

KINDS = ("svg", "gif")
THEMES = ("light", "dark")
LIMIT_S = 180  # for a long animation on a busy machine
# Chromium and the browsers that are built on it; other browsers cannot print a document from the command line.
BROWSERS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "msedge",
    "brave-browser",
)  # fmt: skip
APPLICATIONS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
)
SWITCHES = (
    "--headless=new", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--force-device-scale-factor=1",
    # The clock of the page runs ahead while nothing happens; after this many milliseconds the document is printed.
    "--virtual-time-budget=600000", "--dump-dom",
)  # fmt: skip
FOUND = re.compile(r'<pre id="picture">([^<]*)</pre>')


def find_browser() -> str | None:
    """Return the path of a browser that can make pictures; None if there is none."""
    found = (shutil.which(name) for name in BROWSERS)
    applications = (path for path in APPLICATIONS if Path(path).is_file())
    return next((path for path in (*found, *applications) if path), None)


def page_picture(page: str, kind: str, theme: str = "light") -> bytes:
    """Return a picture of a page as the bytes of a file of this kind.

    UsageError is raised if the page has no stage or no browser is found.
    """
    if theme not in THEMES:
        raise UsageError(messages.WRONG_THEME(theme=theme))
    browser = find_browser()
    if browser is None:
        raise UsageError(messages.NO_BROWSER(kind=kind.upper()))
    with tempfile.TemporaryDirectory(prefix="unisono-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "page.html"
        path.write_text(_marked(page, kind, theme), encoding="utf-8")
        # Chromium refuses its sandbox to root; it opens nothing but our page.
        root = ("--no-sandbox",) if sys.platform == "linux" and os.geteuid() == 0 else ()
        printed = _printed((browser, *SWITCHES, *root, f"--user-data-dir={folder}/profile", path.as_uri()), kind)
    found = FOUND.search(printed)
    if found is None or not found[1]:
        raise UsageError(messages.NO_PICTURE(kind=kind.upper()))
    return base64.b64decode(found[1])


def _marked(page: str, kind: str, theme: str) -> str:
    return page.replace("<html ", f'<html data-export="{kind}" data-wish="{theme}" ', 1)


def _printed(command: Sequence[str], kind: str) -> str:
    """Return what the browser prints; nothing of it is left, even if it hangs."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return process.communicate(timeout=LIMIT_S)[0].decode(errors="replace")
    except subprocess.TimeoutExpired as expired:
        raise UsageError(
            messages.BROWSER_TOO_SLOW(browser=command[0], limit_s=LIMIT_S, kind=kind.upper())
        ) from expired
    finally:
        with suppress(ProcessLookupError):
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()
