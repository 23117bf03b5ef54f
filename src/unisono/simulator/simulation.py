"""Predicts the time of a schedule on a network."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unisono import collectives
from unisono.codecs.codec import Codec, find
from unisono.codecs.formats import BLOCK
from unisono.collectives import Collective
from unisono.compiler.call_layout import LINE, PADDING, SHORTEST_FAR_SEGMENT, CodecBlock, cut_into_segments
from unisono.compiler.geometry import DEPTH, STAGING_BYTES, TRACKS_BETWEEN_HOSTS
from unisono.compiler.lower import Limits, lower_steps
from unisono.compiler.routes import Routes
from unisono.errors import InternalError, UsageError
from unisono.message import listed
from unisono.networks import Network, load
from unisono.networks.near import MEMORY
from unisono.reductions import ELEMENT_BYTES
from unisono.schedule import Schedule
from unisono.schedule.network import run as run_network
from unisono.simulator import events, messages
from unisono.simulator.actions import Array, Programs, actions_of, joined, matched, room_of
from unisono.simulator.bounds import bandwidth_bound, latency_bound
from unisono.simulator.classes import Classes, RouteTable, route_costs, routes_of
from unisono.simulator.costs import LAST, Costs, Cut, costs_of, cut
from unisono.simulator.critical_path import critical_path
from unisono.simulator.folding import CompiledRanks, compile_ranks
from unisono.simulator.link_sharing import meet
from unisono.simulator.prediction import LinkLoad, Prediction
from unisono.simulator.timeline import timeline_of

MOST_BYTES = 2**60  # of a vector
MOST_SEGMENTS = 4096  # of a chunk; the time of a simulation grows with their square
MOST_LINKS = 10  # that a prediction lists
MOST_RECORDED = 20_000_000  # instructions of which all times are kept, for the critical path
MOST_RECORDED_OF_SIMILAR = 500_000  # where the path is that of average ranks anyway
MOST_ACTIONS = 20_000_000  # instructions of all units; one takes some 200 bytes
MOST_SHARING = 5_000_000  # instructions of all units up to which messages share links, unless the caller decides
IDEAL = "ideal"


def simulate(
    schedule: Schedule, nbytes: int, network: Network | str | Path, *, codec: Codec | str | None = None,
    dtype: str = "float32", fold: bool = True, segments: int | None = None, depth: int | None = DEPTH,
    contention: bool | None = None, progress: events.Progress | None = None, timeline: bool = False,
) -> Prediction:  # fmt: skip
    """Predict the time of ``schedule`` for a vector of ``nbytes`` on ``network``.

    ``nbytes`` counts the whole vector: for all_gather and reduce_scatter, the gathered one. ``network`` is a record,
    the name of a preset or the path of a network file. ``codec`` encodes the messages (default: none). ``dtype``
    (default: float32) is the type of the elements. ``fold`` (default: True) lets ranks that behave identically be
    simulated once. ``segments`` is the number of segments of each chunk; by default, as many as the engine makes or
    the network says, and one on the ideal network. Of the protocols of the network, the one is used that delivers a
    chunk first. ``depth`` is the number of messages that a channel holds; None stands for libraries
    whose channels hold any number. ``contention`` says whether messages on the same link share its bandwidth; by
    default, they do where messages of several ranks use the same link, unless that is too large to simulate
    (``Prediction.contention_ignored``). ``progress`` is called with the number of instructions simulated so far, now
    and then. ``timeline`` (default: False) keeps the time of every message and step; every rank is then simulated.
    UsageError is raised if the arguments make no sense, and ScheduleError if the programs are wrong.
    """
    network = checked(schedule, nbytes, network, segments).for_messages(schedule.size, nbytes / schedule.chunks)
    codec = codec_of(codec, dtype)
    collective = collectives.find(schedule.collective)
    if not fold or timeline:
        programs = rank_by_rank(schedule, network, codec)
        sizes = cut_for(schedule, collective, programs.most_sent, nbytes, network, codec, dtype, segments)
        return predict(
            schedule, collective, programs, sizes, nbytes, network, None, depth, contention, progress, timeline
        )
    compiled = compile_ranks(schedule, shared_memory_ranks(network), rounds=codec is not None)
    if compiled is None:
        raise _standstill(schedule)
    sizes = cut_for(schedule, collective, compiled.most_sent, nbytes, network, codec, dtype, segments)
    units = folded(schedule, network, compiled, sizes.passes, contention)
    predicted = predict(
        schedule, collective, units.programs, sizes, nbytes, network, units, depth, units.contention, progress
    )
    if not units.similar:
        return predicted
    limits = [
        events.run(units.programs, costs_of(units.programs, network, sizes, extreme), room, record=False)
        for room in [None if depth is None else room_of(units.programs, depth)]
        for extreme in (units.costs(np.minimum), units.costs(np.maximum))
    ]
    low, high = (0.0 if each is None else float(each.unit_s.max(initial=0.0)) for each in limits)
    call_s = entry_s(collective, network, nbytes, sizes)
    return replace(predicted, range_s=(low + call_s, high + call_s))


def predict(
    schedule: Schedule, collective: Collective, programs: Programs, sizes: Cut, nbytes: int, network: Network,
    units: Units | None = None, depth: int | None = DEPTH, contention: bool | None = False,
    progress: events.Progress | None = None, timeline: bool = False,
) -> Prediction:  # fmt: skip
    """Simulate programs of ranks, or of classes of ranks (``units``), and collect the results."""
    costs, outcome, contention, meets = execute(
        schedule, programs, sizes, network, units, depth, contention, progress
    )
    call_s = entry_s(collective, network, nbytes, sizes)
    time_s = float(outcome.unit_s.max(initial=0.0)) + call_s
    times = outcome.times
    path, levels = None, ()
    if times is not None:
        path = critical_path(programs, costs, times, contention)
        path = replace(path, overhead_s=path.overhead_s + call_s)
        ends = np.zeros(int(times.level.max(initial=0)) + 1)
        np.maximum.at(ends, times.level, times.end.max(axis=0))
        levels = tuple(np.maximum.accumulate(ends)[1:].tolist())
    unit_of = slice(None) if units is None else units.classes.of_rank
    tails_s = 0.0 if units is None else units.missing_s(costs)
    messages_sent = int(programs.counts[programs.unit[programs.receives]].sum()) * costs.passes
    return Prediction(
        algorithm=schedule.label, network=network.name, size=schedule.size, nbytes=nbytes, time_s=time_s,
        rank_s=(outcome.unit_s + call_s)[unit_of] - tails_s, level_s=levels, idle_s=outcome.idle_s[unit_of],
        links=_busiest(_link_bytes(programs, costs, network, sizes, units), network, schedule.size, time_s),
        critical_path=path,
        latency_bound_s=latency_bound(collective, network, schedule.size),
        bandwidth_bound_s=bandwidth_bound(collective, network, schedule.size, nbytes),
        messages=messages_sent, passes=costs.passes,
        method=messages.RANK_BY_RANK() if units is None else units.method,
        contention=contention, contention_ignored=meets and not contention,
        timeline=timeline_of(schedule, programs, costs, times, network, contention, call_s)
        if timeline and times is not None
        else None,
    )  # fmt: skip


def execute(
    schedule: Schedule, programs: Programs, sizes: Cut, network: Network, units: Units | None = None,
    depth: int | None = DEPTH, contention: bool | None = False, progress: events.Progress | None = None,
    record: bool = True,
) -> tuple[Costs, events.Outcome, bool, bool]:  # fmt: skip
    """Simulate programs.

    Return the costs of their actions, the times, whether messages shared links, and whether they meet on links.
    """
    costs = costs_of(programs, network, sizes, None if units is None or not units.similar else units.costs())
    meets = shares_links(programs, costs, network) if units is None else units.meets
    contention = meets if contention is None else contention
    bandwidth = network.links(schedule.size).bandwidth if contention else None
    if units is not None:
        costs, bandwidth = units.on_links(costs, network)
    most_recorded = MOST_RECORDED if units is None or not units.similar else MOST_RECORDED_OF_SIMILAR
    outcome = events.run(
        programs, costs, None if depth is None else room_of(programs, depth), bandwidth,
        record=record and costs.passes * len(programs.rows) <= most_recorded, progress=progress,
    )  # fmt: skip
    if outcome is None:
        raise _standstill(schedule)
    return costs, outcome, contention, meets


def units_of(schedule: Schedule, network: Network, codec: Codec | None, contention: bool | None) -> Units:
    """Compile all ranks and fold those that behave identically in any number of passes."""
    compiled = compile_ranks(schedule, shared_memory_ranks(network), rounds=codec is not None)
    if compiled is None:
        raise _standstill(schedule)
    return folded(schedule, network, compiled, 2, contention)


def folded(
    schedule: Schedule, network: Network, compiled: CompiledRanks, passes: int, contention: bool | None
) -> Units:
    """Fold the ranks that behave identically; raise ScheduleError if messages do not match.

    By default, messages share links where they meet on one, unless that would be too large to simulate.
    """
    routes = routes_of(schedule.size, compiled.ports, network)
    costs = route_costs(routes)
    meets = compiled.shares_links(routes, network)
    classes: Classes | None = None
    similar = False
    if contention or (contention is None and meets):
        most = MOST_ACTIONS if contention else MOST_SHARING
        classes = compiled.classes(costs, most, passes, compiled.crossings(routes, network))
        contention = contention or classes is not None
    if not contention:
        classes = compiled.classes(costs, MOST_ACTIONS, passes)
        similar = classes is None
        if similar:
            classes = compiled.classes(compiled.near_or_far(network), MOST_ACTIONS, passes)
    if classes is None:
        raise UsageError(
            messages.TOO_LARGE(
                algorithm=schedule.label, size=schedule.size, events=compiled.actions, passes=1, most=MOST_ACTIONS
            )
        )
    programs = compiled.programs(classes)
    if programs is None:
        raise _standstill(schedule)
    return Units(programs, classes, compiled, routes, meets, bool(contention), similar)


class Units(NamedTuple):
    """The units of a simulation: classes of ranks."""

    programs: Programs
    classes: Classes
    compiled: CompiledRanks
    routes: RouteTable
    meets: bool  # messages of several ranks use the same link
    contention: bool  # and share it
    similar: bool = False  # ranks of a class differ in the costs of their routes

    @property
    def is_folded(self) -> bool:
        """Whether a unit stands for several ranks."""
        return len(self.classes) < self.programs.size

    @property
    def method(self) -> str:
        """How the ranks are simulated, in words."""
        if not self.is_folded:
            return messages.RANK_BY_RANK()
        count = len(self.classes)
        if self.similar:
            return messages.FOLDED_SIMILAR(classes=count)
        return messages.FOLDED_INTO_ONE() if count == 1 else messages.FOLDED(classes=count)

    def on_links(self, costs: Costs, network: Network) -> tuple[Costs, Array | None]:
        """Return the costs and the bandwidth of the links that messages share, or of classes of links."""
        if not self.contention:
            return costs, None
        bandwidth, links = network.links(self.programs.size).bandwidth, self.classes.links
        if links is None or not self.is_folded:
            return costs, bandwidth
        return links.fold(costs, self.programs), bandwidth[links.representative]

    def missing_s(self, costs: Costs) -> Array:
        """Return by how much each rank finishes before its unit: no message follows the actions that it lacks."""
        missing = self.compiled.missing(self.classes)
        if not missing.any():
            return np.zeros(len(missing))
        total = np.concatenate([[0.0], np.cumsum(costs.busy_s[LAST])])
        end = self.programs.first[1:][self.classes.of_rank]
        found: Array = total[end] - total[end - missing]
        return found

    def costs(self, extreme: np.ufunc | None = None) -> tuple[Array, Array]:
        """Return latency and seconds per byte of the message of each receive: an extreme, or the mean, of a class."""
        return self.compiled.class_costs(self.programs, self.classes, self.routes, extreme)


def shares_links(programs: Programs, costs: Costs, network: Network) -> bool:
    """Return whether messages meet on a link, other than one that belongs to their sender or receiver.

    Those of the same sender, or receiver, take turns at its port already, if it has one port.
    """
    if network.endpoint.synchronous or not len(costs.routes):
        return False
    received = programs.receives
    action = np.empty(len(costs.routes), np.int64)  # one that receives over each route
    action[costs.pair[received]] = received
    return meet(costs.routes, programs.rows["source"][action].astype(np.int64), programs.rank[action], network)


def entry_s(collective: Collective, network: Network, nbytes: float, sizes: Cut) -> float:
    """Return the time that a rank spends before its first message."""
    end = network.endpoint
    copied = nbytes if end.copies_input and collective.reduces else 0
    beyond = end.beyond_cache if end.cache_bytes is not None and sizes.working_set > end.cache_bytes else 1.0
    return end.call_overhead_s + copied * end.copy_s_per_byte * beyond


def rank_by_rank(schedule: Schedule, network: Network, codec: Codec | None = None) -> Programs:
    """Compile the program of every rank; raise ScheduleError if their messages do not match."""
    size = schedule.size
    per_host = shared_memory_ranks(network)
    hosts = tuple(tuple(range(start, min(start + per_host, size))) for start in range(0, size, per_host))
    routes = Routes(schedule, hosts)
    limits = Limits(0, 0)  # the simulator computes its own from the actions
    made = [actions_of(lower_steps(routes, rank, limits, None, rounds=codec is not None)) for rank in range(size)]
    programs = matched(joined(made, size, np.arange(size), np.ones(size, dtype=np.int64)), per_host)
    if programs is None:
        raise _standstill(schedule)
    return programs


def shared_memory_ranks(network: Network) -> int:
    """Return the number of ranks that share the memory of a host, and can read what one of them writes for all."""
    return network.ranks_per_host if network.near.kind == MEMORY else 1


def cut_for(
    schedule: Schedule, collective: Collective, most_sent: int, nbytes: int, network: Network,
    codec: Codec | None, dtype: str, segments: int | None,
) -> Cut:  # fmt: skip
    """Return the segments of a call, as the engine cuts it unless ``segments`` are given.

    ``most_sent`` is the number of chunks that the busiest rank sends.
    """
    if not collective.carries_data:
        nbytes = 0
    chunks, several_hosts = schedule.chunks, network.hosts_of(schedule.size) > 1
    tracks = TRACKS_BETWEEN_HOSTS if several_hosts else 1
    working_set = float(nbytes) * (1 if collective.single_array else 2)
    if segments is not None or network.name == IDEAL:
        passes = segments or 1
        return cut(nbytes, chunks, nbytes / chunks / passes, passes, tracks, codec, working_set)
    if network.endpoint.segment_bytes is not None:
        passes = max(1, math.ceil(nbytes / chunks / network.endpoint.segment_bytes))
        return cut(nbytes, chunks, nbytes / chunks / passes, passes, tracks, codec, working_set)
    element = ELEMENT_BYTES[dtype]
    longest = -(-nbytes // (chunks * element)) * element
    block = None if codec is None else CodecBlock(BLOCK * element, codec.wire_bytes(BLOCK))
    # Ranks that send many chunks, as tens of thousands of ranks in a ring do, connect with a larger staging area.
    staging = max(STAGING_BYTES, 2 * most_sent * (min(longest, SHORTEST_FAR_SEGMENT) + PADDING + LINE))
    segment, passes = cut_into_segments(
        schedule, collective, most_sent, longest, staging, several_hosts, codec_block=block,
        tracks=tracks,
    )  # fmt: skip
    return cut(nbytes, chunks, segment, passes, tracks, codec, working_set)


def _link_bytes(programs: Programs, costs: Costs, network: Network, sizes: Cut, units: Units | None) -> Array:
    """Return the bytes that each link carries."""
    links = network.links(programs.size)
    if units is not None:
        of_chunk = sizes.wire_bytes[0] * (costs.passes - 1) + sizes.wire_bytes[1]
        return units.compiled.link_bytes(units.routes, len(links), of_chunk)
    received = programs.receives
    carried = costs.message_bytes[0, received] * (costs.passes - 1) + costs.message_bytes[1, received]
    of_pair = np.bincount(costs.pair[received], weights=carried, minlength=len(costs.routes))
    total = np.zeros(len(links))
    for column in costs.routes.T:
        used = column >= 0
        np.add.at(total, column[used], of_pair[used])
    return total


def _busiest(total: Array, network: Network, size: int, time_s: float) -> tuple[LinkLoad, ...]:
    """Return the links that are occupied for most of the time."""
    links = network.links(size)
    busy = np.divide(total, links.bandwidth)
    order = np.argsort(-busy, kind="stable")[:MOST_LINKS]
    return tuple(
        LinkLoad(links.name(int(link)), float(total[link]), float(busy[link] / time_s) if time_s else 0.0)
        for link in order
        if total[link] > 0
    )


class _NoMemory:
    def read(self, rank: int, chunks: object) -> None:
        """Return nothing."""

    def write(self, rank: int, op: object, sent: object, payload: object) -> None:
        """Store nothing."""


def _standstill(schedule: Schedule) -> Exception:
    """Return the error that says why ranks wait for ever, or which messages do not match."""
    run_network(schedule, _NoMemory(), DEPTH)  # raises it
    return InternalError(messages.NOT_FINISHED(algorithm=schedule.label, size=schedule.size))


def checked(schedule: Schedule, nbytes: int, network: Network | str | Path, segments: int | None = None) -> Network:
    """Return the network; raise UsageError if the arguments of a simulation make no sense."""
    if not isinstance(schedule, Schedule):
        raise UsageError(messages.NOT_A_SCHEDULE(found=repr(schedule)))
    if isinstance(nbytes, bool) or not isinstance(nbytes, int) or not 0 <= nbytes <= MOST_BYTES:
        raise UsageError(messages.BAD_BYTES(found=repr(nbytes)[:40], most=MOST_BYTES))
    is_number = isinstance(segments, int) and not isinstance(segments, bool)
    if segments is not None and not (is_number and 1 <= segments <= MOST_SEGMENTS):
        raise UsageError(messages.BAD_SEGMENTS(found=repr(segments)[:40], most=MOST_SEGMENTS))
    if isinstance(network, str | Path):
        network = load(network)
    if not isinstance(network, Network):
        raise UsageError(messages.NOT_A_NETWORK(found=repr(network)))
    network.hosts_of(schedule.size)  # raises if there are not enough
    return network


def codec_of(codec: Codec | str | None, dtype: str = "float32") -> Codec | None:
    """Return the codec of the messages; raise UsageError if it does not encode every message."""
    if dtype not in ELEMENT_BYTES:
        raise UsageError(messages.BAD_DTYPE(found=repr(dtype), known=listed(ELEMENT_BYTES)))
    if codec is None:
        return None
    if not isinstance(codec, Codec | str):
        raise UsageError(messages.NOT_A_CODEC(found=repr(codec)[:40]))
    found = find(codec) if isinstance(codec, str) else codec
    if found.is_topk:
        raise UsageError(messages.NO_TOPK(codec=found))
    if dtype != "float32":
        raise UsageError(messages.CODEC_NEEDS_FLOAT32(codec=found, dtype=dtype))
    return found
