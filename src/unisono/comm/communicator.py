"""The communicator: the calls that programs make, and the interface for code that builds on it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from os import PathLike
from types import TracebackType
from typing import Any

from unisono import _engine, collectives
from unisono.bootstrap.membership import Link
from unisono.collectives import COLLECTIVES, OWN, Collective
from unisono.comm import messages
from unisono.comm.call_request import CallRequest
from unisono.comm.collective_methods import CollectiveMethods
from unisono.comm.dispatch import NUMBERS, Dispatcher
from unisono.comm.selection import Explanation, explain
from unisono.comm.tracing import EVENTS, Trace, trace_job
from unisono.comm.work import Work
from unisono.errors import UsageError


class Communicator(CollectiveMethods):
    """A group of ranks that communicate; every rank makes the same calls in the same order.

    ``connect()`` and ``spawn()`` return one. Arrays are numpy arrays or torch CPU tensors, contiguous, and used in
    place. Outputs come first. All collectives take, by keyword only: ``algorithm`` (a name, your own algorithm, or a
    schedule; default: the best one known), ``async_op`` (return a Work at once) and ``timeout`` (seconds; default:
    that of the communicator).

    All collectives that move data also take ``codec``: "fp16", "bf16", "fp8_e4m3", "fp8_e5m2" or "int8" encode
    float32 numbers in fewer bits while they travel, which rounds them; "topk:0.01" (all_reduce only) sends the
    largest hundredth of them. All ranks still end with the same bits. Arrays that are only inputs are never changed;
    an array that is input and output is rounded. The codec must be the same on every rank. See docs/codecs.md.

    Code that builds on a communicator, such as the torch backend, uses ``plan``, ``run``, ``remember``, ``repeat``,
    ``broken``, ``token``, ``timeout``, ``check_process``, ``name_ranks`` and ``share_programs``, and nothing else
    behind it.
    """

    rank: int
    """The rank of this process, from 0."""
    size: int
    """The number of ranks."""

    def __init__(self, link: Link) -> None:
        self._link = link
        super().__init__(Dispatcher(link, link.hosts.groups))
        self.rank = link.rank
        self.size = link.size
        self._parts: weakref.WeakSet[Communicator] = weakref.WeakSet()  # what was split from this one
        # The engine repeats a call that equals an earlier one (engine/bindings/fast_path.cpp). The inherited methods
        # are the long path, and the documentation. The fast calls refer to another object with these methods and not
        # to this one: a communicator without any reference is freed, and so closed, at once.
        link.endpoint.work_type = Work
        long_path = CollectiveMethods(self.dispatcher)
        for number, collective in enumerate(COLLECTIVES):
            arrays = 0 if not collective.carries_data else 1 if collective.single_array else 2
            op = "sum" if collective.reduces and collective.carries_data else None
            method = getattr(long_path, collective.name)
            setattr(self, collective.name, link.endpoint.fast_call(number, arrays, op, method))
        if link.trace is not None:
            trace_job(self.dispatcher, link.trace)

    # The interface for code that builds on a communicator.

    def plan(self, request: CallRequest) -> _engine.Plan:
        """Return the plan of a call: its algorithm, proved and compiled, for these lengths. Equal calls share one.

        A plan does not depend on addresses; it belongs to this communicator.
        """
        return self.dispatcher.plan(request)

    def run(
        self, plan: _engine.Plan, source: int, out: int, *, async_op: bool = False, timeout: float | None = None,
        keeps: Any = None, finish: Callable[[], None] | None = None,
    ) -> Work | None:  # fmt: skip
        """Run a plan on memory at two addresses, which may be the same; every rank runs a plan of the same call.

        ``keeps`` stays alive until the call is over. ``finish`` is called once when the engine has finished.
        """
        return self.dispatcher.run(plan, source, out, async_op=async_op, timeout=timeout, keeps=keeps, finish=finish)

    def remember(self, plan: _engine.Plan, request: CallRequest, out: Any, array: Any = None) -> None:
        """Let ``repeat`` find this plan for calls on such arrays. The arrays must need no preparation."""
        self._link.endpoint.remember(
            plan, NUMBERS[request.collective], out, array, request.op, request.root or 0, request.algorithm,
            request.codec, request.collective.before.others is OWN,
        )  # fmt: skip

    def repeat(
        self, request: CallRequest, out: Any, array: Any = None, *, async_op: bool = False, timeout: float = -1.0
    ) -> Any:
        """Make a call that equals a remembered one, with hardly any work in Python.

        Return False if none is known or the arrays are unusual: then nothing was done. Otherwise return True when
        the call is over, or, with ``async_op``, its Work.
        """
        return self._link.endpoint.repeat(
            NUMBERS[request.collective], out, array, request.op, request.root or 0, request.algorithm, request.codec,
            timeout, async_op,
        )  # fmt: skip

    @property
    def broken(self) -> bool:
        """Whether a call can no longer succeed, because a rank was lost or has aborted."""
        return self._link.endpoint.broken

    @property
    def token(self) -> str:
        """A name that all ranks of the job share and that no other job has."""
        return self._link.config.token

    @property
    def timeout(self) -> float:
        """The seconds that a call may wait unless it states its own timeout."""
        return self._link.endpoint.timeout_s

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self._link.endpoint.timeout_s = seconds

    def check_process(self) -> None:
        """Raise UsageError in a forked child, which is not a rank."""
        self._link.endpoint.check_process()

    def name_ranks(self, job_ranks: Sequence[int]) -> None:
        """State the rank in the job of each of these ranks, which errors then name."""
        self._link.name_ranks(list(job_ranks))

    def share_programs(self, other: Communicator) -> None:
        """Use the programs that another communicator of this process has compiled for the same rank and size."""
        self.dispatcher.cache.programs = other.dispatcher.cache.programs

    # Calls between two ranks, and the communicator itself.

    @property
    def hosts(self) -> tuple[tuple[int, ...], ...]:
        """The ranks of each host; ranks of one host share memory."""
        return self.dispatcher.hosts or (tuple(range(self.size)),)

    def send(
        self, array: Any, dst: int, *, tag: int = 0, async_op: bool = False, timeout: float | None = None
    ) -> Work | None:
        """Send the array to one rank, which receives it with ``recv`` and the same tag; independent of collectives.

        Messages with the same tag arrive in the order in which they were sent. Messages with different tags can be
        received in any order.
        """
        return self.dispatcher.transfer(array, dst, tag, True, async_op, timeout)

    def recv(
        self,
        array: Any,
        src: int | None = None,
        *,
        tag: int = 0,
        async_op: bool = False,
        timeout: float | None = None,
    ) -> Work | int | None:
        """Replace the array by the message of rank ``src`` with this tag; by default, by that of any rank.

        A receive from any rank returns the rank of the sender; with ``async_op``, ``Work.source_rank()`` does.
        Messages with other tags that arrive earlier become unexpected messages, which wait in the memory of this
        process for later receives.
        """
        return self.dispatcher.transfer(array, src, tag, False, async_op, timeout)

    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """Return a communicator of all ranks that pass the same color, in the order of their keys, then ranks.

        Every rank must call this. A rank that passes None joins no group and gets None. A communicator and those
        split from it are independent: either can be closed first. One without any reference is closed.
        """
        return self._part(self._link.split(self, color, key))

    def duplicate(self) -> Communicator:
        """Return another communicator of the same ranks, whose calls have a separate order. All ranks call this."""
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
        """Whether the next ``duplicate`` needs no messages: then every rank may call it at any time."""
        return self._link.has_spare_duplicate

    def explain(self, collective: str | Collective, nbytes: int) -> Explanation:
        """Return the algorithm that a call of ``nbytes`` bytes would use, the reason, and the next best one."""
        found = collectives.find(collective) if isinstance(collective, str) else collective
        config = self._link.config
        return explain(found, self.size, nbytes, config.table, config.oversubscribed, self.dispatcher.hosts)

    @property
    def sent_bytes(self) -> int:
        """The bytes that this rank has sent through this communicator; a message to several ranks counts for each."""
        return self._link.endpoint.sent_bytes()

    @property
    def sent_far_bytes(self) -> int:
        """The part of ``sent_bytes`` that went to ranks of other hosts, counted when the network has accepted it.

        A call may end before that.
        """
        return self._link.endpoint.sent_far_bytes()

    def predict_sent_bytes(
        self, collective: str | Collective, count: int, *, dtype: str = "float32", root: int | None = None,
        algorithm: Any = None, codec: Any = None, far: bool | None = None,
    ) -> int:  # fmt: skip
        """Return the bytes that this rank will send in a call, computed from its program and codec.

        ``count`` is the number of elements of the whole vector, all parts together. ``far`` selects the bytes to
        ranks of other hosts (True) or of this host (False).
        """
        found = collectives.find(collective) if isinstance(collective, str) else collective
        request = CallRequest(found, None, root, algorithm, codec, dtype)
        sent = self.dispatcher.predict_sent_bytes(request, count)
        return sum(sent) if far is None else sent.far if far else sent.near

    def limit_rate(self, bytes_per_s: float | None) -> None:
        """Limit what this rank sends to a number of bytes per second from now on; None removes the limit.

        For experiments: the shared memory behaves like a slow link. A message enters the link when the one before it
        has left, and a call ends when all its messages have left. Other communicators (``split``, ``duplicate``) have
        separate links.
        """
        if bytes_per_s is not None and not (isinstance(bytes_per_s, int | float) and 0 < bytes_per_s < float("inf")):
            raise UsageError(messages.BAD_RATE(rate=repr(bytes_per_s)))
        self._link.endpoint.limit_rate(bytes_per_s or 0.0)

    def trace(self, path: str | PathLike[str], *, events: int = EVENTS) -> Trace:
        """Record what the ranks do, and when: ``with comm.trace("run.json"):``. Every rank calls this.

        All ranks share one file, which is complete when the last of them has left the block; Perfetto
        (ui.perfetto.dev) and ``unisono draw`` open it. Every rank keeps its last ``events`` events (48 bytes each);
        the file states how many older ones were dropped. An asynchronous call is recorded up to the end of the
        block: wait for it inside. If a rank never leaves the block, ``run.json.parts/`` holds what the others
        recorded.
        """
        return Trace(self.dispatcher, path, events)

    @property
    def memory_in_use(self) -> int:
        """The bytes of shared memory that the channels of this rank use."""
        return self._link.endpoint.memory_in_use()

    def abort(self, reason: str) -> None:
        """Break the communicator: every rank that waits in a call, or makes one, raises Aborted with this reason."""
        self._link.endpoint.abort(reason)

    def _open_parts(self) -> list[Communicator]:
        """Return this communicator and all that were split from it, directly or not, as far as they are open."""
        parts = [each for part in list(self._parts) for each in part._open_parts()]
        return [*parts, self] if not self.closed else parts

    def close(self) -> None:
        """Finish the calls that were started, and leave; the other ranks no longer wait for this one.

        Communicators that were split from this one stay open.
        """
        self._link.close()
        for collective in COLLECTIVES:
            self.__dict__.pop(collective.name, None)  # the fast calls keep the endpoint, and so its memory

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
            # The other ranks may wait for calls that this rank will never make, also on parts of this communicator.
            parts = self._open_parts()
            for part in parts:
                part.abort(f"{type(error).__name__}: {error}")
            for part in parts:
                part.close()
        self.close()

    def __repr__(self) -> str:
        return f"<Communicator: rank {self.rank} of {self.size}{', closed' if self.closed else ''}>"

    def __reduce__(self) -> Any:
        raise UsageError(messages.COMMUNICATOR_NOT_PICKLED())
