"""Measure how smoothly the page plays: frames per second in a real browser."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import browser
from unisono import draw

CASES = (("ring", 5), ("ring", 16), ("rabenseifner", 16), ("ring", 64), ("rabenseifner", 64), ("direct", 64))


def main() -> int:
    """Print a line for each case."""
    if not browser.is_there():
        print(browser.MISSING)
        return 1
    with tempfile.TemporaryDirectory() as folder, browser.running(Path(folder) / "profile") as started:
        for name, size in CASES:
            path = draw(name, size=size).save(Path(folder) / "page.html")
            started.set_up(motion=True)
            started.open(path)
            print(f"{name:14} {size:3} ranks: {started.frames_per_second():5.1f} frames per second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
