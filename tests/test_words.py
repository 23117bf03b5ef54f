"""The words that the glossary rules out are not used."""

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
PAGES = ("README.md", "README.zh.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "pyproject.toml")
# Files that quote the words: the list itself, this test, and the novel that the example trains on.
QUOTATIONS = {"docs/glossary.md", "tests/test_words.py", "examples/language/text.txt"}
QUESTION = re.compile(r"(What|Which|Whether|How|Who|Whose|When|Where|Why)\b")

# Parts of the tree that still use a word: remove an entry when the part is clean. All other words are rejected there.
# (The files of cli keep the former name of an option, --quickest-visit, as a hidden alias.)
NOT_YET: dict[str, tuple[str, ...]] = {
    "quick, quickly": ("src/unisono/cli/bench.py", "tests/cli/test_bench.py"),
}  # fmt: skip


def forbidden() -> list[tuple[str, re.Pattern[str]]]:
    """Return the words that are not used, with the expression that finds each."""
    table = GLOSSARY.read_text(encoding="utf-8").split("## Words that are not used")[1]
    rows = re.findall(r"^\| (.+?) \| .+ \| `(.+)` \|$", table, re.MULTILINE)
    return [(words, re.compile(pattern.replace(r"\|", "|"), re.IGNORECASE)) for words, pattern in rows]


def files() -> list[str]:
    """Return the text files of the repository, without golden files and quotations."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", *FOLDERS, *PAGES]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in names if is_text(name) and (ROOT / name).exists()]


def is_text(name: str) -> bool:
    """Return whether a file holds sentences of the project."""
    return Path(name).suffix in SUFFIXES and name not in QUOTATIONS and "/golden/" not in name


def test_the_glossary_has_a_table_of_words():
    assert len(forbidden()) >= 38


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Nobody waits", True),
        ("recommend", False),
        ("quick_call.cpp", False),
        ("a quicker way", True),
        ("a window", False),
        ("每个进程", True),
        ("每个进程组", False),
        ("集合操作", True),
        ("集合通信操作", False),
        ("各节点的任务数", False),
    ],
)
def test_the_expressions_find_words_and_not_parts_of_words(text, found):
    assert any(pattern.search(text) for _, pattern in forbidden()) is found


@pytest.mark.parametrize(("words", "pattern"), [pytest.param(*row, id=row[0]) for row in forbidden()])
def test_a_word_that_the_glossary_rules_out_is_not_used(words, pattern):
    uses = []
    for name in files():
        if name.startswith(NOT_YET.get(words, ())):
            continue
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
            if pattern.search(line):
                uses.append(f"{name}:{number}: {line.strip()}")
    assert not uses, "\n".join(uses)


def test_docstrings_of_modules_are_statements():
    questions = []
    for name in files():
        if name.endswith(".py") and not name.startswith(NOT_YET.get("questions", ())):
            docstring = ast.get_docstring(ast.parse((ROOT / name).read_text(encoding="utf-8"))) or ""
            if QUESTION.match(docstring):
                questions.append(f"{name}: {docstring.splitlines()[0]}")
    assert not questions, "\n".join(questions)
