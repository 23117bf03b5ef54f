"""Put scenes and the page's own files into one HTML file, which needs no server and loads nothing.

The scripts are ES modules, so that tests import them as they are. Here they become one script, each file
after those that it needs and in a scope of its own. For that every import is ``import { names } from
"./file.mjs"``, without renaming, and every export stands before a function, a class or a const.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from unisono.collectives import Words

ASSETS = Path(__file__).parent / "page"
STYLES = (
    "colours", "frame", "stage", "bar", "words", "facts", "code", "compare", "gallery", "training", "training_panels",
    "lessons", "run",
)  # fmt: skip
IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.mjs";$', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
WITHOUT_SCRIPT = "This page draws with JavaScript, which is switched off. 本页面需要启用 JavaScript。"


@dataclass(frozen=True)
class Settings:
    """How a page opens, and what it says in place of the collective's own words."""

    numbers: bool = False  # in the cells, instead of who is summed in
    language: str | None = None  # None: that of the browser
    home: str | None = None  # where a link back to all pages leads
    offsets: tuple[int, ...] | None = None  # steps after which each of several scenes begins
    title: Words | None = None
    story: Words | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        words = {name: value and value._asdict() for name, value in (("title", self.title), ("story", self.story))}
        return {"numbers": self.numbers, "language": self.language, "offsets": self.offsets, **words}


def write_page(scenes: Sequence[Mapping[str, Any]], title: str, settings: Settings | None = None) -> str:
    """Return a page about one scene, or one that compares several; ``title`` is for the title bar."""
    chosen = settings or Settings()
    data = {"scenes": scenes, "settings": chosen.as_dict(), "home": chosen.home}
    return fill_template("page.html", title, data, script("main"))


def fill_template(name: str, title: str, data: Mapping[str, Any], program: str) -> str:
    """Return one of our HTML files with everything in its place."""
    # No text of a user's can end the element that holds it.
    written = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "title": html.escape(title),
        "style": "\n".join(asset(f"{name}.css") for name in STYLES),
        "data": written,
        "script": program,
        "without_script": WITHOUT_SCRIPT,
    }
    filled = re.sub(r"\{(\w+)\}", lambda found: parts[found[1]], asset(name))
    return filled.encode(errors="replace").decode()  # a text of a user's may have halves of characters


@cache
def asset(name: str) -> str:
    """Return the text of one of the page's own files."""
    return (ASSETS / name).read_text(encoding="utf-8")


@cache
def script(entry: str) -> str:
    """Return one script with everything that a module needs, in an order that works."""
    done: list[str] = []

    def add(name: str) -> None:
        if name not in done:
            for _, needed in IMPORT.findall(asset(f"{name}.mjs")):
                add(needed)
            done.append(name)

    add(entry)
    return "\n".join(_in_its_scope(name) for name in done[:-1]) + _with_its_imports(entry)


def _in_its_scope(name: str) -> str:
    exported = ", ".join(found[1] for found in EXPORT.findall(asset(f"{name}.mjs")))
    return f"const module_{name} = (() => {{\n{_with_its_imports(name)}\nreturn {{ {exported} }};\n}})();\n"


def _with_its_imports(name: str) -> str:
    return EXPORT.sub(r"\1", IMPORT.sub(r"const \1 = module_\2;", asset(f"{name}.mjs")))
