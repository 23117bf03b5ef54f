"""The navigation of the site: the sections of docs/README.md, and what only the site has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from site_sources import ROOT, is_document, site_path, title_of

Entry = dict[str, "str | list[str | Entry]"]
# Titles of pages that are shorter in the navigation than on the page.
SHORT = {
    "tour.md": "Tour",
    "course.md": "Course",
    "algorithms.md": "Algorithms",
    "drawing.md": "Animated pages",
    "pytorch.md": "PyTorch",
    "interop.md": "DeepSpeed, Lightning and others",
    "torch_suite.md": "PyTorch's own tests",
    "codecs.md": "Codecs",
    "choice.md": "Choice of the algorithm",
    "simulator.md": "Simulator",
    "planner.md": "Planner",
    "predictions.md": "Predictions, graded",
    "benchmark.md": "Benchmark",
    "performance_targets.md": "Performance targets",
    "errors.md": "Errors",
    "cli.md": "Command line",
    "api/README.md": "Python API",
    "adr/README.md": "Decisions",
    "measurements/README.md": "Measurements",
    "verifier.md": "Verifier",
    "engine.md": "Engine",
    "contributing.md": "Contributing",
}
SECTION = re.compile(r"^\*\*(.+)\*\*$")
ENTRY = re.compile(r"- \[[^\]]+\]\(([^)#]+)\)")
CHINESE = {
    "README.zh.md": "首页",
    "docs/installation.zh.md": "安装",
    "docs/tour.zh.md": "导览",
    "docs/course.zh.md": "课程",
    "docs/features.zh.md": "功能",
}


def navigation() -> list[Entry]:
    """Return the navigation as MkDocs takes it."""
    made: list[Entry] = [{"Home": "index.md"}]
    for heading, pages in sections():
        entries: list[str | Entry] = [entry(page) for page in pages]
        if heading == "Start here":
            made += [{heading: [*entries, {"Index": "documentation.md"}]}, {"Gallery": "gallery/index.html"}]
        else:
            made.append({heading: entries})
    made.append({"中文": [{name: site_path(PurePosixPath(path))} for path, name in CHINESE.items() if there(path)]})
    return made


def sections() -> Iterator[tuple[str, list[PurePosixPath]]]:
    """Yield each section of docs/README.md with its pages."""
    title, pages = "", []
    for line in (ROOT / "docs" / "README.md").read_text(encoding="utf-8").splitlines():
        if found := SECTION.match(line):
            if pages:
                yield title, pages
            title, pages = found[1], []
        elif found := ENTRY.match(line):
            path = PurePosixPath("docs") / found[1]
            path = PurePosixPath(found[1][3:]) if found[1].startswith("../") else path
            path = path if path.suffix else path / "README.md"
            if is_document(path):
                pages.append(path)
    yield title, pages


def entry(path: PurePosixPath) -> Entry:
    """Return the entry of a page; an index of a folder has the pages of the folder below it."""
    name = site_path(path)
    if path.name != "README.md" or path.parent.name == "docs":
        return {title(path): name}
    others = sorted(Path(ROOT / path.parent).glob("*.md"))
    below: list[str | Entry] = [
        {title(at): site_path(at)}
        for at in (PurePosixPath(other.relative_to(ROOT).as_posix()) for other in others)
        if at.name != "README.md"
    ]
    return {title(path): [name, *below]} if below else {title(path): name}


def title(path: PurePosixPath) -> str:
    """Return the title of a page in the navigation."""
    return SHORT.get(site_path(path)) or title_of(path)


def there(path: str) -> bool:
    """Tell whether the repository has a document."""
    return (ROOT / path).exists()
