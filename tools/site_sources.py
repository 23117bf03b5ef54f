"""Copies the documents into a folder that MkDocs reads: with their links adapted, and the sources that they link to.

The documents are written for a reader of the repository, so they link to each other, to programs and to folders. The
site has a document at its place below docs/; README.md is the home, and a linked source file or folder becomes a page
with line numbers. A comment ``<!-- site: TEXT -->`` in a document is text that only the site shows.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
AT_THE_TOP = {
    "README.md": "index.md",
    "README.zh.md": "index.zh.md",
    "docs/README.md": "documentation.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
LANGUAGES = {".py": "python", ".cpp": "cpp", ".hpp": "cpp", ".cu": "cpp", ".mjs": "js", ".toml": "toml", ".sh": "sh"}
CODE = re.compile(r"(^```.*?^```$|``[^`]+``|`[^`]+`)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?:\[([\w/.-]+\.md))?\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")
ONLY_IN_THE_SITE = re.compile(r"<!-- site: (.*?) -->", re.DOTALL)
STARTS_A_LIST = re.compile(r"([-*]|\d+\.) ")


class Sources:
    """The folder that MkDocs reads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.linked: dict[PurePosixPath, None] = {}  # files and folders of the repository that need a page

    def write(self) -> None:
        """Write the documents, what they show, and a page for each source that they link to."""
        for document in documents():
            self._write(site_path(document), self.page_of(document, (ROOT / document).read_text(encoding="utf-8")))
        for path in sorted((ROOT / "docs").rglob("*")):
            if path.is_file() and path.suffix != ".md":
                self._copy(path, str(path.relative_to(ROOT / "docs")))
        done: set[PurePosixPath] = set()
        while left := [path for path in self.linked if path not in done]:
            for path in left:
                self._write(f"source/{name_of_source(path)}", self.source_page(path))
            done.update(left)

    def page_of(self, document: PurePosixPath, text: str) -> str:
        """Return a document as a page of the site."""
        text = ONLY_IN_THE_SITE.sub(lambda found: found[1], text)
        parts = CODE.split(with_blank_lines_before_lists(text))
        for at, part in enumerate(parts):
            if at % 2 == 0:
                parts[at] = LINK.sub(lambda link: self.link(document, *link.groups()), part)
            elif not part.startswith("```"):
                parts[at] = part.replace(
                    "\\|", "|"
                )  # Python-Markdown keeps the backslash that GitHub needs in a table
        return front_matter(document) + "".join(parts)

    def link(self, document: PurePosixPath, name: str | None, to: str, place: str | None) -> str:
        """Return a link from its ``](`` on; where its text is the name of a document, from its text on."""
        path = PurePosixPath(os.path.normpath(document.parent / to))
        text = (
            f"[{title_of(path)}" if name and to.endswith(name) and is_document(path) else f"[{name}" if name else ""
        )
        return f"{text}]({self.target(document, to, place or '')})"

    def target(self, document: PurePosixPath, link: str, place: str) -> str:
        """Return the target of a link, as the page of ``document`` has it."""
        if not link:
            return place
        if link.startswith("site:"):  # a page that only the site has, such as a page of the gallery
            return relative(link.removeprefix("site:"), site_path(document)) + place
        path = PurePosixPath(os.path.normpath(document.parent / link))
        if is_document(path / "README.md") and (ROOT / path / "README.md").exists():
            path = path / "README.md"
        if is_document(path) or (path.parts[0] == "docs" and path.suffix not in ("", ".md")):
            return relative(site_path(path), site_path(document)) + place
        self.linked[path] = None
        if place and path.suffix == ".py":
            place = f"#__codelineno-0-{line_of(path, place[1:])}"
        return relative(f"source/{name_of_source(path)}", site_path(document)) + place

    def source_page(self, path: PurePosixPath) -> str:
        """Return the page of a source file, or of a folder with links to its files."""
        head = f"---\ntitle: {path.name}\nsearch:\n  exclude: true\n---\n\n# `{path}`\n\n"
        if not (ROOT / path).is_dir():
            text = (ROOT / path).read_text(encoding="utf-8")
            return f'{head}``````{LANGUAGES.get(path.suffix, "text")} linenums="1"\n{text}\n``````\n'
        here = f"source/{name_of_source(path)}"
        lines = []
        for child in sorted((ROOT / path).iterdir()):
            if child.is_file() and child.suffix in LANGUAGES:
                at = path / child.name
                self.linked[at] = None
                lines.append(f"- [`{child.name}`]({relative(f'source/{name_of_source(at)}', here)})")
        return head + "\n".join(lines) + "\n"

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def _copy(self, path: Path, name: str) -> None:
        to = self.folder / name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(path.read_bytes())


def documents() -> Iterator[PurePosixPath]:
    """Yield the paths of all documents."""
    yield from (PurePosixPath(name) for name in AT_THE_TOP if not name.startswith("docs/"))
    for path in sorted((ROOT / "docs").rglob("*.md")):
        yield PurePosixPath(path.relative_to(ROOT).as_posix())


def is_document(path: PurePosixPath) -> bool:
    """Tell whether a path of the repository is a page of the documentation."""
    return str(path) in AT_THE_TOP or (path.suffix == ".md" and path.parts[0] == "docs")


def site_path(path: PurePosixPath) -> str:
    """Return the path below the site's folder of a document, or of a file that documents show."""
    return AT_THE_TOP.get(str(path)) or str(path.relative_to("docs"))


def title_of(path: PurePosixPath) -> str:
    """Return the title of a document."""
    return (ROOT / path).read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ").replace("`", "")


def name_of_source(path: PurePosixPath) -> str:
    """Return the file of the page of a source file or folder, below source/."""
    return f"{path}/index.md" if (ROOT / path).is_dir() else f"{path}.md"


def relative(target: str, page: str) -> str:
    """Return the link from one file of the site to another."""
    return os.path.relpath(target, os.path.dirname(page) or ".").replace(os.sep, "/")


def front_matter(document: PurePosixPath) -> str:
    """Return what the theme has to know about a page: its language, and its twin in the other language."""
    name = site_path(document)
    is_chinese = str(document).endswith(".zh.md")
    twin = str(document).replace(".zh.md", ".md") if is_chinese else str(document).replace(".md", ".zh.md")
    lines = ["lang: zh"] if is_chinese else []
    if (ROOT / twin).exists():
        lines.append(f"twin: {site_path(PurePosixPath(twin)).replace('.md', '.html')}")
    if name.startswith("index."):
        lines.append("hide: [navigation]")
    if name.startswith("adr/0"):
        lines.append("search:\n  boost: 0.5")
    return "---\n" + "\n".join(lines) + "\n---\n\n" if lines else ""


def with_blank_lines_before_lists(text: str) -> str:
    """Return a page with a blank line before each list: without it, Python-Markdown sees no list."""
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        before = lines[-1] if lines else ""
        in_list = bool(STARTS_A_LIST.match(before)) or before.startswith(" ")
        if not fenced and STARTS_A_LIST.match(line) and before and not in_list:
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"


def line_of(path: PurePosixPath, name: str) -> int:
    """Return the line on which a file defines a function, class or method, such as ``Communicator.split``."""
    body: list[ast.stmt] = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    line = 1
    for part in name.split("."):
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part:
                line, body = node.lineno, node.body
                break
        else:
            raise LookupError(f"{path} does not define {name}")
    return line
