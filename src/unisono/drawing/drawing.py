"""``unisono.draw``: draws a schedule, a comparison of several, or a recorded run as an interactive web page."""

from __future__ import annotations

import html
import tempfile
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

from unisono.algorithms import Algorithm
from unisono.algorithms.host_options import network_options
from unisono.algorithms.user_files import Watch, WrittenSchedule, resolve
from unisono.collectives import Words
from unisono.drawing import messages
from unisono.drawing.course import course_names, find_page, lesson_page
from unisono.drawing.page import Settings, write_page
from unisono.drawing.picture import KINDS, page_picture
from unisono.drawing.runs import is_trace, write_run_page
from unisono.drawing.scene import MOST_RANKS_ON_STAGE, Scene, on_hosts, outline_of, scene_of
from unisono.drawing.simulated import Conditions, drawn_alone, networks_for, race
from unisono.errors import UsageError
from unisono.message import ENGLISH, Message, listed
from unisono.networks import Network, load
from unisono.schedule import Schedule
from unisono.simulator.messages import NOT_A_NETWORK
from unisono.simulator.simulation import IDEAL, checked
from unisono.tracing.run import Run

SIZE, SIZE_OF_SEVERAL = 4, 8  # default numbers of ranks: for one algorithm, and for a comparison
# In a notebook: the shape of the frame, within limits for wide and narrow windows.
FRAME_STYLE = "width: 100%; aspect-ratio: 16 / 10; min-height: 26rem; max-height: 40rem; border: 0"
FRAME_OF_RUN = "width: 100%; height: 54rem; border: 0"  # the whole page
ARGUMENTS = ("size", "root", "numbers", "language", "lesson", "calls", "network", "nbytes", "step", "rank")
# Names from other interfaces that users try.
MEANT = {"n": "size", "ranks": "size", "world_size": "size", "nranks": "size", "lang": "language", "bytes": "nbytes"}

Drawable = str | PathLike[str] | Algorithm | WrittenSchedule | Schedule | Run
Calls = tuple[int, int | None]  # numbers of the first and the last call; None: all that follow


@dataclass(frozen=True)
class Drawing:
    """A page. A notebook displays it; ``save`` writes it to a file, ``show`` opens it in a browser.

    ``svg`` and ``gif`` return pictures of it, which ``save`` writes, too.

    ``title`` is its title and ``html`` its text. ``failures`` holds the class and the text of the error of each
    program that fails its proof, in the language of the page (English if it has none). For a recorded run,
    ``findings`` says whether a rank was slow, and ``notes`` which parts are not on the page. By default, these three
    are empty. ``embeddable`` says whether a notebook shows only the stage, its bar and a caption; of a recorded run,
    it shows the whole page.
    """

    title: str
    html: str = field(repr=False)
    failures: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    findings: tuple[Words, ...] = field(default=(), repr=False)
    notes: tuple[Words, ...] = field(default=(), repr=False)
    embeddable: bool = field(default=True, repr=False)

    def save(self, path: str | Path) -> Path:
        """Write the page to the file ``path``, in an existing folder, and return the path.

        A path that ends with ``.svg`` or ``.gif`` gets the picture of the step, or the animation. UsageError is
        raised if the file cannot be written.
        """
        target = Path(path)
        if not target.parent.is_dir():
            raise UsageError(messages.NO_FOLDER(path=str(path), folder=str(target.parent)))
        try:
            target.write_bytes(page_picture(self.html, kind) if (kind := picture_kind(path)) else self.html.encode())
        except OSError as error:
            raise UsageError(messages.NOT_WRITABLE(path=str(path), reason=error.strerror)) from error
        return target

    def svg(self, theme: str = "light") -> str:
        """Return a picture of the step at which the page opens, as in ``draw("ring", size=5, step=3).svg()``.

        It is SVG text without scripts, with a title and a caption. ``theme`` is ``light`` or ``dark``. Chromium,
        Chrome, Edge or Brave must be installed; UsageError is raised if none of them is, or if the page has no stage.
        """
        return page_picture(self.html, "svg", theme).decode()

    def gif(self, theme: str = "light") -> bytes:
        """Return the animation as the bytes of a GIF file, on the same conditions as ``svg``.

        ``theme`` is ``light`` or ``dark``.
        """
        return page_picture(self.html, "gif", theme)

    def show(self) -> Path:
        """Write the page to a temporary file, open it in the browser, and return the path."""
        path = self.save(Path(tempfile.mkdtemp(prefix="unisono-")) / "page.html")
        webbrowser.open(path.as_uri())
        return path

    def _repr_html_(self) -> str:
        """Return a frame with the stage, its bar and a caption, as ``#embed`` in a link; or the page of a run."""
        text, style = self.html, FRAME_OF_RUN
        if self.embeddable:
            text, style = text.replace("<html ", '<html data-mode="embed" ', 1), FRAME_STYLE
        return (
            f'<iframe srcdoc="{html.escape(text, quote=True)}" title="{html.escape(self.title, quote=True)}" '
            f'style="{style}" allow="fullscreen"></iframe>'
        )


