"""The cost terms of the built-in algorithms: computed in advance for many topologies, interpolated for others.

``tools/cost_terms.py`` writes them to ``data/``: one file for each collective, one line for each topology ("8" is one
host with eight ranks, "4x2" four hosts with two ranks each), with the candidates and their counts, packed. Reading a
line takes 0.05 ms; following the messages of all candidates would take 20 ms on 8 ranks and seconds on 128.

There are two kinds of terms. Those of the *engine* are for ranks that share the memory of a host, and its link
(critical_path.py). Those of a *network* are for ranks with ports (port_paths.py), on hosts with one NIC, with one for
every two ranks, or with one for each rank: "4x8 half" is four hosts with eight ranks and four NICs each.

Between the stored numbers of ranks the counts are interpolated, and beyond them they are extrapolated by
``a + b p + c log2(p)``, the form that the counts of most algorithms have. Powers of two are interpolated among each
other, and so are the other numbers, because many algorithms need additional steps for those.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import log2
from pathlib import Path as FilePath
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unisono.costs.terms import Part, Path, Terms

DATA = FilePath(__file__).parent / "data"
ENGINE, NETWORK = KINDS = ("engine", "network")
ONE, HALF, ALL = NICS = ("one", "half", "all")  # of a host, where they are not those of its ranks
ONE_HOST = (*range(2, 17), 24, 32, 48, 64, 96, 128)
HOSTS_OF_ONE = (*range(2, 9), 12, 16, 24, 32, 48, 64)
HOSTS, RANKS = (2, 3, 4, 6, 8, 12, 16), (2, 4, 8, 16)
MOST_RANKS = 128  # of a stored topology
MOST_PORTS = 64  # of a stored topology of one host, where ranks have ports
SCALARS = 4  # chunks, most_sent, ranks, link
# The number of paths that terms of each kind have, and of the counts of each path.
PARTS = {ENGINE: 4, NETWORK: 7}
PATH_FIELDS = {ENGINE: Path._fields.index("written") + 1, NETWORK: Path._fields.index("crossing") + 1}

NUMBER = np.dtype("<f4")

TermsByKey = dict[str, Terms]
Array = npt.NDArray[np.float64]
Combine = Callable[[Sequence[Array]], Array]


class Rows(NamedTuple):
    """The terms of all candidates on a topology, a row of counts for each."""

    keys: tuple[str, ...]
    counts: Array


def stored_topologies(kind: str) -> list[tuple[int, int, str]]:
    """Return the stored topologies: the number of hosts, of ranks on each, and the NICs of a host."""
    several = [(hosts, ranks) for ranks in RANKS for hosts in HOSTS if hosts * ranks <= MOST_RANKS]
    of_one = [(hosts, 1, ONE) for hosts in HOSTS_OF_ONE]
    if kind == ENGINE:
        return [(1, size, ONE) for size in ONE_HOST] + of_one + [(*each, ONE) for each in several]
    sharing = [(*each, nics) for each in several for nics in NICS]
    return [(1, size, ONE) for size in ONE_HOST if size <= MOST_PORTS] + of_one + sharing


def line_name(hosts: int, ranks: int, nics: str = ONE) -> str:
    """Return the name of the line of a topology."""
    return str(ranks) if hosts == 1 else f"{hosts}x{ranks}" + f" {nics}" * (nics != ONE)


def nics_of(nics: str, ranks: int) -> int:
    """Return the number of NICs of a host with this number of ranks."""
    return {ONE: 1, HALF: max(1, ranks // 2), ALL: ranks}[nics]


def path_of(collective: str, kind: str) -> FilePath:
    """Return the path of the file of a collective."""
    return DATA / kind / f"{collective}.tsv"


def stored_terms(collective: str, counts: tuple[int, ...], kind: str = ENGINE, nics: str = ONE) -> TermsByKey:
    """Return the terms of all candidates of a collective; ``counts`` are the numbers of ranks on the hosts.

    Hosts with different numbers of ranks count as hosts with the largest number. The keys are those of
    ``comm.candidates.Variant``.
    """
    return _terms(collective, kind, len(counts), max(counts), nics)


@lru_cache(maxsize=256)
def _terms(collective: str, kind: str, hosts: int, ranks: int, nics: str) -> TermsByKey:
    found = _rows(collective, kind, hosts, ranks, nics)
    return {key: terms_of_row(row, kind) for key, row in zip(found.keys, found.counts.tolist(), strict=True)}


def _rows(collective: str, kind: str, hosts: int, ranks: int, nics: str) -> Rows:
    if hosts == 1:
        known = [size for size in ONE_HOST if kind == ENGINE or size <= MOST_PORTS]
        return _between(ranks, known, lambda size: _line(collective, kind, 1, size, ONE))
    if ranks == 1:
        return _between(hosts, HOSTS_OF_ONE, lambda number: _line(collective, kind, number, 1, ONE))

    def on_hosts(each: int) -> Rows:
        known = [number for number in HOSTS if number * each <= MOST_RANKS]
        return _between(hosts, known, lambda number: _line(collective, kind, number, each, nics))

    if ranks in RANKS:
        return on_hosts(ranks)
    above = min(max(1, bisect_left(RANKS, ranks)), len(RANKS) - 1)
    few, many = RANKS[above - 1], RANKS[above]
    return _mixed([on_hosts(few), on_hosts(many)], _line_through(few, many, ranks))


def _between(number: int, known: Sequence[int], line: Callable[[int], Rows]) -> Rows:
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
    last = _last_doubled(alike, known) or _last_doubled(known, known)
    return _mixed([line(last // 4), line(last // 2), line(last)], _beyond(number / last))


def _last_doubled(numbers: Sequence[int], known: Sequence[int]) -> int:
    """Return the largest of some numbers of which the half and the quarter are known; 0 if there is none."""
    return max((each for each in numbers if each % 4 == 0 and {each // 2, each // 4} <= set(known)), default=0)


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0


def _line_through(few: int, many: int, number: int) -> Combine:
    """Return the function that takes the counts at two numbers to those at another."""
    share = (number - few) / (many - few)
    return lambda counts: counts[0] + share * (counts[1] - counts[0])


def _beyond(times: float) -> Combine:
    """Return the function that takes the counts at p/4, p/2 and p to those at ``times * p``."""
    doublings = log2(times)

    def extrapolate(counts: Sequence[Array]) -> Array:
        less, middle, more = counts
        # From p/2 to p, the linear part grows twice as much as from p/4 to p/2, and the logarithmic part as much.
        linear = np.maximum(0.0, (more - middle) - (middle - less))
        found: Array = more + linear * (2 * (times - 1)) + (more - middle - 2 * linear) * doublings
        return found

    return extrapolate


def _mixed(points: Sequence[Rows], combine: Combine) -> Rows:
    """Return the terms of the candidates that all points have.

    Additions and multiplications of single numbers are the same on every machine; sums of arrays need not be.
    """
    keys = points[-1].keys
    if any(point.keys != keys for point in points):
        keys = tuple(key for key in keys if all(key in point.keys for point in points))
    counts = [
        point.counts if point.keys == keys else point.counts[[point.keys.index(key) for key in keys]]
        for point in points
    ]
    return Rows(keys, np.maximum(0.0, combine(counts)))


def _line(collective: str, kind: str, hosts: int, ranks: int, nics: str) -> Rows:
    name = f"\n{line_name(hosts, ranks, nics)}\t"
    text = _file(collective, kind)
    start = text.index(name) + len(name)
    return unpacked(text[start : text.index("\n", start)], kind)


def packed(record: Mapping[str, Sequence[float]]) -> str:
    """Return the text of a line for the rows of some candidates."""
    numbers = np.array(list(record.values()), dtype=NUMBER)
    return "|".join(record) + "\t" + b64encode(zlib.compress(numbers.tobytes(), 9)).decode("ascii")


def unpacked(text: str, kind: str) -> Rows:
    """Return the rows of a line."""
    keys, _, data = text.partition("\t")
    numbers = np.frombuffer(zlib.decompress(b64decode(data)), dtype=NUMBER).astype(np.float64)
    return Rows(tuple(keys.split("|")), numbers.reshape(-1, _width(kind)))


@lru_cache(maxsize=16)
def _file(collective: str, kind: str) -> str:
    return "\n" + path_of(collective, kind).read_text("ascii")


def _width(kind: str) -> int:
    return SCALARS + len(Path._fields) + 2 * PARTS[kind] * PATH_FIELDS[kind]


def row_of(terms: Terms, kind: str) -> list[float]:
    """Return the counts of terms as a line of a file has them."""
    width = PATH_FIELDS[kind]
    counts = [terms.chunks, terms.most_sent, terms.ranks, terms.link, *terms.work]
    counts += [count for part in terms.parts for count in part.first[:width]]
    counts += [count for part in terms.parts for count in part.further[:width]]
    rows: list[float] = np.array(counts, dtype=NUMBER).tolist()
    return rows


def terms_of_row(row: list[float], kind: str) -> Terms:
    """Return the terms of a row; paths that are equal to others, as there are many, are left out."""
    width, start = PATH_FIELDS[kind], SCALARS + len(Path._fields)
    further = PARTS[kind] * width
    chunks, most_sent, ranks = (max(1, round(count)) for count in row[:3])
    parts = dict.fromkeys(
        Part(Path(*row[at : at + width]), Path(*row[at + further : at + further + width]))
        for at in range(start, start + further, width)
    )
    return Terms(chunks, most_sent, tuple(parts), Path(*row[SCALARS:start]), ranks, row[3])
