"""Predicts the time of a call from the cost terms of its program and the rates of the network."""

from __future__ import annotations

from functools import lru_cache
from math import ceil
from typing import NamedTuple

from unisono.collectives import Collective
from unisono.compiler.call_layout import count_passes
from unisono.costs.rates import INLINE_BYTES, STARTING_BYTES, Rates
from unisono.costs.terms import Part, Path, Terms

# The part of a rooted call that does not overlap with the calls before and after it.
ALONE = 0.25


class Prediction(NamedTuple):
    """The time of a call, and the parts of which it consists.

    ``latency_s`` is the time of messages apart from their bytes, ``bandwidth_s`` that of bytes that are copied and
    sent, and ``reduction_s`` that of bytes that are combined. ``busy_s`` is the time of processors among them.
    """

    time_s: float
    latency_s: float
    bandwidth_s: float
    reduction_s: float
    busy_s: float


def predict(
    terms: Terms, collective: Collective, nbytes: int, rates: Rates, staging_bytes: int, tracks: int = 1
) -> Prediction:
    """Return the predicted time of a call of ``nbytes`` bytes; ``tracks`` passes are in flight between hosts.

    It is the time of one call among many equal ones, as benchmarks measure it. A rank of a rooted collective begins
    the next call when its part of this one is done, so that inside a host such calls follow each other like the
    passes of one call.
    """
    chunk = nbytes / terms.chunks if collective.carries_data else 0.0
    passes = count_passes(collective, ceil(chunk), terms.most_sent, staging_bytes, tracks > 1, tracks)
    segment = chunk / passes  # bytes of a chunk in one pass
    slow = rates.slowdown_at(nbytes * _arrays(collective, terms.ranks))
    through_python = collective.rooted and collective.blocked
    overlaps = collective.rooted and not through_python and tracks == 1
    longest = max(_part(part, terms, segment, passes, rates, slow, tracks, overlaps) for part in terms.parts)
    if through_python:
        # Messages travel while ranks are in Python, in about half of that time.
        hidden_s = min(longest.time_s, rates.python_call_s / 2)
        longest = longest._replace(
            time_s=longest.time_s - hidden_s, bandwidth_s=max(0.0, longest.bandwidth_s - hidden_s)
        )
    call_s = rates.python_call_s if through_python else rates.call_s
    if tracks > 1 and collective.rooted:  # a rank that only sends waits until other hosts have confirmed that
        call_s += rates.far_s + rates.crossing_s
    return longest._replace(time_s=longest.time_s + call_s, latency_s=longest.latency_s + call_s)


@lru_cache(maxsize=1024)
def _arrays(collective: Collective, size: int) -> float:
    """Return the bytes of the arrays of rank 0, for each byte of the vector."""
    if collective.single_array or not collective.blocked:
        return 1.0
    held = collective.held_before(0, size, size), collective.held_after(0, size, size)
    return sum(map(len, held)) / size


def _part(
    part: Part, terms: Terms, segment: float, passes: int, rates: Rates, slow: float, tracks: int, overlaps: bool
) -> Prediction:  # fmt: skip
    first = _pass(part.first, terms, segment, rates, slow)
    if overlaps:
        further = _pass(part.further, terms, segment, rates, slow)
        return Prediction(*(
            ALONE * one + (passes - ALONE) * another for one, another in zip(first, further, strict=True)
        ))  # fmt: skip
    if passes == 1:
        return first
    further = _pass(part.further, terms, segment, rates, slow)
    if tracks > 1:
        # While one pass waits for the network, others use the processor and the link.
        latency_s = further.latency_s / tracks
        link_s = segment * (
            terms.link * rates.crossing_byte_s / rates.links + part.further.contended * rates.contended_byte_s
        )
        # The passes of a rank share its processor. Ranks do the same work one after another along the path, so the
        # bytes that they send to other hosts are also those that each of them sends.
        sent_far = part.further.sent - part.further.passing
        processor_s = further.busy_s - further.reduction_s + segment * slow * sent_far * rates.far_byte_s
        bandwidth_s = max(link_s, processor_s, (further.bandwidth_s + latency_s) / min(tracks, passes))
        reduction_s = further.reduction_s / tracks
        further = Prediction(bandwidth_s + reduction_s, 0.0, bandwidth_s, reduction_s, further.busy_s)
    more = passes - 1
    return Prediction(*(one + more * another for one, another in zip(first, further, strict=True)))


def _pass(path: Path, terms: Terms, segment: float, rates: Rates, slow: float) -> Prediction:
    turns = rates.rounds_per_core
    near_s = rates.near_s + (turns * rates.turn_s if turns > 1 else 0.0)
    crossing_s = segment * path.crossing * rates.crossing_byte_s
    if path.receives and segment * path.received > INLINE_BYTES * path.receives:
        near_s += rates.fetch_s
    latency_s = path.near * near_s + path.far * rates.far_s
    # A message occupies the link of its host for its bytes, or for its cost if that is longer.
    latency_s += max(0.0, path.crossings * rates.crossing_s - crossing_s) / rates.links
    wire_s = crossing_s / rates.links
    # All that the ranks of a host read passes through its memory.
    passing_s = segment * max(path.passing, terms.work.received) * rates.passing_byte_s
    wire_s += passing_s + segment * path.contended * rates.contended_byte_s
    messages_s, bytes_s, reduced_s = _busy(path, segment, rates, slow)
    if turns > 1 and terms.work.receives:
        # The ranks of a host share its cores: what is not on the path must also be done.
        others = _busy(terms.work, segment, rates, slow)
        cores = terms.ranks / turns
        if sum(others) / cores > messages_s + bytes_s + reduced_s:
            messages_s, bytes_s, reduced_s = (each / cores for each in others)
    latency_s += messages_s
    bandwidth_s, busy_s = wire_s + bytes_s, messages_s + bytes_s + reduced_s
    return Prediction(latency_s + bandwidth_s + reduced_s, latency_s, bandwidth_s, reduced_s, busy_s)


def _busy(path: Path, segment: float, rates: Rates, slow: float) -> tuple[float, float, float]:
    """Return the seconds that processors spend on messages, on copied bytes, and on combined bytes."""
    copied = path.sent * rates.sent_byte_s + path.received * rates.received_byte_s + path.copied * rates.copied_byte_s
    copied += path.read * rates.read_byte_s + path.written * rates.written_byte_s
    starting = min(STARTING_BYTES * path.sends, segment * path.sent)  # the first bytes of each message
    return (
        path.sends * rates.send_s
        + path.receives * rates.receive_s
        + path.locals * rates.local_s
        + starting * rates.starting_byte_s,
        segment * slow * copied,
        segment * slow * path.reduced * rates.reduced_byte_s,
    )
