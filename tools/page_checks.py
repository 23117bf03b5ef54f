"""Check an open page in a browser: nothing overlaps or is cut off, contrast, keyboard, what screen readers announce.

    python tools/page_checks.py page.html ...          # or a folder with pages
    python tools/page_checks.py --axe --keyboard page.html

Every page is looked at in both languages, at both widths, light and dark, at its first, middle and last position. The
measurements are in ``tools/in_page``; axe-core adds the rules of WCAG 2.1 A and AA.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import browser as driving

JAVASCRIPT = Path(__file__).parent / "javascript"
AXE = JAVASCRIPT / "node_modules" / "axe-core" / "axe.min.js"
NO_AXE = "SKIPPED, NOT CHECKED WITH AXE: axe-core is missing (npm ci --prefix tools/javascript)"
PARTS = ("recorder", "texts", "boxes", "contrast", "keyboard", "positions")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
# What reacts to the pointer but has no focus, and the control that does the same with keys.
OTHER_WAY = {
    "svg.chart": "#slider-bytes, #slider-ranks",  # chooses a size
    "svg.timeline": "#position",  # goes to a moment
    ".compare-lane canvas": "#position",  # chooses a rank; so do the arrow keys, anywhere on the page
    ".track": "#position",  # goes to a moment
    ".md-search": ".md-search__input, label[for=__search]",  # opens and closes the search
}
HEIGHTS = {1280: 800, 390: 844}  # of the window, by its width


class View(NamedTuple):
    """How a reader sees a page."""

    language: str = "en"
    width: int = 1280
    theme: str = "light"


VIEWS = [View(*parts) for parts in product(("en", "zh"), HEIGHTS, ("light", "dark"))]


@dataclass(frozen=True)
class Finding:
    """A defect: which check found it, where, and what it measured."""

    page: str
    view: View
    check: str
    element: str
    text: str = ""
    measured: str = ""
    position: float | None = None

    def __str__(self) -> str:
        place = "" if self.position is None else f" at position {self.position:g}"
        said = f" “{self.text}”" if self.text else ""
        view = f"{self.view.language} {self.view.width} {self.view.theme}"
        return f"{self.page} ({view}{place}): {self.check}: {self.element}{said}: {self.measured}"


@contextmanager
def checking(browser: driving.Browser) -> Iterator[Checker]:
    """Prepare a browser: until the end, pages that it opens record what they paint."""
    source = "\n".join(
        (Path(__file__).parent / "in_page" / f"{name}.mjs").read_text(encoding="utf-8") for name in PARTS
    )
    command = browser.driver.execute_cdp_cmd
    added = command("Page.addScriptToEvaluateOnNewDocument", {"source": source})
    try:
        yield Checker(browser)
    finally:
        command("Page.removeScriptToEvaluateOnNewDocument", added)


class Checker:
    """The checks of one page after another."""

    def __init__(self, browser: driving.Browser) -> None:
        self.browser = browser
        self.page = ""
        self.view = View()
        self.shown: tuple[int, str] | None = None  # the width and theme of the window

    def open(self, path: Path, view: View = VIEWS[0], link: str = "") -> list[Finding]:
        """Open a page as a reader with these preferences; return what it writes to the console."""
        if not path.is_file():  # the browser would show a page that says so
            raise FileNotFoundError(path)
        self.page = path.name
        self._set_window(view)
        self.browser.complaints()
        if self.browser.driver.current_url.partition("#")[0] == path.as_uri():
            self.browser.driver.get(
                "about:blank"
            )  # from one place of a page to another, the browser would not load it
        self.browser.driver.get(path.as_uri() + link)
        self.browser.wait_for("document.readyState === 'complete'")
        if self.browser.run("Boolean(document.querySelector('#data, [data-md-component]'))"):
            self.browser.wait_for("document.documentElement.dataset.ready === 'true'")
        self.show(view)
        return self.complaints()

    def show(self, view: View) -> None:
        """Show the open page in another language, width or theme."""
        self._set_window(view)
        self.browser.run("pageChecks.speak(arguments[0])", view.language)

    def complaints(self) -> list[Finding]:
        """Return what the page has written to the console."""
        return [self._finding("console", "html", said) for said in self.browser.complaints()]

    def here(self) -> list[Finding]:
        """Return the findings about boxes and contrast as the page is now."""
        return self._ask("[...pageChecks.boxes(false), ...pageChecks.contrast()]") + self.complaints()

    def everywhere(self, views: Iterable[View] = VIEWS) -> list[Finding]:
        """Return the findings about boxes and contrast in some views, at the first, middle and last position."""
        found = []
        for at, view in enumerate(views):
            self.show(view)
            found += self._ask(f"pageChecks.atAllPositions({str(at == 0).lower()})")
        return found + self.complaints()

    def keyboard(self) -> list[Finding]:
        """Return the findings about keyboard and screen readers in the current view."""
        code = "const done = arguments[0]; pageChecks.settled().then(() => done(pageChecks.watchFocus()));"
        presses = self.browser.driver.execute_async_script(code)
        self.browser.press(driving.TAB * presses)
        found = self._ask("pageChecks.focus()")
        found += self._ask(f"pageChecks.mouseOnly({json.dumps(OTHER_WAY)})")
        return found + self._ask("pageChecks.announcements()")

    def links(self, folder: Path) -> list[Finding]:
        """Return the links of the page that do not lead to a page in the folder, or to a place that this page has.

        A link to a view, such as ``ring.html#step=3``, needs no place. Checking places of other pages opens them.
        """
        page = self.page
        code = "[...document.querySelectorAll('a[href]')].map((one) => one.getAttribute('href'))"
        found, places = [], []
        for link in dict.fromkeys(self.browser.run(code)):
            name, _, place = link.partition("#")
            if re.match(r"[a-z]+:", name):
                continue  # outside of the folder
            if name and not (folder / name).is_file():
                found.append(self._finding("a link leads nowhere", f'a[href="{link}"]', "", "no such page"))
            elif place and "=" not in place:
                places.append((name or page, place, link))
        for name, place, link in sorted(places):
            if name != self.page:
                self.open(folder / name, self.view)
            if not self.browser.run("Boolean(document.getElementById(arguments[0]))", place):
                self.page = page
                found.append(self._finding("a link leads nowhere", f'a[href="{link}"]', "", "no such place"))
        return found

    def axe(self) -> list[Finding]:
        """Return what axe-core finds in the current view."""
        if not self.browser.run("Boolean(globalThis.axe)"):
            self.browser.driver.execute_script(AXE.read_text(encoding="utf-8"))
        options = {
            "runOnly": {"type": "tag", "values": RULES},
            "resultTypes": ["violations"],
            "elementRef": False,
            "preload": False,
        }
        code = """
            const [options, done] = arguments;
            axe.run(document, options).then(({ violations }) => done(violations.flatMap(({ id, nodes }) =>
                nodes.map(({ target, html, any, all, none }) => [
                    `axe: ${id}`, target.join(" "), html.slice(0, 80),
                    [...any, ...all, ...none].map(({ message }) => message).join("; "),
                ])))).catch((error) => done([["axe: failed", "html", "", `${error}`]]));
        """
        return [self._finding(*each) for each in self.browser.driver.execute_async_script(code, options)]

    def _set_window(self, view: View) -> None:
        if view[1:] != self.shown:
            self.browser.set_up(view.width, HEIGHTS[view.width], dark=view.theme == "dark")
            self.shown = view[1:]
        self.view = view

    def _ask(self, expression: str) -> list[Finding]:
        code = (
            f"const done = arguments[0]; Promise.resolve({expression})"
            '.then(done, (error) => done([["the check failed", "html", "", `${error.stack}`]]));'
        )
        return [self._finding(*each) for each in self.browser.driver.execute_async_script(code)]

    def _finding(
        self, check: str, element: str, text: Any = "", measured: Any = "", at: float | None = None
    ) -> Finding:
        return Finding(self.page, self.view, check, element, str(text), str(measured), at)


def report(findings: Iterable[Finding]) -> str:
    """Return one line for each defect: its first finding, and how many more are like it."""
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for one in findings:
        place = re.sub(r":nth-[a-z-]+\(\d+\)", "", one.element)
        alike.setdefault((one.page, one.check, place), []).append(one)
    return "\n".join(f"{first}{f' (+{len(more)})' if more else ''}" for first, *more in alike.values())


def main() -> int:
    """Print what is wrong with some pages; return 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--axe", action="store_true")
    parser.add_argument("--keyboard", action="store_true")
    parser.add_argument("--views", type=int, default=len(VIEWS), help="the number of views, of eight")
    chosen = parser.parse_args()
    pages = [page for one in chosen.pages for page in (sorted(one.glob("*.html")) if one.is_dir() else [one])]
    count = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        driving.running(Path(folder)) as started,
        checking(started) as checker,
    ):
        for page in pages:
            found = checker.open(page.absolute())
            found += checker.everywhere(VIEWS[: chosen.views])
            for view in (View(), View("zh", 390, "dark")):
                checker.show(view)
                found += checker.keyboard() if chosen.keyboard else []
                found += checker.axe() if chosen.axe else []
            if found:
                print(report(found), flush=True)
            count += len(found)
    print(f"{len(pages)} pages, {count} findings")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
