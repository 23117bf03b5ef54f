"""The table of contents of the course: the order of its pages, their names and files, and the links between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from unisono.drawing import messages
from unisono.drawing.course import factor, hosts, race, rank, ring, sums, training, trees
from unisono.drawing.course.record import Drawn, Lesson, Page
from unisono.drawing.page import Settings
from unisono.errors import UsageError
from unisono.message import listed

COURSE: tuple[Lesson, ...] = tuple(
    module.LESSON for module in (rank, sums, ring, factor, trees, hosts, training, race)
)


class Place(NamedTuple):
    """A page in the course: the number of its lesson, from 1, the lesson and the page."""

    number: int
    lesson: Lesson
    page: Page

    @property
    def file(self) -> str:
        """The name of the file of the page."""
        return f"lesson-{self.number}-{self.page.name}.html"


PLACES = tuple(Place(number, lesson, page) for number, lesson in enumerate(COURSE, 1) for page in lesson.pages)


def course_names() -> list[str]:
    """Return the names of all lessons and pages, in order; the name of a lesson is that of its first page, too."""
    return list(dict.fromkeys(name for place in PLACES for name in (place.lesson.name, place.page.name)))


def find_page(name: str | int) -> Place:
    """Return the page with a name, or the first page of the lesson with a name or a number."""
    wanted = str(name)
    for place in PLACES:
        if wanted in (str(place.number), place.lesson.name):
            return place
    for place in PLACES:
        if wanted == place.page.name:
            return place
    names = course_names()
    near = get_close_matches(wanted, names, n=1)
    hint = messages.DID_YOU_MEAN(near=near[0]) if near else ""
    raise UsageError(messages.NO_LESSON(lesson=wanted, count=len(COURSE), names=listed(names), hint=hint))


def lesson_page(name: str | int, language: str | None = None, numbers: bool = False) -> tuple[str, str]:
    """Return the title and the HTML of one page of the course; it names the commands that draw its neighbours."""
    place = find_page(name)
    drawn = place.page.draw()
    settings = Settings(numbers=numbers, language=language)
    return place.page.title.en, _write(place, drawn, settings)


def write_course(
    target: Path, language: str | None, home: str, written: Callable[[Path], None], *, algorithms: bool = False
) -> Iterator[dict[str, Any]]:
    """Write all pages and yield the entry of each lesson in the index ``home``.

    ``algorithms`` says whether the pages of all algorithms are in the same folder.
    """
    for number, lesson in enumerate(COURSE, 1):
        pages, pictures = [], []
        for place in PLACES:
            if place.number != number:
                continue
            drawn = place.page.draw()
            path = target / place.file
            settings = Settings(language=language, home=home, algorithms=algorithms)
            path.write_text(_write(place, drawn, settings), encoding="utf-8")
            written(path)
            pages.append({"file": place.file, "title": place.page.title._asdict()})
            pictures.append(drawn.picture)
        yield {
            "name": lesson.name, "title": lesson.title._asdict(), "story": lesson.story._asdict(),
            "picture": pictures[0], "pages": pages,
        }  # fmt: skip


def _write(place: Place, drawn: Drawn, settings: Settings) -> str:
    """Return the HTML of a page with its frame; without an index (``settings.home``) it has no links."""
    page = place.page
    frame = {**frame_of(place, settings.home), "by_steps": drawn.by_steps, **drawn.texts()}
    return drawn.write(
        Settings(
            numbers=settings.numbers, language=settings.language, home=settings.home, title=page.title,
            story=page.story, algorithms=settings.algorithms, course=frame,
        )
    )  # fmt: skip


def frame_of(place: Place, home: str | None) -> dict[str, Any]:
    """Return the place of a page in the course, and its neighbours."""
    at = PLACES.index(place)
    siblings = [each for each in PLACES if each.number == place.number]

    def described(each: Place) -> dict[str, Any]:
        title = each.page.title if each.number == place.number else each.lesson.title
        return {
            "lesson": each.number, "name": each.page.name, "title": title._asdict(),
            "file": each.file if home else None, "here": each == place,
        }  # fmt: skip

    return {
        "lesson": place.number, "of": len(COURSE), "name": place.page.name, "home": home,
        "title": place.lesson.title._asdict(),
        "pages": [described(each) for each in siblings],
        "previous": described(PLACES[at - 1]) if at else None,
        "next": described(PLACES[at + 1]) if at + 1 < len(PLACES) else None,
    }  # fmt: skip
