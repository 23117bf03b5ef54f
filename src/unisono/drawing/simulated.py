"""Predictions for a page: the times of one schedule, or of several on several networks and at several sizes.

The page replays messages at the times of the simulator. A column holds the times of one schedule on one network at
one size after another, in parts of the duration, so that it packs into little space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from unisono import collectives, networks
from unisono.drawing.packing import pack
from unisono.drawing.scene import Scene
from unisono.message import LANGUAGES, translated
from unisono.networks import Network
from unisono.schedule import Schedule
from unisono.simulator import Timeline, simulate
from unisono.simulator.sweep import Sweep, takeovers

NETWORKS = ("ideal", "ethernet-10g", "xeon-16-cores", "dgx-h100", "fugaku")  # that a comparison offers
FEWER_NETWORKS = ("ideal", "dgx-h100", "fugaku")
MOST_RANKS_ON_ALL = 16  # with more, a comparison takes long on networks on which a call has thousands of passes
SIZES = tuple(8 << power for power in range(0, 28, 3))  # bytes: 8 to 1 GiB; a race can be seen at these
CHART_SIZES = tuple(sorted({*SIZES, *(8 << power for power in range(22))}))
NBYTES = 1 << 20  # of a page about one schedule
NBYTES_COMPARED = 1 << 18  # at which a comparison opens
PARTS = 1 << 24  # times are stored in these parts of the duration
LOAD_PARTS = 1000
MOST_SEGMENTS = 20_000  # messages times passes that a page shows one by one

Column = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Conditions:
    """The conditions of a simulation: a network and sizes, and further arguments of ``simulate``.

    Without a network, a comparison offers several. Without sizes, a comparison offers several, and opens with the
    default.
    """

    network: Network | None = None
    sizes: tuple[int, ...] = ()
    further: Mapping[str, Any] = field(default_factory=dict)  # codec, segments, contention


def networks_for(size: int, names: Sequence[str] = NETWORKS) -> list[Network]:
    """Return the networks that a comparison of ``size`` ranks offers."""
    found = [networks.load(name) for name in (names if size <= MOST_RANKS_ON_ALL else FEWER_NETWORKS)]
    return [network for network in found if network.size is None or size <= network.size]


def race(
    schedules: Sequence[Schedule], scenes: Sequence[Scene], choices: Sequence[Network],
    conditions: Conditions = Conditions(),
) -> dict[str, Any]:  # fmt: skip
    """Return the times of schedules on several networks, and the sizes at which another becomes the fastest.

    The page shows a race only if all scenes are on the stage; otherwise it shows the times.
    """
    carries_data = any(collectives.find(schedule.collective).carries_data for schedule in schedules)
    own = tuple(sorted(set(conditions.sizes)))
    given = len(own) > 1 or not carries_data
    sizes = own or (0,) if given else tuple(sorted({*SIZES, *own}))
    animated = all(scene["on_stage"] for scene in scenes)
    chart_sizes = () if not carries_data else sizes
    if animated and len(own) < 2 and carries_data:  # a simulation of many ranks takes too long for more
        chart_sizes = tuple(sorted({*CHART_SIZES, *own}))
    columns: dict[str, list[Column]] = {"sent": [], "got": [], "step": []}
    found = []
    for network in choices:
        sweeps = [Sweep(schedule, network, **conditions.further) for schedule in schedules]
        for sweep in sweeps:
            for nbytes in sizes if animated else ():
                animated = animated and _add_times(columns, sweep, nbytes)
        changes = takeovers(sweeps, chart_sizes) if chart_sizes else []
        found.append({
            **_about(network),
            "finish": [[sweep.time_s(nbytes) for nbytes in sizes] for sweep in sweeps],
            "chart": [[sweep.time_s(nbytes) for nbytes in chart_sizes] for sweep in sweeps],
            "crossovers": [
                {"bytes": nbytes, "before": before, "after": after, "seconds": sweeps[after].time_s(nbytes)}
                for (_, before), (nbytes, after) in pairwise(changes)
            ],
        })  # fmt: skip
    middle = min(sizes, key=lambda nbytes: abs(nbytes - NBYTES_COMPARED))
    return {
        "networks": found, "sizes": list(sizes), "chart_sizes": list(chart_sizes), "animated": animated,
        "bytes": own[0] if own and carries_data else middle, "parts": PARTS,
        "packed": pack({name: np.concatenate(parts) if parts else [] for name, parts in columns.items()}),
    }  # fmt: skip


def _add_times(columns: dict[str, list[Column]], sweep: Sweep, nbytes: int) -> bool:
    """Append the times of one schedule at one size; return False if there are too many to record."""
    timeline = sweep.timeline(nbytes)
    if timeline is None:
        return False
    times = _times(timeline, sweep.time_s(nbytes))
    for name, parts in columns.items():
        parts.append(times[name])
    return True


def _times(timeline: Timeline, time_s: float, passes: bool = False) -> dict[str, Column]:
    """Return the times of messages and steps in parts of the duration, one pass after another if asked for.

    Otherwise a message lasts from the departure of its first segment to the arrival of its last one.
    """
    seconds = {"sent": timeline.leave_s, "arrived": timeline.arrival_s, "got": timeline.done_s}
    if not passes:
        seconds = {name: each.min(axis=0) if name == "sent" else each.max(axis=0) for name, each in seconds.items()}
    seconds["step"] = np.concatenate([*timeline.step_s, np.empty(0)])
    return {name: _in_parts(times.ravel(), time_s) for name, times in seconds.items()}


def _in_parts(times_s: npt.NDArray[Any], time_s: float) -> Column:
    return np.rint(times_s / (time_s or 1.0) * PARTS).astype(np.int64)


def drawn_alone(schedule: Schedule, network: Network, conditions: Conditions) -> dict[str, Any]:
    """Return the prediction of one schedule, with the use of every link over time."""
    nbytes = conditions.sizes[0] if conditions.sizes else NBYTES
    if not collectives.find(schedule.collective).carries_data:
        nbytes = 0
    found = simulate(schedule, nbytes, network, timeline=True, **conditions.further)
    timeline = found.timeline
    columns: dict[str, Any] = {}
    links, pairs, passes = [], [], 1
    if timeline is not None:
        if timeline.leave_s.size <= MOST_SEGMENTS:
            passes = len(timeline.leave_s)
        columns = _times(timeline, found.time_s, passes > 1)
        used = np.unique(timeline.routes[timeline.routes >= 0])
        links = _links(used, network.for_messages(schedule.size, nbytes / schedule.chunks), schedule.size)
        pairs = _pairs(timeline, used, network)
        if timeline.use is not None:
            columns["use_link"] = np.searchsorted(used, timeline.use.link)
            columns["use_time"] = _in_parts(timeline.use.time_s, found.time_s)
            columns["use_load"] = np.rint(timeline.use.used * LOAD_PARTS).astype(np.int64)
    return {
        **_about(network), "variant": found.network, "bytes": nbytes, "prediction": found.as_data(), "links": links,
        "pairs": pairs, "parts": PARTS, "load_parts": LOAD_PARTS, "has_times": timeline is not None, "passes": passes,
        "has_use": timeline is not None and timeline.use is not None, "packed": pack(columns),
    }  # fmt: skip


def _about(network: Network) -> dict[str, Any]:
    title = network.title or network.name
    return {"name": network.name, "title": {"en": title, "zh": network.title_zh or title}, "source": network.source}


def _links(used: Column, network: Network, size: int) -> list[dict[str, Any]]:
    """Return the names and bandwidths of links; links inside a host are near."""
    table = network.links(size)
    near = sum(section.count for section in network.near.sections(network.hosts_of(size), network.ranks_per_host))
    return [
        {
            "name": {language: translated(table.name(link), language) for language in LANGUAGES},
            "far": bool(link >= near), "bandwidth": float(table.bandwidth[link]),
        }
        for link in used.tolist()
    ]  # fmt: skip


def _pairs(timeline: Timeline, used: Column, network: Network) -> list[list[Any]]:
    """Return every pair of ranks that communicate: sender, receiver, whether they are far, and the links between."""
    first = np.unique(timeline.route, return_index=True)[1]
    per_host = network.ranks_per_host
    return [
        [
            source, target, int(source // per_host != target // per_host),
            np.searchsorted(used, route[route >= 0]).tolist(),
        ]
        for source, target, route in zip(
            timeline.source[first].tolist(), timeline.target[first].tolist(), timeline.routes[timeline.route[first]],
            strict=True,
        )
    ]  # fmt: skip
