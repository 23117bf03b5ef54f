"""``unisono.draw``: a schedule, several side by side, or a recorded run, as a page that one can watch."""

from __future__ import annotations

import html
import tempfile
import webbrowser
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from unisono.algorithms import Algorithm, find
from unisono.drawing.lessons import LESSONS
from unisono.drawing.page import Settings, write_page
from unisono.drawing.presets import PRESETS
from unisono.drawing.runs import is_trace, write_run_page
from unisono.drawing.scene import Scene, scene_of
from unisono.errors import UsageError
from unisono.schedule import Schedule
from unisono.tracing.run import Run

FRAME_HEIGHT = 860  # of the frame in a notebook, in pixels


@dataclass(frozen=True)
class Drawing:
    """A page. In a notebook it shows itself; ``save`` writes it to a file, ``show`` opens it in a browser."""

    title: str
    html: str = field(repr=False)

    def save(self, path: str | Path) -> Path:
        """Write the page to a file and return where that is."""
        target = Path(path)
        try:
            target.write_text(self.html, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{str(path)!r} cannot be written: {error.strerror}; expected a file name") from error
        return target

    def show(self) -> Path:
        """Open the page in the browser, from a temporary file, and return where that is."""
        path = self.save(Path(tempfile.mkdtemp(prefix="unisono-")) / "page.html")
        webbrowser.open(path.as_uri())
        return path

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html, quote=True)}" title="{html.escape(self.title, quote=True)}" '
            f'style="width: 100%; height: {FRAME_HEIGHT}px; border: 0"></iframe>'
        )


def draw(
    *algorithms: str | Algorithm | Schedule | Run | PathLike[str],
    size: int | None = None,
    root: int | None = None,
    numbers: bool = False,
    language: str | None = None,
    preset: str | None = None,
    **options: Any,
) -> Drawing:
    """Draw an algorithm, or several beside each other, on ``size`` ranks (4 if None).

    An algorithm is given by name, as a decorated generator of one's own, or as a ready schedule. ``options``
    are those of the algorithm, as in ``draw("hierarchical", size=8, node=4)``; of several they go to each one
    that has them. ``numbers`` opens the page with numbers in the cells; ``language`` is ``en`` or ``zh``,
    that of the browser if None.

    A recorded run is drawn by the place of its trace, ``draw("run/")`` or ``draw("run.json")``, or as ``read_run``
    has read it.

    ``preset`` is a page to begin with, instead of algorithms: ``draw(preset="four")`` or ``draw(preset="zero3")``.
    """
    if preset is not None:
        if algorithms or size is not None or root is not None or options:
            raise UsageError(f"preset={preset!r} says what to draw; leave out algorithms, size, root and options")
        return draw_preset(preset, numbers=numbers, language=_checked(language))
    if not algorithms:
        raise UsageError("draw() needs at least one algorithm: draw('ring', size=5)")
    settings = Settings(numbers, _checked(language))
    if any(isinstance(given, Run | PathLike) or (isinstance(given, str) and is_trace(given)) for given in algorithms):
        if len(algorithms) > 1 or root is not None or options:
            raise UsageError("a run is drawn by itself: draw('run/'), without other names, root and options")
        page = write_run_page(algorithms[0], settings)  # type: ignore[arg-type]
        return Drawing(page.title, page.html)
    scenes = []
    for given in algorithms:
        if isinstance(given, Schedule):
            scenes.append(scene_of(given))
            continue
        algorithm = find(given) if isinstance(given, str) else given
        if not isinstance(algorithm, Algorithm):
            raise UsageError(f"cannot draw {given!r}; expected a name, an @algorithm or a schedule, or a run")
        suitable = {
            name: value for name, value in options.items() if len(algorithms) == 1 or name in algorithm.options
        }
        scenes.append(scene_of(algorithm.schedule(4 if size is None else size, root, **suitable), algorithm))
    return draw_scenes(scenes, settings)


def draw_preset(name: str, *, numbers: bool, language: str | None) -> Drawing:
    """Draw a page to begin with: a preset, or a lesson."""
    if name in LESSONS:
        lesson = LESSONS[name]
        return Drawing(lesson.title.en, lesson.write(Settings(language=language)))
    if name not in PRESETS:
        raise UsageError(f"there is no preset {name!r}; expected {', '.join([*PRESETS, *LESSONS])}")
    scenes, settings = PRESETS[name].make(PRESETS[name])
    return draw_scenes(scenes, replace(settings, numbers=numbers or settings.numbers, language=language))


def draw_scenes(scenes: list[Scene], settings: Settings) -> Drawing:
    """Put scenes on a page."""
    title = _title_of(scenes)
    return Drawing(title, write_page(scenes, title, settings))


def _checked(language: str | None) -> str | None:
    if language not in (None, "en", "zh"):
        raise UsageError(f"language={language!r}; expected 'en', 'zh' or None for that of the browser")
    return language


def _title_of(scenes: list[Scene]) -> str:
    """Return what stands in the title bar: the names, and the number of ranks."""
    return f"{', '.join(scene['label'] for scene in scenes)} · {scenes[0]['size']}"
