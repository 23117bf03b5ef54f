"""Take the screenshots in docs/images/page-*.png: a ring of five in both languages, a run, and simulated time."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import browser
from unisono import draw

IMAGES = Path(__file__).parent.parent / "docs" / "images"
WINDOW = (1280, 866)  # down to the bar below the stage
RUN_WINDOW = (1280, 1010)  # down to the stage
MOMENT = "#step=2.55"  # the third step, its messages half-way
SIMULATED_MOMENT = "#step=37"  # messages on near and far links


def record(folder: Path) -> Path:
    """Record the example of docs/tracing.md, in which rank 2 is slow; return the folder of the trace."""
    text = (IMAGES.parent / "tracing.md").read_text(encoding="utf-8")
    (folder / "train.py").write_text(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0])
    command = [sys.executable, "-m", "unisono", "run", "-n", "4", "--trace", "run", "train.py"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "run"


def main() -> int:
    """Write the screenshots."""
    if not browser.is_there():
        print(browser.MISSING)
        return 1
    with tempfile.TemporaryDirectory() as folder, browser.running(Path(folder) / "profile") as started:
        for language in ("en", "zh"):
            page = draw("ring", size=5, language=language).save(Path(folder) / "page.html")
            started.set_up(*WINDOW)
            started.open(page, MOMENT)
            started.picture(IMAGES / f"page-{language}.png")
        started.set_up(*RUN_WINDOW)
        started.open(draw(record(Path(folder)), language="en").save(Path(folder) / "run.html"), "#call=4&at=62")
        started.picture(IMAGES / "page-run.png")
        simulated = draw("ring", size=16, network="dgx-h100", language="en").save(Path(folder) / "simulated.html")
        started.set_up(*WINDOW)
        started.open(simulated, SIMULATED_MOMENT)
        started.picture(IMAGES / "page-simulated.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
