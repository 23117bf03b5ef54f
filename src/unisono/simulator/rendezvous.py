"""The time that long messages wait besides their bytes, where both sides must be ready."""

from __future__ import annotations

import numpy as np

from unisono.networks import Endpoint
from unisono.simulator.actions import Array, Programs


def rendezvous_of(programs: Programs, wire: Array, latency: Array, end: Endpoint) -> Array:
    """Return the extra latency of the message that each action receives; -1 where the message is eager."""
    receives = programs.rows["source"] >= 0
    limit = float("inf") if end.eager_bytes is None else end.eager_bytes
    long = receives & (wire > limit)
    extra = np.broadcast_to(end.rendezvous_s + end.rendezvous_trips * latency, wire.shape).copy()
    if end.jitter_s > 0.0:
        share = np.minimum(wire / end.jitter_bytes, 1.0) if end.jitter_bytes else np.ones_like(wire)
        for which in range(len(wire)):
            extra[which] += end.jitter_s * share[which] * _ages(programs, long[which])
    return np.where(long, extra, -1.0)


def _ages(programs: Programs, long: Array) -> Array:
    """Return, for each long receive, ln k if its step is the k-th one of its unit with a long receive.

    Each rendezvous waits for both sides, so the delay of one rank reaches more ranks with every step. ln k is how the
    expected maximum of k delays grows if they have an exponential distribution.
    """
    received = np.flatnonzero(long)
    ages = np.zeros(len(long))
    ages[received] = np.log(_positions(programs.unit[received], programs.rows["step"][received]))
    return ages


def sending_waits(programs: Programs, transfer: Array, delay: Array | None, rendezvous: Array) -> Array:
    """Return the time for which each action waits, before it sends, for the messages of an earlier step to be gone.

    A library whose sends block returns from a send when the message has left its buffer. A rank that receives between
    two sends waits at least as long for what it receives, so only sends between two receives count. ``delay`` is what
    passes before the bytes of an eager message move, None if eager messages are buffered; ``rendezvous`` is the same
    for a long one, -1 if it is none.
    """
    received = np.flatnonzero(programs.rows["source"] >= 0)
    waits = np.zeros_like(transfer)
    if not len(received):
        return waits
    sent = programs.sender[received]
    # Messages between the same two receives of a unit are a group: every unit and every receive begins one.
    begins = programs.rows["source"] >= 0
    begins[programs.first[:-1][np.diff(programs.first) > 0]] = True
    steps = int(programs.rows["sent_step"].max()) + 1
    key = np.cumsum(begins)[sent] * steps + programs.rows["sent_step"][sent]
    distinct, number = np.unique(key, return_inverse=True)
    follows = np.append(False, np.diff(distinct // steps) == 0)  # on another step of the same group
    first = np.full(len(distinct), len(programs.rows))
    np.minimum.at(first, number, sent)  # the first action of each step that sends
    for which in range(len(waits)):
        long = rendezvous[which][received] >= 0.0
        waited = long if delay is None else np.ones_like(long)
        before_s = np.where(long, rendezvous[which][received], 0.0 if delay is None else delay[received])
        start, moving = np.zeros(len(distinct)), np.zeros(len(distinct))
        np.maximum.at(start, number, before_s)
        # The messages of a step share the port of their sender.
        np.add.at(moving, number, np.where(waited, transfer[which][received], 0.0))
        took = np.append(0.0, (start + moving)[:-1])
        waits[which][first[follows]] = took[follows]
    return waits


def _positions(group: Array, step: Array) -> Array:
    """Return the position of each step among the distinct steps of its group, counted from 1."""
    if not len(group):
        return np.zeros(0, dtype=np.int64)
    key = group.astype(np.int64) * (int(step.max()) + 1) + step
    distinct, inverse = np.unique(key, return_inverse=True)
    owner = distinct // (int(step.max()) + 1)
    first = np.searchsorted(owner, owner)
    return (np.arange(len(distinct)) - first + 1)[inverse]
