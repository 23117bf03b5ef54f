"""The compiled programs of ranks as arrays, for the event loop.

*Action*: an instruction of the compiler; one that adds several messages is several actions, one for each message. An
action waits for the message that it receives, if any, keeps the processor busy, and then sends a message, if any, to
one rank or to all ranks of its host.
*Unit*: a rank, or one rank that stands for a class of ranks that behave identically.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from unisono.compiler.instructions import KINDS, Lowered

Array = npt.NDArray[Any]

ACTION: Final = np.dtype(
    [
        ("kind", "u1"),  # index into compiler.instructions.KINDS
        ("to_all", "?"),  # sends to all other ranks of the host
        ("source_all", "?"),  # receives what was sent to all
        ("to", "i4"),  # the rank that it sends to; its own rank if to all, -1 if it sends nothing
        ("source", "i4"),  # the rank that it receives from; -1 if it receives nothing
        ("chunks", "i4"),  # of its messages, or that it copies; 0 in a barrier
        ("step", "i4"),  # of the algorithm, counted from 0
        ("sent_step", "i4"),  # the step of its send
    ]
)
SEND_KIND, RECEIVE_KIND, REDUCE_KIND, COPY_KIND, COMBINE_KIND = range(len(KINDS))
NOTHING: Final = -1
_CODES = {kind: code for code, kind in enumerate(KINDS)}


def actions_of(lowered: Lowered) -> Array:
    """Return the instructions of one rank as an array of ACTION."""
    rows = []
    for made in lowered.instructions:
        kind, chunks, step = _CODES[made.kind], len(made.operands), made.step
        to, to_all = (NOTHING, False) if made.to is None else made.to
        sent_step = step if made.sent_step is None else made.sent_step
        if len(made.sources) == 1:
            peer, source_all = made.sources[0]
            rows.append((kind, to_all, source_all, to, peer, chunks, step, sent_step))
        elif not made.sources:
            rows.append((kind, to_all, False, to, NOTHING, chunks, step, sent_step))
        else:
            steps = (step, *made.later_steps)
            *before, last = zip(made.sources, steps, strict=True)
            rows += [(kind, False, each.to_all, NOTHING, each.peer, chunks, at, at) for each, at in before]
            sent_step = last[1] if made.sent_step is None else made.sent_step
            rows.append((kind, to_all, last[0].to_all, to, last[0].peer, chunks, last[1], sent_step))
    return np.array(rows, dtype=ACTION)


@dataclass(frozen=True)
class Programs:
    """The actions of all units, one after another, with each receive matched to the action that sends its message."""

    size: int  # ranks in all
    ranks: Array  # int64: the rank that each unit is, or stands for
    counts: Array  # int64: the number of ranks that each unit stands for
    first: Array  # int64, one more than units: the first action of each unit
    rows: Array  # of ACTION
    sender: Array  # int64, of actions: the action that sends the message it receives; -1 if it receives nothing

    @property
    def units(self) -> int:
        """The number of units."""
        return len(self.ranks)

    @property
    def unit(self) -> Array:
        """The unit of each action."""
        return np.repeat(np.arange(self.units), np.diff(self.first))

    @property
    def rank(self) -> Array:
        """The rank of each action."""
        return np.repeat(self.ranks, np.diff(self.first))

    @property
    def receives(self) -> Array:
        """The indices of the actions that receive a message."""
        return np.flatnonzero(self.rows["source"] >= 0)

    @property
    def most_sent(self) -> int:
        """The number of chunks that the busiest unit sends; a message to all counts once."""
        sent = np.where(self.rows["to"] >= 0, self.rows["chunks"], 0)
        total = np.concatenate([[0], np.cumsum(sent, dtype=np.int64)])
        return int(max(1, (total[self.first[1:]] - total[self.first[:-1]]).max(initial=0)))


def joined(programs: Sequence[Array], size: int, ranks: Array, counts: Array) -> Programs:
    """Put the actions of units one after another; the senders of messages are not known yet."""
    rows = np.concatenate(programs) if programs else np.empty(0, ACTION)
    lengths = np.array([len(program) for program in programs], dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(lengths)])
    return Programs(size, ranks, counts, first, rows, np.full(len(rows), NOTHING, dtype=np.int64))


def matched(programs: Programs, ranks_per_host: int) -> Programs | None:
    """Match each receive with the action that sends its message, where every unit is a rank; None if they do not fit.

    Message k of a channel belongs to the k-th action that reads the channel.
    """
    size, rows, rank = programs.size, programs.rows, programs.rank
    sending, reader = _expanded(programs, ranks_per_host)
    receiving = programs.receives
    sent = (rank[sending] * size + reader) * 2 + rows["to_all"][sending]
    taken = (rows["source"][receiving].astype(np.int64) * size + rank[receiving]) * 2 + rows["source_all"][receiving]
    by_sent, by_taken = np.lexsort((sending, sent)), np.argsort(taken, kind="stable")
    if len(sent) != len(taken) or (sent[by_sent] != taken[by_taken]).any():
        return None
    sender = np.full(len(rows), NOTHING, dtype=np.int64)
    sender[receiving[by_taken]] = sending[by_sent]
    if (rows["chunks"][sender[receiving]] != rows["chunks"][receiving]).any():
        return None
    return replace(programs, sender=sender)


def _expanded(programs: Programs, ranks_per_host: int) -> tuple[Array, Array]:
    """Return the sending action and the reader of every message; one to all has several readers."""
    rows, rank = programs.rows, programs.rank
    single = np.flatnonzero((rows["to"] >= 0) & ~rows["to_all"])
    to_all = np.flatnonzero((rows["to"] >= 0) & rows["to_all"])
    host = np.repeat(rank[to_all] // ranks_per_host * ranks_per_host, ranks_per_host)
    peers = host + np.tile(np.arange(ranks_per_host), len(to_all))
    actions = np.repeat(to_all, ranks_per_host)
    kept = (peers < programs.size) & (peers != rank[actions])
    readers = np.concatenate([rows["to"][single].astype(np.int64), peers[kept]])
    return np.concatenate([single, actions[kept]]), readers


def room_of(programs: Programs, depth: int) -> tuple[Array, Array]:
    """Return for each receive the earlier one that must be over before its message is sent, and the passes between.

    A channel holds ``depth`` messages: the sender of a message waits until the message ``depth`` before it in the
    same channel has been read, which may have been in an earlier pass. Both arrays have an entry for each action.
    """
    receiving = programs.receives
    rows = programs.rows[receiving]
    channel = (programs.unit[receiving] * programs.size + rows["source"]) * 2 + rows["source_all"]
    order = np.argsort(channel, kind="stable")
    _, starts, lengths = np.unique(channel[order], return_index=True, return_counts=True)
    start, length = np.repeat(starts, lengths), np.repeat(lengths, lengths)
    behind = np.arange(len(order)) - start - depth
    room = np.full(len(programs.rows), NOTHING, dtype=np.int64)
    passes = np.zeros(len(programs.rows), dtype=np.int64)
    room[receiving[order]] = receiving[order][start + behind % length]
    passes[receiving[order]] = -(behind // length)
    return room, passes
