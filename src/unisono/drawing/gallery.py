"""Writes the gallery: the course, a page for every algorithm, comparisons, and an index. It needs no server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from unisono.algorithms import Algorithm, algorithms_of
from unisono.collectives import COLLECTIVES, Collective
from unisono.drawing import messages
from unisono.drawing.course import write_course
from unisono.drawing.drawing import draw_scenes
from unisono.drawing.page import Settings, fill_template, script
from unisono.drawing.scene import Scene, scene_of
from unisono.drawing.simulated import FEWER_NETWORKS, networks_for, race
from unisono.errors import UsageError
from unisono.schedule import Schedule

INDEX = "index.html"
MOST_COMPARED = 6  # on one page
WELL_KNOWN = "ring"  # readers compare the others with it


def write_gallery(
    folder: str | Path,
    size: int | None = 8,
    language: str | None = None,
    written: Callable[[Path], None] = lambda path: None,
) -> Path:
    """Write the course and all pages for ``size`` ranks, or the course alone (None), and return the index.

    ``written`` is called after each page.
    """
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        course = write_course(target, language, INDEX, written, algorithms=size is not None)
        index: dict[str, Any] = {"size": size, "course": list(course), "collectives": []}
        for collective in COLLECTIVES if size is not None else ():
            index["collectives"].append(_collective(target, collective, size or 0, language, written))
        data = {"index": index, "settings": Settings(language=language).as_dict(), "home": None}
        path = target / INDEX
        path.write_text(fill_template("page.html", "Unisono", data, script("index")), encoding="utf-8")
    except OSError as error:
        raise UsageError(messages.GALLERY_NOT_WRITABLE(folder=str(folder), reason=error.strerror)) from error
    written(path)
    return path


def _collective(
    target: Path, collective: Collective, size: int, language: str | None, written: Callable[[Path], None]
) -> dict[str, Any]:
    """Write the pages of a collective and return its entry in the index."""
    settings = Settings(language=language, home=INDEX)
    scenes: dict[str, Scene] = {}
    schedules: dict[str, Schedule] = {}
    cards = []
    for algorithm in algorithms_of(collective):
        schedule = schedules[str(algorithm)] = algorithm.schedule(size)
        scene = scenes[str(algorithm)] = scene_of(schedule, algorithm)
        path = target / f"{collective}-{algorithm.name}.html"
        _write(path, [scene], settings)
        written(path)
        cards.append(_card(algorithm, scene, path.name))
    compared = target / f"compare-{collective}.html"
    best = _best(scenes)
    chosen = [scenes[name] for name in best]
    _write(
        compared,
        chosen,
        settings,
        race([schedules[name] for name in best], chosen, networks_for(size, FEWER_NETWORKS)),
    )
    written(compared)
    return {
        "name": collective.name, "title": collective.name.replace("_", "-"),
        "summary": collective.summary._asdict(), "story": collective.story._asdict(),
        "carries_data": collective.carries_data, "compare": compared.name,
        "algorithms": cards,
    }  # fmt: skip


def _write(path: Path, scenes: list[Scene], settings: Settings, race: dict[str, Any] | None = None) -> None:
    path.write_text(draw_scenes(scenes, settings, race=race).html, encoding="utf-8")


def _card(algorithm: Algorithm, scene: Scene, page: str) -> dict[str, Any]:
    facts = ("rounds", "latency_ratio", "bandwidth_ratio", "messages")
    return {
        "name": algorithm.name, "page": page, "idea": scene["algorithm"]["idea"],
        "facts": {name: scene["facts"][name] for name in facts}, **_thumbnail(scene),
    }  # fmt: skip


def _thumbnail(scene: Scene) -> dict[str, Any]:
    """Return the data of a thumbnail: the layout, and the pairs of ranks that communicate."""
    return {"size": scene["size"], "layout": scene["layout"], "pairs": scene["pairs"]}


def _best(scenes: Mapping[str, Scene]) -> list[str]:
    """Return the well-known algorithm and those closest to the lower bounds, in their original order."""
    chosen = sorted(scenes, key=lambda name: _distance(scenes[name]))[:MOST_COMPARED]
    return [name for name in scenes if name in chosen]


def _distance(scene: Scene) -> tuple[bool, float]:
    facts = scene["facts"]
    return scene["algorithm"]["name"] != WELL_KNOWN, facts["latency_ratio"] + facts["bandwidth_ratio"]