def picture_kind(path: str | Path) -> str | None:
    """Return the kind of picture that a file is to hold, by its suffix; None for a page."""
    suffix = Path(path).suffix.removeprefix(".").lower()
    return suffix if suffix in KINDS else None


@dataclass(frozen=True)
class Request:
    """The arguments of ``draw``, from Python or from the command line."""

    names: Sequence[Drawable]
    size: int | None = None
    root: int | None = None
    numbers: bool = False
    language: str | None = None
    lesson: str | int | None = None
    calls: Calls | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    conditions: Conditions = field(default_factory=Conditions)
    step: int | None = None
    rank: int | None = None

    @property
    def settings(self) -> Settings:
        """The settings of the page."""
        return Settings(numbers=self.numbers, language=self.language, opening=self.opening)

    @property
    def opening(self) -> str | None:
        """The view with which the page opens, written as in a link."""
        parts = [f"{name}={value}" for name, value in (("step", self.step), ("rank", self.rank)) if value is not None]
        if self.step is not None and len(self.names) > 1:
            parts.append("by=step")  # a comparison by the clock has no steps
        return f"#{'&'.join(parts)}" if parts else None


def draw(
    *algorithms: Drawable | Sequence[Drawable],
    size: int | None = None,
    root: int | None = None,
    numbers: bool = False,
    language: str | None = None,
    lesson: str | int | None = None,
    calls: Calls | None = None,
    network: Network | str | PathLike[str] | None = None,
    nbytes: int | None = None,
    step: int | None = None,
    rank: int | None = None,
    **options: Any,
) -> Drawing:
    """Draw an algorithm on ``size`` ranks (default 4), or compare several (default 8 ranks), as a web page.

    Each of ``algorithms`` is a name, a function in a file (``draw("my.py")``, ``draw("my.py:zigzag")``), a decorated
    generator or a schedule; several are separate arguments or a list. ``root`` is the root of the collective, if it
    has one (default 0). ``options`` are passed to the algorithm, as in ``draw("hierarchical", size=8, node=4)``; in a
    comparison, to every algorithm that has them. ``numbers`` opens the page with numbers in the cells (default:
    expressions). ``language`` is ``en`` or ``zh``; by default, that of the browser.

    With a ``network`` (a record, a preset such as "dgx-h100", or a network file), messages travel in simulated time,
    for a vector of ``nbytes`` (default 1 MiB), and links are coloured by load; several algorithms race. Without a
    network, a comparison offers several, and ``nbytes`` is the size at which it opens.

    The page opens at ``step`` (default: at the start, or at an error), with ``rank`` selected (default: none), as in
    ``draw("ring", size=5, step=3, rank=2)``. Steps are those of the page, counted from 1; 0 is the start.

    ``draw("run/")`` or ``draw("run.json")`` draws a recorded run, which may also be given as ``read_run`` returns it;
    ``calls`` selects some of its calls, as in ``calls=(100, 200)`` (default: all that fit).

    ``lesson`` draws a page of the course, by number or name: ``draw(lesson=3)``, ``draw(lesson="zero3")``. The whole
    course is written by ``unisono draw --course``.

    UsageError is raised if the arguments cannot work. An algorithm that fails its proof is drawn up to its error. For
    example::

        unisono.draw("ring", "double_tree", size=8).save("compare.html")
    """
    names = tuple(_flattened(algorithms))
    conditions = Conditions(_loaded(network), () if nbytes is None else (nbytes,))
    request = Request(names, size, root, numbers, language, lesson, calls, options, conditions, step, rank)
    return draw_request(request)


