"""Finds the critical path of a call: the chain of ops and waits that determined its end.

The path is followed backwards from the rank that finished last. The predecessor of an op is the previous op of the
same rank or, if the op waited, the op of another rank that it waited for: the one that sent the message, or that made
room. Work that is not on the path could have taken longer without delaying the call.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

from unisono.tracing.matching import Message, messages_of
from unisono.tracing.run import Call, Op, RankCall, Wait

What = Literal["begin", "work", "transit", "room", "entry"]


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """A part of the path.

    begin: from the entry into the call to the first op. work: an op. transit: a message has arrived, and its receiver
    has not noticed it yet. room: the reader has made room, and the writer has not noticed it yet. entry: a rank has
    entered the call, and another one that waits for it has not noticed it yet.
    """

    rank: int
    what: What
    begin_ns: int
    end_ns: int
    op: Op | None = None

    @property
    def ns(self) -> int:
        """Its length."""
        return self.end_ns - self.begin_ns


def critical_path(call: Call, messages: list[Message] | None = None) -> list[Stretch]:
    """Return the path of a call in the order of time; its first stretch is on the rank that delayed the call."""
    return _Walk(call, messages_of(call) if messages is None else messages).path()


class _Walk:
    def __init__(self, call: Call, messages: list[Message]) -> None:
        self.call = call
        self.message_to = {(id(message.received), message.src): message for message in messages}
        # Several passes may be in progress at a time, so ops are taken in the order of time.
        self.ops = {rank: sorted(mine.ops, key=_moments) for rank, mine in call.ranks.items()}
        self.place = {id(op): at for ops in self.ops.values() for at, op in enumerate(ops)}
        self.ends = {rank: [op.end_ns for op in ops] for rank, ops in self.ops.items()}
        self.wait_ends = {rank: sorted(wait.end_ns for wait in mine.waits) for rank, mine in call.ranks.items()}
        self.stretches: list[Stretch] = []
        self.seen: set[int] = set()

    def path(self) -> list[Stretch]:
        last = max(self.call.ranks.values(), key=lambda rank: rank.end_ns)
        op = self._last_thing(last)
        end = last.end_ns
        while op is not None and id(op) not in self.seen:  # the second condition guards against clocks that disagree
            self.seen.add(id(op))
            begin = min(op.begin_ns, end)
            self._add(op.rank, "work", begin, min(op.end_ns, end), op)
            op, end = self._before(op, begin)
        return self.stretches[::-1]

    def _add(self, rank: int, what: What, begin: int, end: int, op: Op | None = None) -> None:
        self.stretches.append(Stretch(rank, what, begin, max(begin, end), op))

    def _last_thing(self, last: RankCall) -> Op | None:
        entry = next((wait for wait in reversed(last.waits) if wait.reason == "entry"), None)
        if entry is None or entry.peer not in self.call.ranks:
            return self.ops[last.rank][-1] if last.ops else None
        entered = self.call.ranks[entry.peer].begin_ns
        self._add(last.rank, "entry", min(entered, entry.end_ns), entry.end_ns)
        return None

    def _before(self, op: Op, until: int) -> tuple[Op | None, int]:
        """Return the op that this one depended on, and the time until which it did."""
        at = self.place[id(op)]
        previous = self.ops[op.rank][at - 1] if at > 0 else None
        free_ns = self.call.ranks[op.rank].begin_ns if previous is None else previous.end_ns
        # A wait that ended before the previous op did not delay this one.
        wait = op.waits[-1] if op.waits and op.waits[-1].end_ns > free_ns else None
        message = self._awaited(op, wait, free_ns)
        if message is not None:
            sent = min(message.sent_ns, until)
            self._add(op.rank, "transit", sent, until)
            return message.sent, sent
        if wait is not None and wait.reason == "room":
            reader = self._made_room(wait)
            if reader is not None:
                made = min(reader.end_ns, until)
                self._add(op.rank, "room", made, until)
                return reader, made
        if previous is not None:
            return previous, previous.end_ns
        self._add(op.rank, "begin", free_ns, op.entered_ns)
        return None, until

    def _awaited(self, op: Op, wait: Wait | None, free_ns: int) -> Message | None:
        """Return the message that an op waited for, or None.

        While several passes are in progress, a rank waits for the oldest one; an op of another pass, whose message
        arrives first, then has no wait itself.
        """
        if wait is not None:
            return self.message_to.get((id(op), wait.peer)) if wait.reason == "message" else None
        at = bisect_right(self.wait_ends[op.rank], op.begin_ns) - 1
        if at < 0 or self.wait_ends[op.rank][at] <= free_ns:  # it did not wait at all
            return None
        found = [self.message_to.get((id(op), peer)) for peer in op.sources]
        late = [message for message in found if message is not None and message.sent_ns > free_ns]
        return max(late, key=lambda message: message.sent_ns, default=None)

    def _made_room(self, wait: Wait) -> Op | None:
        """Return the last op of the reader that had ended when the wait ended."""
        ends = self.ends.get(wait.peer, [])
        at = bisect_right(ends, wait.end_ns) - 1
        return self.ops[wait.peer][at] if at >= 0 else None


def _moments(op: Op) -> tuple[int, int]:
    return op.end_ns, op.begin_ns
