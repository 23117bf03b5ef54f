"""Cuts a vector into pieces whose lengths differ by at most one element."""

from __future__ import annotations


def partition(length: int, parts: int) -> list[slice]:
    """Cut ``length`` elements into ``parts`` slices; the first ``length % parts`` have one element more.

    >>> [piece.stop - piece.start for piece in partition(11, 4)]
    [3, 3, 3, 2]
    """
    short, longer = divmod(length, parts)
    slices, start = [], 0
    for part in range(parts):
        stop = start + short + (part < longer)
        slices.append(slice(start, stop))
        start = stop
    return slices