def draw_request(
    request: Request, *, watch: Watch | None = None, progress: Callable[[str], None] = lambda name: None
) -> Drawing:
    """Draw a request; ``watch`` watches code of the user, ``progress`` is called before each name is drawn."""
    if request.language not in (None, "en", "zh"):
        raise UsageError(messages.WRONG_LANGUAGE(language=request.language))
    if "preset" in request.options:
        raise UsageError(presets_are_lessons(request.options["preset"]))
    if request.lesson is not None:
        return _draw_lesson(request)
    if not request.names:
        raise UsageError(messages.NOTHING_TO_DRAW())
    if any(map(_is_run, request.names)):
        return _draw_run(request, progress)
    if request.calls is not None:
        raise UsageError(messages.CALLS_WITHOUT_RUN(name=str(request.names[0])))
    conditions = request.conditions
    if conditions.sizes and conditions.network is None and len(request.names) == 1:
        raise UsageError(messages.BYTES_WITHOUT_NETWORK(name=str(request.names[0])))
    subjects = [_resolved(name, watch) for name in request.names]
    _check_options(subjects, request.options)
    _check_view(request)
    schedules, scenes = [], []
    for name, subject in zip(request.names, subjects, strict=True):
        progress(str(name))
        schedule = _schedule(subject, request)
        for nbytes in conditions.sizes or (0,):
            checked(schedule, nbytes, conditions.network or IDEAL)
        schedules.append(schedule)
        scenes.append(_scene(schedule, subject, request, str(name) if isinstance(name, str | PathLike) else None))
    _check_range(scenes, request)
    return draw_scenes(scenes, request.settings, **_simulated(schedules, scenes, conditions))


def draw_scenes(
    scenes: list[Scene], settings: Settings, simulated: Mapping[str, Any] | None = None,
    race: Mapping[str, Any] | None = None,
) -> Drawing:  # fmt: skip
    """Put scenes on a page; ``simulated`` or ``race`` holds their simulated times."""
    title = f"{', '.join(scene['label'] for scene in scenes)} · {scenes[0]['size']}"
    if simulated is not None:
        title += f" · {simulated['name']}"
    language = settings.language or ENGLISH
    failed = [scene["failure"] for scene in scenes if scene["failure"]]
    failures = tuple((failure["error"], failure["texts"][language]) for failure in failed)
    return Drawing(title, write_page(scenes, title, settings, simulated, race), failures)


def presets_are_lessons(preset: object) -> Message:
    """Return the error for a preset, which earlier versions had."""
    return messages.PRESETS_ARE_LESSONS(preset=str(preset), names=listed(course_names()))


def _draw_lesson(request: Request) -> Drawing:
    name = request.lesson if request.lesson is not None else ""
    find_page(name)
    given = (request.size, request.root, request.calls) != (None, None, None) or _is_simulated(request)
    if request.names or request.options or given or request.opening:
        raise UsageError(messages.LESSON_ALONE(lesson=str(name)))
    return Drawing(*lesson_page(name, request.language, request.numbers))


def _draw_run(request: Request, progress: Callable[[str], None]) -> Drawing:
    run: Any = next(filter(_is_run, request.names))
    name = run.source if isinstance(run, Run) else str(run)
    given = (request.size, request.root) != (None, None) or _is_simulated(request)
    if len(request.names) > 1 or request.options or given or request.opening:
        raise UsageError(messages.RUN_ALONE(run=name))
    progress(name)
    page = write_run_page(run, request.settings, request.calls)
    return Drawing(page.title, page.html, findings=tuple(page.verdict), notes=tuple(page.notes), embeddable=False)


