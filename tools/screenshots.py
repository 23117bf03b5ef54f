"""Photograph the page for the README: the five-rank ring, in both languages, in a real browser.

python tools/screenshots.py; then look at docs/images/page-*.png
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import browser
from unisono import draw

IMAGES = Path(__file__).parent.parent / "docs" / "images"
WINDOW = (1280, 866)  # down to the bar below the stage
MOMENT = "#step=2.55"  # the third step, its messages half-way


def main() -> int:
    """Write a picture for each language."""
    if not browser.is_there():
        print(browser.MISSING)
        return 1
    with tempfile.TemporaryDirectory() as folder, browser.running(Path(folder) / "profile") as started:
        for language in ("en", "zh"):
            page = draw("ring", size=5, language=language).save(Path(folder) / "page.html")
            started.set_up(*WINDOW)
            started.open(page, MOMENT)
            started.picture(IMAGES / f"page-{language}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
