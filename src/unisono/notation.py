"""The notation for data: chunks are called a, b, c, ...; a2 is the part of rank 2 of chunk a; a0+a1 is a sum.

``drawing/page/common/expressions.mjs`` writes the same in JavaScript; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

MOST_RANGES = 3  # in a short form
MOST_ADDENDS = 8  # in an abbreviated sum


def chunk_name(chunk: int) -> str:
    """Return the name of a chunk: a, b, ..., z, aa, ab, ..."""
    name, rest = "", chunk + 1
    while rest:
        rest, letter = divmod(rest - 1, 26)
        name = chr(ord("a") + letter) + name
    return name


def part_name(chunk: int, rank: int) -> str:
    """Return the name of the part of a chunk that comes from a rank: a0."""
    return f"{chunk_name(chunk)}{rank}"


def expression(chunk: int, ranks: Sequence[int], again: Sequence[int] = ()) -> str:
    """Return the sum of a chunk over ranks: a0+a1; ``again`` are the ranks that are counted twice: a0+2·a1."""
    return "+".join(("2·" if rank in again else "") + part_name(chunk, rank) for rank in ranks)


def abbreviated(chunk: int, ranks: Sequence[int]) -> str:
    """Return the sum without the middle of a long one: a0+a1+…+a15."""
    if len(ranks) <= MOST_ADDENDS:
        return expression(chunk, ranks)
    return f"{expression(chunk, ranks[:2])}+…+{part_name(chunk, ranks[-1])}"


def short_expressions(chunk: int, ranks: Sequence[int], size: int, again: Sequence[int] = ()) -> list[str]:
    """Return the short forms, the longest first.

    Σa0–2,5 names the ranks, Σa is the sum of all ``size`` ranks, and Σa 4/8 the sum of four of eight.
    """
    name = chunk_name(chunk)
    if len(ranks) == 1:
        return [expression(chunk, ranks, again)]
    if again:
        return [f"2·{name}{again[0]}+…"]
    if len(ranks) == size:
        return [f"Σ{name}"]
    named, some = _ranges(ranks), f"Σ{name} {len(ranks)}/{size}"
    return [f"Σ{name}{','.join(named)}", some] if len(named) <= MOST_RANGES else [some]


def _ranges(numbers: Sequence[int]) -> list[str]:
    """Return ascending numbers in the shortest form: 0–3 and 6."""
    found = []
    for _, group in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        first, *others = [number for _, number in group]
        found.append(f"{first}–{others[-1]}" if others else f"{first}")
    return found
