"""Build the site: the documents, the references and the gallery, as files that need no server and no network.

    python tools/build_site.py            # into build/html

It fails on a broken link (see site_links.py).
"""

from __future__ import annotations

import argparse
import logging
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import site_links
from site_navigation import navigation
from site_sources import ROOT, Sources

WEBSITE = Path(__file__).parent / "website"
BUILD = ROOT / "build"


def build(folder: Path) -> None:
    """Build the site into ``folder``, which is replaced."""
    sources = folder.with_name(folder.name + "-sources")
    for each in (sources, folder):
        shutil.rmtree(each, ignore_errors=True)
    gallery = draw_gallery(sources / "gallery")
    Sources(sources).write()
    shutil.copytree(WEBSITE / "assets", sources / "assets")
    if gallery.wait():
        raise SystemExit("unisono draw --all failed")
    mkdocs(sources, folder)


def draw_gallery(folder: Path) -> subprocess.Popen[bytes]:
    """Start to draw every page of the gallery; another process, so that it takes place at the same time."""
    words = ["draw", "--all", "-o", str(folder), "--no-open"]
    return subprocess.Popen([sys.executable, "-m", "unisono", *words], stdout=subprocess.DEVNULL)


def mkdocs(sources: Path, folder: Path) -> None:
    """Make HTML of the pages in ``sources``; a warning is an error."""
    from mkdocs.commands.build import build as run
    from mkdocs.config import load_config

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")

    config = load_config(str(WEBSITE / "mkdocs.yml"), docs_dir=str(sources), site_dir=str(folder), strict=True)
    config.nav = navigation()
    config.mdx_configs["toc"] = {"slugify": slug, "permalink": True, "toc_depth": 3}
    run(config)


def slug(heading: str, _separator: str = "-") -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def main() -> int:
    """Build and check the site; return 1 if a link leads nowhere."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", dest="folder", type=Path, default=BUILD / "html", help="default: build/html")
    folder = parser.parse_args().folder.resolve()
    start = time.monotonic()
    build(folder)
    found = site_links.check(folder)
    for line in found.broken:
        print(line, file=sys.stderr)
    print(f"{folder / 'index.html'}: {found.summary()}, {time.monotonic() - start:.0f} s")
    return 1 if found.broken else 0


def settings() -> dict[str, Any]:
    """Return the settings of MkDocs, for tests."""
    import yaml

    return dict(yaml.safe_load((WEBSITE / "mkdocs.yml").read_text(encoding="utf-8")))


if __name__ == "__main__":
    sys.exit(main())
