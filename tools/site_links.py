"""Check every link of a built site, without a network.

    python tools/site_links.py build/html

A link into the site must lead to a file, and to a place that its page has. Nothing may be loaded from another
host. Links to other hosts must be well formed; they are not followed. Pages of the gallery make their links in the
browser, from data: every page that the data names must exist.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

# Elements that load what they name, by the attribute.
LOADS = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "embed": "src",
    "link": "href",
}
LINKS_ONLY = {"canonical", "alternate", "next", "prev", "edit"}  # kinds of <link> that load nothing
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
PAGE_NAME = re.compile(r"[\w.-]+\.html")
MACHINE_PATH = re.compile(r"(?<![\w./~…])/(?:root|home|work|tmp)/[a-z]")


@dataclass
class Report:
    """What was checked, and the links that lead nowhere."""

    pages: int = 0
    inside: int = 0
    outside: int = 0
    broken: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """Return the counts in words."""
        links = f"{self.inside} links into the site and {self.outside} to other hosts"
        return f"{self.pages} pages, {links}, {len(self.broken)} broken"


class Page(HTMLParser):
    """The places, the links and the loaded files of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)
        if found := DATA.search(text):
            self.links += named_pages(json.loads(found[1]))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take what an element names."""
        given = {name: value or "" for name, value in attrs}
        self.places.update(given[name] for name in ("id", "name") if given.get(name))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") in LINKS_ONLY:
            self.links.append(given.get("href", ""))
        elif given.get(LOADS.get(tag, "")):
            self.loaded.append(given[LOADS[tag]])


def named_pages(data: Any) -> Iterator[str]:
    """Yield the pages that the data of a page of the gallery names."""
    if isinstance(data, dict):
        for name, value in data.items():
            if isinstance(value, str) and name in ("file", "home", "href") and PAGE_NAME.fullmatch(value):
                yield value
            else:
                yield from named_pages(value)
    elif isinstance(data, list):
        for value in data:
            yield from named_pages(value)


def check(site: Path) -> Report:
    """Check all pages below a folder."""
    report = Report()
    pages = {}
    for path in sorted(site.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        pages[path] = Page(text)
        if path.name != "404.html" and (found := MACHINE_PATH.search(text)):
            report.broken.append(f"{path.relative_to(site)}: the path of a machine: {text[found.start() :][:40]!r}")
    report.pages = len(pages)
    for path, page in pages.items():
        name = path.relative_to(site)
        if name.name == "404.html":
            continue  # a server shows it at any address, so its links begin with a slash
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme in ("data", "mailto", "javascript"):
                continue
            if parts.scheme or parts.netloc:
                report.outside += 1
                problem = outside(link, link in page.loaded)
            else:
                report.inside += 1
                problem = inside(path, parts.path, unquote(parts.fragment), pages)
            if problem:
                report.broken.append(f"{name}: {link}: {problem}")
    report.broken = list(dict.fromkeys(report.broken))
    return report


def outside(link: str, is_loaded: bool) -> str:
    """Return what is wrong with a link to another host, or nothing."""
    if is_loaded:
        return "loaded from another host"
    parts = urlsplit(link)
    good = parts.scheme in ("http", "https") and re.fullmatch(r"[\w-]+(\.[\w-]+)+(:\d+)?", parts.netloc)
    return "" if good and not re.search(r"[\s<>\"`]", link) else "not a well-formed address"


def inside(page: Path, to: str, place: str, pages: dict[Path, Page]) -> str:
    """Return what is wrong with a link into the site, or nothing."""
    if to.startswith("/"):
        return "begins with a slash, so it depends on where the site is"
    target = Path(*page.parent.joinpath(unquote(to)).parts) if to else page
    target = target.resolve()
    if target.is_dir():
        return "leads to a folder, which shows no page when it is opened as a file"
    if not target.exists():
        return "no such file"
    is_view = "=" in place or not place  # such as ring.html#step=3
    if is_view or target not in pages or "gallery" in target.parts:
        return ""
    return "" if place in pages[target].places else "no such place"


def main() -> int:
    """Check a folder; return 1 if a link leads nowhere."""
    report = check(Path(sys.argv[1]).resolve())
    print("\n".join([*report.broken, report.summary()]))
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
