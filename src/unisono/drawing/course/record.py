"""The course as data: lessons, their pages, the captions of a page, and a question to the student.

A page states numbers that come from its schedules, their proofs or the simulator, so its texts are made together with
its drawing (``Page.draw``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from unisono.collectives import Words
from unisono.drawing.page import Settings


@dataclass(frozen=True)
class Caption:
    """A caption, shown from the position ``at`` until the next one.

    ``view`` are the choices of the page that the caption is about, such as {"bytes": 4096}; with other choices it is
    not shown.
    """

    at: float
    words: Words
    view: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """A question to the student; ``choices[right]`` is the right answer, and ``answer`` gives the reason."""

    words: Words
    choices: tuple[Words, ...]
    right: int
    answer: Words


def number_choices(right: int, *others: int) -> tuple[tuple[Words, ...], int]:
    """Return numbers as choices in ascending order, and the place of the right one."""
    values = sorted({right, *others})
    return tuple(Words(f"{value:,}", str(value)) for value in values), values.index(right)


@dataclass(frozen=True)
class Drawn:
    """A page with its texts. ``write`` returns its HTML; ``last`` is its last position.

    ``by_steps`` says whether positions are steps; otherwise they are moments of a replay. ``picture`` is the data of
    its thumbnail: the scene of an algorithm, or the name of a picture.
    """

    write: Callable[[Settings], str]
    captions: tuple[Caption, ...]
    question: Question
    last: float
    picture: Mapping[str, Any]
    by_steps: bool = True

    def texts(self) -> dict[str, Any]:
        """Return captions and question as plain data for the page."""
        captions = [{"at": each.at, "words": each.words._asdict(), "view": dict(each.view)} for each in self.captions]
        question = asdict(self.question)
        for name in ("words", "answer"):
            question[name] = getattr(self.question, name)._asdict()
        question["choices"] = [choice._asdict() for choice in self.question.choices]
        return {"captions": captions, "question": question}


@dataclass(frozen=True)
class Page:
    """A page of a lesson: its name in commands and file names, its title, and one sentence that tells the story."""

    name: str
    title: Words
    story: Words
    draw: Callable[[], Drawn]


@dataclass(frozen=True)
class Lesson:
    """A lesson: its name in commands, its title, one sentence about it, and its pages in order."""

    name: str
    title: Words
    story: Words
    pages: tuple[Page, ...]
