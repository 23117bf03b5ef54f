"""The communicator: the calls that programs make, and the interface for code that builds on it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from os import PathLike
from types import TracebackType
from typing import Any

from unisono import _engine, collectives
from unisono.bootstrap.job_resources import CourierOffer
from unisono.bootstrap.membership import Link
from unisono.codecs import AutoCodec
from unisono.collectives import COLLECTIVES, OWN, Collective
from unisono.comm import codec_messages, messages
from unisono.comm.call_request import CallRequest
from unisono.comm.codec_agreement import auto_codec_of
from unisono.comm.codec_choice import CodecChoice
from unisono.comm.collective_methods import CollectiveMethods
from unisono.comm.dispatch import NUMBERS, Dispatcher
from unisono.comm.explanation import Explanation, explain
from unisono.comm.gpu_methods import GpuMethods
from unisono.comm.gpu_work import GpuWork
from unisono.comm.tracing import EVENTS, Trace, trace_job
from unisono.comm.work import Work
from unisono.errors import UsageError


class Communicator(GpuMethods, CollectiveMethods):
    """A group of ranks that communicate; every rank makes the same calls in the same order.

    ``connect()`` and ``spawn()`` make one; ``link`` is its connection to the other ranks. Arrays are numpy arrays or
    torch tensors, contiguous, and used in place. Outputs come first. All collectives take, by keyword only:
    ``algorithm`` (a name, your own algorithm, or a schedule; default: the best one known), ``async_op`` (return a
    Work at once) and ``timeout`` (seconds; default: that of the communicator).

    Arrays can also be torch CUDA tensors, or objects with ``__cuda_array_interface__`` (CuPy, Numba), if the ranks
    are on one host. All arrays of a call are on one device. Such a call is enqueued on the current stream and returns
    at once; with ``async_op`` it runs on a stream of the communicator and returns a GpuWork. If a rank fails, the
    error is raised by the next call, or by ``synchronize``. The first of these calls connects the GPUs of all ranks,
    so all ranks make one, even if it is a ``send`` or ``recv``. ``barrier`` waits on the CPU for the ranks, not for
    their GPUs.

    All collectives that move data also take ``codec``: "fp16", "bf16", "fp8_e4m3", "fp8_e5m2" or "int8" encode
    float32 numbers in fewer bits while they travel, which rounds them; "topk:0.01" (all_reduce only) sends the
    largest hundredth of them. All ranks still end with the same bits. Arrays that are only inputs are never changed;
    an array that is input and output is rounded. The codec must be the same on every rank. "auto:bf16" allows a
    codec, which is used between hosts where the link is slow (``link_rate``). See docs/codecs.md.

    Code that builds on a communicator, such as the torch backend, uses ``plan``, ``run``, ``remember``, ``repeat``,
    ``enqueue``, ``enqueue_transfer``, ``remember_on_gpu``, ``gpu_table``, ``raise_if_broken``, ``broken``, ``token``,
    ``timeout``, ``check_process``, ``name_ranks``, ``share_programs`` and ``courier_for``, and nothing else behind
    it.
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
        # are the full path, and the documentation. The fast calls refer to another object with these methods and not
        # to this one: a communicator without any reference is freed, and so closed, at once.
        link.endpoint.work_type = Work
        full_path = CollectiveMethods(self.dispatcher)
        for number, collective in enumerate(COLLECTIVES):
            arrays = 0 if not collective.carries_data else 1 if collective.single_array else 2
            op = "sum" if collective.reduces and collective.carries_data else None
            method = getattr(full_path, collective.name)
            fast_call = link.endpoint.fast_call(number, arrays, op, method, self.dispatcher.gpu.table)
            setattr(self, collective.name, fast_call)
        if link.trace is not None:
            trace_job(self.dispatcher, link.trace)

    # The interface for code that builds on a communicator.

    def plan(self, request: CallRequest) -> _engine.Plan:
        """Return the plan of the call ``request``: its algorithm, proved and compiled, for its lengths.

        Equal calls share a plan, which does not depend on addresses and belongs to this communicator. UsageError is
        raised if there is no such algorithm, ScheduleError if it fails its proof.
        """
        return self.dispatcher.plan(request)

    def run(
        self, plan: _engine.Plan, source: int, out: int, *, async_op: bool = False, timeout: float | None = None,
        keeps: Any = None, finish: Callable[[], None] | None = None,
    ) -> Work | None:  # fmt: skip
        """Run ``plan`` on the input at address ``source`` and the output at address ``out``, which may be the same.

        Every rank runs a plan of the same call. ``async_op``, ``timeout`` and the errors are those of a collective.
        ``keeps`` stays alive until the call is over. ``finish`` is called once when the engine has finished.
        """
        return self.dispatcher.run(plan, source, out, async_op=async_op, timeout=timeout, keeps=keeps, finish=finish)

    def remember(self, plan: _engine.Plan, request: CallRequest, out: Any, array: Any = None) -> None:
        """Let ``repeat`` find ``plan`` for calls like ``request`` on arrays like ``out`` and ``array``.

        ``array`` is None where the collective has one array. The arrays must need no preparation.
        """
        self._link.endpoint.remember(
            plan, NUMBERS[request.collective], out, array, request.op, request.root or 0, request.algorithm,
            request.codec, request.collective.before.others is OWN,
        )  # fmt: skip

    def repeat(
        self, request: CallRequest, out: Any, array: Any = None, *, async_op: bool = False, timeout: float = -1.0
    ) -> Any:
        """Make the call ``request`` on ``out`` and ``array``, if it equals a remembered one.

        Return False if no such call is known or the arrays are unusual: then nothing was done. Otherwise return True
        when the call is over, or, with ``async_op``, its Work. ``array`` is None where the collective has one array.
        ``timeout`` is in seconds; a negative one (default) stands for that of the communicator. The errors are those
        of a collective.
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
        """State the rank in the job of each rank: errors then name ``job_ranks[r]`` for rank r of ``job_ranks``."""
        self._link.name_ranks(list(job_ranks))

    def share_programs(self, other: Communicator) -> None:
        """Use the programs that ``other``, a communicator of this process with this rank and size, has compiled."""
        self.dispatcher.cache.programs = other.dispatcher.cache.programs

    def courier_for(self, job_ranks: Sequence[int]) -> CourierOffer | None:
        """Return the courier of this process, if it has one that knows the ranks ``job_ranks`` of the job."""
        return self._link.courier_for(job_ranks)

    # Calls between two ranks, and the communicator itself.

    @property
    def hosts(self) -> tuple[tuple[int, ...], ...]:
        """The ranks of each host; ranks of one host share memory."""
        return self.dispatcher.hosts or (tuple(range(self.size)),)

    @property
    def transport(self) -> str:
        """The carrier of messages between hosts: "tcp", or "ucx" with its version and devices; "" on one host.

        If it does not use RDMA, the reason follows in parentheses.
        """
        courier = self._link.resources.courier
        if courier is None:
            return ""
        from unisono.bootstrap.ucx_search import describe

        return describe(courier.engine)

    @property
    def address(self) -> str:
        """The address at which this rank receives messages from other hosts; "" on one host."""
        courier = self._link.resources.courier
        return "" if courier is None else courier.address

    def send(
        self, array: Any, dst: int, *, tag: int = 0, async_op: bool = False, timeout: float | None = None
    ) -> Work | GpuWork | None:
        """Send ``array`` to rank ``dst``, which receives it with ``recv`` and the same ``tag`` (default 0).

        Messages with the same tag arrive in the order in which they were sent. Messages with different tags can be
        received in any order. Messages are independent of collectives. ``async_op``, ``timeout`` and the errors are
        those of a collective. For example::

            if comm.rank == 0:
                comm.send(x, dst=1, tag=7)
            elif comm.rank == 1:
                comm.recv(x, src=0, tag=7)

        CUDA arrays of a pair of ranks must be received in the order in which they were sent, whatever their tags.
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
    ) -> Work | GpuWork | int | None:
        """Replace ``array`` by the message of rank ``src`` with this ``tag`` (default 0); by default, of any rank.

        A receive from any rank returns the rank of the sender; with ``async_op``, ``Work.source_rank()`` does.
        Messages with other tags that arrive earlier become unexpected messages, which wait in the memory of this
        process for later receives. ``async_op``, ``timeout`` and the errors are those of a collective. A receive into
        a CUDA array names its source.
        """
        return self.dispatcher.transfer(array, src, tag, False, async_op, timeout)

    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """Return a communicator of all ranks that pass the same ``color``, in the order of ``key``, then of ranks.

        Every rank must call this. A rank whose color is None joins no group and gets None. The default of ``key`` is
        0. A communicator and those split from it are independent: either can be closed first. One without any
        reference is closed. UsageError is raised if ``color`` or ``key`` is not an integer, and a CommError if
        communication fails. For example, the even and the odd ranks::

            half = comm.split(comm.rank % 2)
            half.all_reduce(x)
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

    def explain(
        self, collective: str | Collective, nbytes: int, *, codec: str | AutoCodec | None = None
    ) -> Explanation:
        """Return the algorithm that a call of ``collective`` on ``nbytes`` bytes would use, and the reason.

        ``collective`` is a name such as "all_reduce", or a record of ``unisono.collectives``; UsageError is raised if
        there is no such collective. ``codec`` is one that the call allows, such as "auto:bf16" (default: none). The
        result also has the predicted time, the next best algorithm and how far it is behind, the sizes at which other
        algorithms take over, and the codec that is used. For example::

            print(comm.explain("all_reduce", 1 << 20, codec="auto:bf16"))
        """
        found = collectives.find(collective) if isinstance(collective, str) else collective
        config, hosts = self._link.config, self.dispatcher.hosts
        choice = None if codec is None else self.choose_codec(codec, found, nbytes)
        return explain(
            found, self.size, nbytes, config.table, self.dispatcher.rates, hosts, choice, config.staging_bytes
        )

    def choose_codec(
        self, codec: str | AutoCodec, collective: str | Collective, nbytes: int, *, algorithm: Any = None
    ) -> CodecChoice:
        """Return the codec that a float32 call of ``collective`` on ``nbytes`` bytes uses if it allows ``codec``.

        ``codec`` is an AutoCodec or its name, such as "auto:bf16"; ``algorithm`` is that of the call (default: the
        best one known). The result has the codec, or None, and the reason; it is the same on all ranks. UsageError is
        raised if there is no such codec or collective.
        """
        found = collectives.find(collective) if isinstance(collective, str) else collective
        auto = auto_codec_of(found, codec)
        if auto is None:
            raise UsageError(codec_messages.NOT_AUTO(codec=repr(str(codec))))
        root = 0 if found.rooted else None
        return self.dispatcher.choose_codec(auto, CallRequest(found, None, root, algorithm), nbytes)

    @property
    def link_rate(self) -> float | None:
        """The bytes per second of the slowest link between hosts, as ``connect(link_rate=)`` stated or measured it.

        It is None if it is not known, and on one host.
        """
        return self.dispatcher.link_rate

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
        """Return the bytes that this rank will send in a call of ``collective``, computed from its program and codec.

        ``count`` is the number of elements of the whole vector, all parts together, and ``dtype`` their type (default
        "float32"). ``root``, ``algorithm`` and ``codec`` are those of the call. ``far`` selects the bytes to ranks of
        other hosts (True) or of this host (False); by default, all are counted. UsageError is raised if such a call
        cannot work.
        """
        found = collectives.find(collective) if isinstance(collective, str) else collective
        request = CallRequest(found, None, root, algorithm, codec, dtype)
        sent = self.dispatcher.predict_sent_bytes(request, count)
        return sum(sent) if far is None else sent.far if far else sent.near

    def limit_rate(self, bytes_per_s: float | None) -> None:
        """Limit what this rank sends to ``bytes_per_s`` bytes per second from now on; None removes the limit.

        For experiments: the shared memory behaves like a slow link. A message enters the link when the one before it
        has left, and a call ends when all its messages have left. Other communicators (``split``, ``duplicate``) have
        separate links. UsageError is raised unless the number is positive and finite.
        """
        if bytes_per_s is not None and not (isinstance(bytes_per_s, int | float) and 0 < bytes_per_s < float("inf")):
            raise UsageError(messages.BAD_RATE(rate=repr(bytes_per_s)))
        self._link.endpoint.limit_rate(bytes_per_s or 0.0)

    def trace(self, path: str | PathLike[str], *, events: int = EVENTS) -> Trace:
        """Record what the ranks do, and when: ``with comm.trace("run.json"):``. Every rank calls this.

        ``path`` is the file of all ranks, in an existing folder. It is complete when the last rank has left the
        block; Perfetto (ui.perfetto.dev) and ``unisono draw`` open it. Every rank keeps its last ``events`` events
        (default 32,768, of 48 bytes each); the file states how many older ones were dropped. An asynchronous call is
        recorded up to the end of the block: wait for it inside. Calls on CUDA arrays are not recorded. If a rank
        never leaves the block, or if the ranks are on hosts without a common file system, ``run.json.parts/`` holds
        what was recorded; ``unisono merge`` joins it. UsageError is raised if ``path`` or ``events`` cannot work.
        """
        return Trace(self.dispatcher, path, events)

    @property
    def memory_in_use(self) -> int:
        """The bytes of shared memory that the channels of this rank use."""
        return self._link.endpoint.memory_in_use()

    def abort(self, reason: str) -> None:
        """Break the communicator: every rank that waits in a call, or makes one, raises Aborted with ``reason``."""
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
