"""The communicator: the calls people make."""

from __future__ import annotations

import weakref
from os import PathLike
from types import TracebackType
from typing import Any

from unisono import collectives
from unisono.bootstrap.membership import Link
from unisono.collectives import COLLECTIVES, Collective
from unisono.comm.collective_methods import CollectiveMethods
from unisono.comm.dispatch import Calls
from unisono.comm.explanation import Explanation, explain
from unisono.comm.tracing import EVENTS, Trace, trace_job
from unisono.comm.traffic import predicted_bytes
from unisono.comm.work import Work
from unisono.errors import UsageError


class Communicator(CollectiveMethods):
    """A group of ranks that communicate; every rank makes the same calls in the same order.

    Arrays are numpy arrays or torch CPU tensors, contiguous, used where they are. Outputs come first. What all
    collectives take, by keyword only: ``algorithm`` (a name, an algorithm of your own, or a schedule; default: the
    best one known), ``async_op`` (return a Work at once), ``timeout`` (seconds; default: that of the communicator).

    All that move data also take ``codec``: "fp16", "bf16", "fp8_e4m3", "fp8_e5m2" or "int8" make float32 numbers
    smaller while they travel, and round them thereby; "topk:0.01" (all_reduce only) sends the largest hundredth of
    them. All ranks still end with the same bits. Arrays that are input only are never changed; where one array is
    both, it is rounded. The codec must be the same on every rank. See docs/codecs.md.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        super().__init__(Calls(link))
        self.rank = link.rank
        self.size = link.size
        self._parts: weakref.WeakSet[Communicator] = weakref.WeakSet()  # what was split from this one
        # The engine repeats a call that is like an earlier one (bindings/quick_call.cpp); the methods that we inherit
        # are the long way, and the documentation. The quick calls refer to another object with these methods and not
        # to this one: a communicator without any reference is freed, and so closed, at once.
        long_way = CollectiveMethods(self.calls)
        for number, collective in enumerate(COLLECTIVES):
            arrays = 0 if not collective.carries_data else 1 if collective.single_array else 2
            op = "sum" if collective.reduces and collective.carries_data else None
            method = getattr(long_way, collective.name)
            setattr(self, collective.name, link.endpoint.quick_call(number, arrays, op, method))
        if link.trace is not None:
            trace_job(self.calls, link.trace)

    def send(
        self, array: Any, dst: int, *, tag: int = 0, async_op: bool = False, timeout: float | None = None
    ) -> Work | None:
        """Send the array to one rank, which receives it with ``recv`` and the same tag; independent of collectives.

        Messages with the same tag arrive in the order in which they were sent. Messages with different tags can be
        received in any order.
        """
        return self.calls.transfer(array, dst, tag, True, async_op, timeout)

    def recv(
        self,
        array: Any,
        src: int | None = None,
        *,
        tag: int = 0,
        async_op: bool = False,
        timeout: float | None = None,
    ) -> Work | int | None:
        """Replace the array by what rank ``src`` sends with this tag; by default, by what any rank does.

        From any rank, the one whose message it was is returned; with ``async_op``, ``Work.source_rank()`` says it.
        What arrives before it with other tags is put aside in the memory of this process, for later receives.
        """
        return self.calls.transfer(array, src, tag, False, async_op, timeout)

    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """Make a communicator of all ranks that give the same color, in the order of their keys, then ranks.

        Every rank must call this. A color of None takes part in no group and gets None. What is split from a
        communicator does not depend on it: either can be closed first. A part without any reference is closed.
        """
        return self._part(self._link.split(self, color, key))

    def duplicate(self) -> Communicator:
        """Make another communicator of the same ranks, with an order of calls of its own. All ranks call this."""
        made = self._part(self._link.spare_duplicate() or self._link.split(self, 0, self.rank))
        assert made is not None
        return made

    def _part(self, link: Link | None) -> Communicator | None:
        if link is None:
            return None
        made = Communicator(link)
        self._parts.add(made)
        return made

    @property
    def can_duplicate_locally(self) -> bool:
        """Whether the next ``duplicate`` needs no messages: then every rank may call it when it likes."""
        return self._link.has_spare_duplicate

    def explain(self, collective: str | Collective, nbytes: int) -> Explanation:
        """Say which algorithm a call of so many bytes would use, why, and which would be the next best."""
        found = collectives.find(collective) if isinstance(collective, str) else collective
        return explain(found, self.size, nbytes, self._link.config.table, self._link.config.oversubscribed)

    @property
    def sent_bytes(self) -> int:
        """Bytes that this rank has sent through this communicator; what goes to several counts once for each."""
        return self._link.endpoint.sent_bytes()

    def predict_sent_bytes(
        self, collective: str | Collective, count: int, *, dtype: str = "float32", root: int | None = None,
        algorithm: Any = None, codec: Any = None,
    ) -> int:  # fmt: skip
        """Say how many bytes this rank will send in a call, from the program of its algorithm and the codec.

        ``count``: elements of the whole vector, all parts together.
        """
        found = collectives.find(collective) if isinstance(collective, str) else collective
        return predicted_bytes(self.calls, found, count, dtype, root, algorithm, codec)

    def limit_rate(self, bytes_per_s: float | None) -> None:
        """Let this rank send no more than so many bytes per second from now on; None: as many as it can.

        For experiments: it makes a slow link of the memory that the ranks share. A message is put on the link when
        the one before it has left, and a call is not over before all that it has sent has. Other communicators
        (``split``, ``duplicate``) have links of their own.
        """
        if bytes_per_s is not None and not (isinstance(bytes_per_s, int | float) and 0 < bytes_per_s < float("inf")):
            raise UsageError(f"limit_rate: {bytes_per_s!r}; expected bytes per second, more than 0, or None")
        self._link.endpoint.limit_rate(bytes_per_s or 0.0)

    def trace(self, path: str | PathLike[str], *, events: int = EVENTS) -> Trace:
        """Record what the ranks do, and when: ``with comm.trace("run.json"):``. Every rank calls this.

        The file is one for all ranks, and is there when the last of them has left the block; Perfetto opens it
        (ui.perfetto.dev), and ``unisono draw``. Every rank keeps its last ``events`` events (48 bytes each); the file
        says how many older ones were dropped. A call in the background is recorded as far as it got: wait for your
        works inside the block. If a rank never leaves it, what the others recorded is in ``run.json.parts/``.
        """
        return Trace(self.calls, path, events)

    @property
    def memory_in_use(self) -> int:
        """Bytes of shared memory that the channels of this rank have."""
        return self._link.endpoint.memory_in_use()

    def abort(self, reason: str) -> None:
        """Break the communicator: every rank that waits in a call, or makes one, gets Aborted with this reason."""
        self._link.endpoint.abort(reason)

    def _open_parts(self) -> list[Communicator]:
        """Return this communicator and what was split from it, and from those, as far as it is open."""
        found = [one for part in list(self._parts) for one in part._open_parts()]
        return [*found, self] if not self.closed else found

    def close(self) -> None:
        """Finish what was started and leave; the other ranks can do without this one from now on.

        Communicators that were split from this one stay open.
        """
        self._link.close()
        for collective in COLLECTIVES:
            self.__dict__.pop(collective.name, None)  # the quick calls keep the endpoint, and so the memory

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._link.closed

    def __enter__(self) -> Communicator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            # The others may be waiting for calls that this rank will never make, also on parts of this communicator.
            left = self._open_parts()
            for one in left:
                one.abort(f"{type(error).__name__}: {error}")
            for one in left:
                one.close()
        self.close()

    def __repr__(self) -> str:
        return f"<Communicator: rank {self.rank} of {self.size}{', closed' if self.closed else ''}>"

    def __reduce__(self) -> Any:
        raise UsageError("a communicator cannot be sent to another process; connect() there")