def _check_view(request: Request) -> None:
    """Refuse a step or a rank that is no number, and a step in simulated time."""
    for name, value in (("step", request.step), ("rank", request.rank)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise UsageError(messages.VIEW_NOT_A_NUMBER(name=name, found=repr(value)))
    if request.step is not None and request.conditions.network is not None:
        raise UsageError(messages.STEP_IN_SIMULATED_TIME(step=request.step))


def _check_range(scenes: Sequence[Scene], request: Request) -> None:
    """Refuse a step after the last one of all scenes, and a rank that a scene does not have."""
    label = listed(scene["label"] for scene in scenes)
    last = max(scene["levels"] for scene in scenes)
    if request.step is not None and not 0 <= request.step <= last:
        raise UsageError(messages.NO_STEP(label=label, step=request.step, last=last))
    most = min(scene["size"] for scene in scenes) - 1
    if request.rank is not None and not 0 <= request.rank <= most:
        raise UsageError(messages.NO_RANK(label=label, rank=request.rank, last=most))


def _is_simulated(request: Request) -> bool:
    return request.conditions.network is not None or bool(request.conditions.sizes)


def _loaded(network: Network | str | PathLike[str] | None) -> Network | None:
    if not isinstance(network, Network | str | PathLike | None):
        raise UsageError(NOT_A_NETWORK(found=repr(network)))
    return (
        load(network if isinstance(network, str) else Path(network))
        if isinstance(network, str | PathLike)
        else network
    )


def _simulated(schedules: Sequence[Schedule], scenes: Sequence[Scene], conditions: Conditions) -> dict[str, Any]:
    """Return the simulated times of schedules; a program that fails its proof is not simulated."""
    network = conditions.network
    if any(scene["failure"] for scene in scenes):
        return {}
    if network is not None and len(scenes) == 1 and scenes[0]["on_stage"] and len(conditions.sizes) < 2:
        return {"simulated": drawn_alone(schedules[0], network, conditions)}
    if network is not None:
        return {"race": race(schedules, scenes, [network], conditions)}
    if len(scenes) == 1 or not all(scene["on_stage"] for scene in scenes):
        return {}
    most = max(schedule.size for schedule in schedules)
    return {"race": race(schedules, scenes, networks_for(most), conditions)}


def _flattened(algorithms: Sequence[Any]) -> Iterator[Any]:
    for subject in algorithms:
        if isinstance(subject, list | tuple):
            yield from subject
        else:
            yield subject


def _is_run(name: object) -> bool:
    return isinstance(name, Run) or (isinstance(name, str | PathLike) and is_trace(name))


def _resolved(name: Drawable, watch: Watch | None) -> Algorithm | WrittenSchedule | Schedule:
    if isinstance(name, str | PathLike):
        return resolve(str(name), watch=watch)
    if isinstance(name, Algorithm | WrittenSchedule | Schedule):
        return name
    raise UsageError(messages.NOT_DRAWABLE(found=repr(name)))


def _options_of(subject: Algorithm | WrittenSchedule | Schedule) -> Mapping[str, Any]:
    return subject.options if isinstance(subject, Algorithm) else {}


def _check_options(subjects: Sequence[Algorithm | WrittenSchedule | Schedule], options: Mapping[str, Any]) -> None:
    """Refuse an option that no algorithm has; in a comparison it would be ignored."""
    known = list(dict.fromkeys(name for subject in subjects for name in _options_of(subject)))
    for option in options:
        if option in known:
            continue
        names = listed(map(str, subjects))
        near = [MEANT[option]] if option in MEANT else get_close_matches(option, [*known, *ARGUMENTS], n=1)
        if near:
            raise UsageError(messages.NO_OPTION(option=option, names=names, near=near[0]))
        named = listed(known) or messages.NO_OPTIONS()
        arguments = listed(ARGUMENTS)
        raise UsageError(messages.NO_OPTION_LISTED(option=option, names=names, arguments=arguments, options=named))


def _schedule(subject: Algorithm | WrittenSchedule | Schedule, request: Request) -> Schedule:
    """Return the schedule of one subject; in a comparison each takes the options that it has."""
    if isinstance(subject, Schedule):
        return subject
    if isinstance(subject, WrittenSchedule):
        return subject.schedule(request.size or subject.written.size, request.root)
    size = (SIZE_OF_SEVERAL if len(request.names) > 1 else SIZE) if request.size is None else request.size
    options = {option: value for option, value in request.options.items() if option in subject.options}
    if request.conditions.network is not None:
        options = {**network_options(subject, request.conditions.network, size), **options}
    return subject.schedule(size, request.root, **options)


def _scene(
    schedule: Schedule, subject: Algorithm | WrittenSchedule | Schedule, request: Request, name: str | None
) -> Scene:
    """Return the scene of a schedule; of one that is simulated and too large for the stage, only its outline."""
    algorithm = subject if isinstance(subject, Algorithm) else None
    network = request.conditions.network
    if network is None:
        return scene_of(schedule, algorithm, name=name)
    if schedule.size > MOST_RANKS_ON_STAGE:
        return outline_of(schedule, algorithm)
    return on_hosts(scene_of(schedule, algorithm, name=name), network.host_ranks(schedule.size))
