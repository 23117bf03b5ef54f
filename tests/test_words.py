"""Words have one meaning each: the words that the glossary rules out are not used."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
SUFFIXES = {".py", ".pyi", ".cpp", ".hpp", ".mjs", ".css", ".md", ".toml", ""}
FOLDERS = ("src", "engine", "tests", "tools", "examples", "docs")
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "pyproject.toml")
# Files that quote the words: the list itself, this test, and the novel that the example trains on.
QUOTATIONS = {"docs/glossary.md", "tests/test_words.py", "examples/language/text.txt"}
QUESTION = re.compile(r"(What|Which|Whether|How|Who|Whose|When|Where|Why)\b")

# Parts of the tree that still use some of the words: remove an entry when its part is clean.
NOT_YET = (
    "README.md", "docs/algorithms.md", "docs/api/", "docs/benchmark.md", "docs/drawing.md", "docs/engine.md",
    "docs/errors.md", "docs/parallel/", "docs/tour", "docs/tracing.md", "engine/", "examples/", "src/", "tests/",
    "tools/parallel_pages.py", "tools/parallel_steps/",
)  # fmt: skip


def forbidden() -> list[tuple[str, re.Pattern[str]]]:
    """Return the words that are not used, with the expression that finds each."""
    table = GLOSSARY.read_text(encoding="utf-8").split("## Words that are not used")[1]
    rows = re.findall(r"^\| (.+?) \| .+ \| `(.+)` \|$", table, re.MULTILINE)
    return [(words, re.compile(pattern.replace(r"\|", "|"), re.IGNORECASE)) for words, pattern in rows]


def files() -> list[str]:
    """Return the text files of the repository, without golden files and quotations."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", *FOLDERS, *PAGES]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in names if is_text(name) and not name.startswith(NOT_YET) and (ROOT / name).exists()]


def is_text(name: str) -> bool:
    """Tell whether a file holds sentences of ours."""
    return Path(name).suffix in SUFFIXES and name not in QUOTATIONS and "/golden/" not in name


def test_the_glossary_has_a_table_of_words():
    assert len(forbidden()) >= 20


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Nobody waits", True),
        ("recommend", False),
        ("quick_call.cpp", False),
        ("a quicker way", True),
        ("a window", False),
    ],
)
def test_the_expressions_find_words_and_not_parts_of_words(text, found):
    assert any(pattern.search(text) for _, pattern in forbidden()) is found


@pytest.mark.parametrize("pattern", [pytest.param(pattern, id=words) for words, pattern in forbidden()])
def test_a_word_that_the_glossary_rules_out_is_not_used(pattern):
    uses = []
    for name in files():
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
            if pattern.search(line):
                uses.append(f"{name}:{number}: {line.strip()}")
    assert not uses, "\n".join(uses)


def test_docstrings_of_modules_are_statements():
    questions = []
    for name in files():
        if name.endswith(".py"):
            docstring = ast.get_docstring(ast.parse((ROOT / name).read_text(encoding="utf-8"))) or ""
            if QUESTION.match(docstring):
                questions.append(f"{name}: {docstring.splitlines()[0]}")
    assert not questions, "\n".join(questions)
