"""Puts scenes and the files of the folder ``page/`` into one HTML file, which needs no server and loads nothing.

The scripts are ES modules, so that tests can import them as they are: ``common/`` is shared, ``algorithm/``,
``compare/``, ``run/`` and ``lessons/`` hold one kind of page each; ``course/`` is the frame of a page of the course.
Here they become one script: each module follows the modules that it imports, in its own scope. This requires that
every import reads
``import { names } from "./file.mjs"``, without renaming, and that ``export`` stands before a function, a class or a
const.
"""

from __future__ import annotations

import html
import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from unisono.collectives import Words

ASSETS = Path(__file__).parent / "page"
STYLES = (
    "common/colours", "common/frame", "common/stage", "common/playback_bar", "common/narration_panel",
    "algorithm/facts", "algorithm/code", "compare/compare", "simulated/simulated", "index", "lessons/training",
    "lessons/training_panels", "lessons/lessons", "run/run", "course/course", "course/course_index",
    "common/reading_modes", "common/print",
)  # fmt: skip
IMPORT = re.compile(r'^import (\{[^}]*\}) from "(\.\.?/[\w/]+)\.mjs";$', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
# Comments that fill whole lines, empty lines and indentation: a page does not need them.
COMMENT = re.compile(r"^[ ]*(?://[^\n]*|/\*.*?\*/)\n", re.MULTILINE | re.DOTALL)
INDENTATION = re.compile(r"^[ \n]+", re.MULTILINE)
WITHOUT_SCRIPT = "This page draws with JavaScript, which is switched off. 本页面需要启用 JavaScript。"


@dataclass(frozen=True)
class Settings:
    """The initial view of a page, and texts that replace those of the collective."""

    numbers: bool = False  # show numbers in the cells instead of expressions
    language: str | None = None  # None: the language of the browser
    home: str | None = None  # the page that the link back leads to
    offsets: tuple[int, ...] | None = None  # steps after which each of several scenes begins
    title: Words | None = None
    story: Words | None = None
    algorithms: bool = False  # the pages of all algorithms are in the same folder
    opening: str | None = None  # the view with which the page opens, written as in a link
    course: Mapping[str, Any] | None = None  # the place of the page in the course, and its texts

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        words = {name: value and value._asdict() for name, value in (("title", self.title), ("story", self.story))}
        return {
            "numbers": self.numbers, "language": self.language, "offsets": self.offsets,
            "algorithms": self.algorithms, "opening": self.opening, "course": self.course, **words,
        }  # fmt: skip


def write_page(
    scenes: Sequence[Mapping[str, Any]], title: str, settings: Settings | None = None,
    simulated: Mapping[str, Any] | None = None, race: Mapping[str, Any] | None = None,
) -> str:  # fmt: skip
    """Return a page about one scene, or a comparison of several; ``title`` is for the title bar.

    ``simulated`` holds the simulated times of one scene, ``race`` those of a comparison (simulated.py).
    """
    chosen = settings or Settings()
    data = {"scenes": scenes, "settings": chosen.as_dict(), "home": chosen.home, "simulated": simulated, "race": race}
    kind = "simulated" if simulated else "compare" if race or len(scenes) > 1 else "algorithm"
    return fill_template("page.html", title, data, script(f"{kind}/page"))


def fill_template(name: str, title: str, data: Mapping[str, Any], program: str) -> str:
    """Return an HTML file of the folder with everything filled in."""
    # Text of a user must not end the element that holds it.
    written = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "title": html.escape(title),
        "style": "\n".join(shortened(asset(f"{name}.css")) for name in STYLES),
        "data": written,
        "script": program,
        "without_script": WITHOUT_SCRIPT,
    }
    filled = re.sub(r"\{(\w+)\}", lambda found: parts[found[1]], asset(name))
    return filled.encode(errors="replace").decode()  # text of a user may hold lone surrogates


def shortened(text: str) -> str:
    """Return a script or a style sheet without comments that fill whole lines, and without indentation.

    A text in a script must not extend over several lines.
    """
    return INDENTATION.sub("", COMMENT.sub("", text))


@cache
def asset(name: str) -> str:
    """Return the text of a file of the folder."""
    return (ASSETS / name).read_text(encoding="utf-8")


def imports(name: str) -> list[str]:
    """Return the modules that a module imports, as paths below ``page/`` without their suffix."""
    return [_resolved(name, path) for _, path in IMPORT.findall(asset(f"{name}.mjs"))]


def scope_name(name: str) -> str:
    """Return the name of the const that holds the exports of a module."""
    return f"module_{name.replace('/', '_')}"


@cache
def script(entry: str) -> str:
    """Return one script with a module and everything it imports, such as ``run/run``."""
    done: list[str] = []

    def add(name: str) -> None:
        if name not in done:
            for imported in imports(name):
                add(imported)
            done.append(name)

    add(entry)
    return "\n".join(_in_its_scope(name) for name in done[:-1]) + _with_its_imports(entry)


def _resolved(name: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def _in_its_scope(name: str) -> str:
    exported = ", ".join(match[1] for match in EXPORT.findall(asset(f"{name}.mjs")))
    return f"const {scope_name(name)} = (() => {{\n{_with_its_imports(name)}\nreturn {{ {exported} }};\n}})();\n"


def _with_its_imports(name: str) -> str:
    def bind(match: re.Match[str]) -> str:
        return f"const {match[1]} = {scope_name(_resolved(name, match[2]))};"

    return EXPORT.sub(r"\1", IMPORT.sub(bind, shortened(asset(f"{name}.mjs"))))
