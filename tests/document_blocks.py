"""The fenced blocks of the documents: Python programs, and commands of a shell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from console_blocks import ROOT

# Decisions are not here: they show how things were.
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "README.zh.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "parallel").glob("*.md")),
    *sorted((ROOT / "docs" / "api").glob("*.md")),
]
FENCED = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^ *```$", re.DOTALL | re.MULTILINE)
PROGRAMS = (
    "cd|echo|git|make|mpirun|nvidia-cuda-mps-control|openssl|pip|pytest|python3?(?:\\.\\d+)?|scp|srun|ssh|sudo|torchrun"
    "|unisono|\\.venv/bin/\\w+"
)
COMMAND = re.compile(rf"^(?:\$ (?P<prompted>.*)|(?P<bare>(?:{PROGRAMS}) (?!=).*))$")
COMMENT = re.compile(r"(?:^|\s+)#\s.*$")


class Block(NamedTuple):
    """A fenced block of a document."""

    page: str  # the path of the document
    line: int
    language: str
    text: str
    signature: bool  # of an entry of the API reference, generated from the function itself

    @property
    def place(self) -> str:
        """Where the block is, for messages."""
        return f"{self.page}:{self.line}"

    def commands(self) -> Iterator[Command]:
        """Yield the commands of a shell in the block; its other lines are their output, or a picture."""
        if self.language not in ("", "sh", "console", "bash", "shell"):
            return
        lines = [line for line in self.text.replace("\\\n", " ").splitlines() if line.strip()]
        only_commands = self.language in ("sh", "bash", "shell") and not any(line.startswith("$ ") for line in lines)
        for line in lines:
            if found := re.match("(.*)", line) if only_commands else COMMAND.match(line):
                text = " ".join(COMMENT.sub("", next(filter(None, found.groups()))).split())
                yield Command(self.page, self.line, text)


class Command(NamedTuple):
    """A command of a shell in a document, without its comment."""

    page: str
    line: int
    text: str


def blocks() -> list[Block]:
    """Return the blocks of all documents."""
    return [block for path in DOCUMENTS for block in blocks_of(path)]


def blocks_of(path: Path) -> Iterator[Block]:
    """Yield the blocks of a document."""
    page = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    for found in FENCED.finditer(text):
        indent = len(found["indent"])
        lines = [line[indent:] for line in found["text"].splitlines()]
        above = text[: found.start()].rstrip().rpartition("\n")[2]
        yield Block(
            page,
            text[: found.start()].count("\n") + 1,
            found["language"],
            "\n".join(lines) + "\n",
            signature=page.startswith("docs/api/") and above.startswith("#"),
        )


def python_blocks() -> list[Block]:
    """Return the Python programs of all documents."""
    return [block for block in blocks() if block.language == "python" and not block.signature]


def shell_commands() -> list[Command]:
    """Return the commands of all documents."""
    return [command for block in blocks() for command in block.commands()]
