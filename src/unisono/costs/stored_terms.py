"""The cost terms of the built-in algorithms: computed in advance for many topologies, interpolated for others.

``tools/cost_terms.py`` writes them to ``data/``: one file for each collective, one line for each topology ("8" is one
host with eight ranks, "4x2" four hosts with two ranks each). Reading a line takes a fraction of a millisecond;
following the messages of all candidates (critical_path.py) would take 20 ms on 8 ranks and seconds on 128.

Between the stored numbers of ranks the counts are interpolated, and beyond them they are extrapolated by
``a + b p + c log2(p)``, the form that the counts of most algorithms have. Powers of two are interpolated among each
other, and so are the other numbers, because many algorithms need additional steps for those.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import log2
from pathlib import Path as FilePath

from unisono.costs.terms import Part, Path, Terms

DATA = FilePath(__file__).parent / "data"
ONE_HOST = (*range(2, 17), 24, 32, 48, 64, 96, 128)
HOSTS_OF_ONE = (*range(2, 9), 12, 16, 24, 32, 48, 64)
HOSTS, RANKS = (2, 3, 4, 6, 8, 12, 16), (2, 4, 8, 16)
MOST_RANKS = 128  # of a stored topology

TermsByKey = dict[str, Terms]
Combine = Callable[[Sequence[float]], float]


def stored_topologies() -> list[tuple[int, int]]:
    """Return the stored topologies: the number of hosts, and of ranks on each."""
    several = [(hosts, ranks) for ranks in RANKS for hosts in HOSTS if hosts * ranks <= MOST_RANKS]
    return [(1, size) for size in ONE_HOST] + [(hosts, 1) for hosts in HOSTS_OF_ONE] + several


def line_name(hosts: int, ranks: int) -> str:
    """Return the name of the line of a topology."""
    return str(ranks) if hosts == 1 else f"{hosts}x{ranks}"


def stored_terms(collective: str, counts: tuple[int, ...]) -> TermsByKey:
    """Return the terms of all candidates of a collective; ``counts`` are the numbers of ranks on the hosts.

    Hosts with different numbers of ranks count as hosts with the largest number. The keys are those of
    ``comm.candidates.Variant``.
    """
    return _terms(collective, len(counts), max(counts))


@lru_cache(maxsize=256)
def _terms(collective: str, hosts: int, ranks: int) -> TermsByKey:
    if hosts == 1:
        return _between(ranks, ONE_HOST, lambda size: _line(collective, 1, size))
    if ranks == 1:
        return _between(hosts, HOSTS_OF_ONE, lambda number: _line(collective, number, 1))

    def on_hosts(each: int) -> TermsByKey:
        known = [number for number in HOSTS if number * each <= MOST_RANKS]
        return _between(hosts, known, lambda number: _line(collective, number, each))

    if ranks in RANKS:
        return on_hosts(ranks)
    above = min(max(1, bisect_left(RANKS, ranks)), len(RANKS) - 1)
    few, many = RANKS[above - 1], RANKS[above]
    return _mixed([on_hosts(few), on_hosts(many)], _line_through(few, many, ranks))


def _between(number: int, known: Sequence[int], line: Callable[[int], TermsByKey]) -> TermsByKey:
    """Return the terms for a number of ranks or hosts from those of the known numbers."""
    if number in known:
        return line(number)
    alike = [each for each in known if _is_power(each) == _is_power(number)]
    above = bisect_left(alike, number)
    if above == 0:
        return line(alike[0])
    if above < len(alike):
        few, many = alike[above - 1], alike[above]
        return _mixed([line(few), line(many)], _line_through(few, many, number))
    # The last three double from one to the next.
    return _mixed([line(each) for each in alike[-3:]], _beyond(number / alike[-1]))


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0


def _line_through(few: int, many: int, number: int) -> Combine:
    """Return the function that takes the counts at two numbers to those at another."""
    share = (number - few) / (many - few)
    return lambda counts: counts[0] + share * (counts[1] - counts[0])


def _beyond(times: float) -> Combine:
    """Return the function that takes the counts at p/4, p/2 and p to those at ``times * p``."""
    doublings = log2(times)

    def extrapolate(counts: Sequence[float]) -> float:
        less, middle, more = counts
        # From p/2 to p, the linear part grows twice as much as from p/4 to p/2, and the logarithmic part as much.
        linear = max(0.0, (more - middle) - (middle - less))
        return more + linear * 2 * (times - 1) + (more - middle - 2 * linear) * doublings

    return extrapolate


def _mixed(points: Sequence[TermsByKey], combine: Combine) -> TermsByKey:
    keys = [key for key in points[-1] if all(key in terms for terms in points)]
    return {key: _mixed_terms([terms[key] for terms in points], combine) for key in keys}


def _mixed_terms(terms: Sequence[Terms], combine: Combine) -> Terms:
    def mixed(counts: Sequence[float]) -> float:
        return max(0.0, combine(counts))

    def path(paths: Sequence[Path]) -> Path:
        return Path(*[mixed(counts) if any(counts) else 0.0 for counts in zip(*paths, strict=True)])

    parts = tuple(
        Part(path([part.first for part in alike]), path([part.further for part in alike]))
        for alike in zip(*(each.parts for each in terms), strict=True)
    )
    counts = zip(*((each.chunks, each.most_sent, each.ranks) for each in terms), strict=True)
    chunks, most_sent, ranks = (max(1, round(mixed(values))) for values in counts)
    work, link = path([each.work for each in terms]), mixed([each.link for each in terms])
    return Terms(chunks, most_sent, parts, work, ranks, link)


def _line(collective: str, hosts: int, ranks: int) -> TermsByKey:
    name = f"\n{line_name(hosts, ranks)}\t"
    text = _file(collective)
    start = text.index(name) + len(name)
    record = json.loads(text[start : text.index("\n", start)])
    return {key: Terms.from_data(data) for key, data in record.items()}


@lru_cache(maxsize=16)
def _file(collective: str) -> str:
    return "\n" + (DATA / f"{collective}.tsv").read_text("ascii")
