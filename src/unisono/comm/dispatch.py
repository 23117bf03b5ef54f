"""The dispatcher of a communicator: it checks a call, selects, proves and compiles its algorithm, and runs the plan.

::

    arrays ──> CallRequest ──> plan ──> engine
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal, overload

from unisono import _engine
from unisono.bootstrap.membership import Link
from unisono.codecs import AutoCodec, Codec
from unisono.collectives import COLLECTIVES, OWN, Collective, all_gather
from unisono.comm import codec_messages, messages
from unisono.comm.arguments import ARRAY, Given, arguments_of
from unisono.comm.arrays import ELEMENT_BYTES, array_of
from unisono.comm.call_request import CallRequest
from unisono.comm.call_schedule import label_of, named_algorithm, result_length, schedule_of
from unisono.comm.codec_agreement import (
    ENCODED,
    RoundingMode,
    agrees,
    auto_codec_of,
    codec_block_of,
    codec_for,
    rounding_mode_of,
)
from unisono.comm.codec_choice import CodecChoice, choose_codec
from unisono.comm.gpu_calls import GpuCalls, OutsideCall
from unisono.comm.gpu_work import GpuWork
from unisono.comm.network_rates import agreed_rates
from unisono.comm.nontemporal import writes_past_caches
from unisono.comm.plan_cache import PlanCache
from unisono.comm.plan_record import PlanRecord
from unisono.comm.programs import FOR_UNEQUAL, Compiled, check_blocks, compiled
from unisono.comm.selection import choose
from unisono.comm.topk_all_reduce import all_reduce_largest
from unisono.comm.work import Work
from unisono.compiler import Hosts, Lengths, lay_out_call
from unisono.compiler.traffic import SentBytes, sent_bytes
from unisono.costs.network_model import NetworkModel
from unisono.costs.rates import Rates
from unisono.errors import GoalError, UsageError
from unisono.reductions import check_op

LARGEST_TAG = 2**32 - 1
ANY_RANK = -1  # to the engine
NUMBERS = {collective: number for number, collective in enumerate(COLLECTIVES)}  # of the collectives, to the engine


class Dispatcher:
    """Makes the calls of one communicator."""

    def __init__(self, link: Link, hosts: Hosts | None = None) -> None:
        self.link = link
        self.hosts = None if hosts is not None and len(hosts) == 1 else hosts  # None: one host
        self.cache = PlanCache(link.endpoint.forget_plan)
        self.gpu = GpuCalls(link)
        self.traces = 0  # that were made so far
        self._warned_of_rate = False

    def call(
        self, request: CallRequest, given: Given, *, async_op: bool = False, timeout: float | None = None
    ) -> Work | GpuWork | None:
        """Make a call: check its arguments, find or make its plan, and run it."""
        link, collective, root = self.link, request.collective, request.root
        link.check_open(collective.name)
        check_timeout(collective.name, timeout)
        if collective.rooted and not (type(root) is int and 0 <= root < link.size):
            raise UsageError(messages.BAD_ROOT(call=collective, root=repr(root), last=link.size - 1))
        arguments = arguments_of(request, link.rank, link.size, given)
        op = None if request.op is None else check_op(request.op, arguments.dtype)
        codec = self.codec_of(request, arguments.dtype, arguments.lengths)
        complete = request._replace(op=op, codec=codec, dtype=arguments.dtype, lengths=arguments.lengths)
        repeatable = given.sizes is None and given.out_sizes is None
        outside = OutsideCall(
            NUMBERS[collective], given.out, given.array, request.op, root or 0, request.algorithm, request.codec,
            collective.before.others is OWN,
        )  # fmt: skip
        if arguments.device is not None:
            known = outside if repeatable else None
            return self.gpu.call(self, complete, arguments, async_op, self.limit(timeout), known)
        if codec is not None and codec.is_topk:
            return all_reduce_largest(self, complete, given.out, async_op, timeout)
        plan = self.plan(complete)
        if repeatable:
            link.endpoint.remember(plan, *outside)
        keeps = (arguments.input.owner, arguments.output.owner)
        addresses = arguments.input.address, arguments.output.address
        return self.run(plan, *addresses, async_op=async_op, timeout=timeout, keeps=keeps)

    def codec_of(self, request: CallRequest, dtype: str, lengths: Lengths) -> Codec | None:
        """Return the codec of a call: the one that it names, or the one that it allows if that pays."""
        auto = auto_codec_of(request.collective, request.codec)
        if auto is None:
            return codec_for(request.collective, request.codec, dtype)
        if not lengths.known_to_all:  # the ranks could not decide alike
            return None
        return self.choose_codec(auto, request, sum(lengths.input) * ELEMENT_BYTES[dtype], dtype).codec

    def choose_codec(self, auto: AutoCodec, request: CallRequest, nbytes: int, dtype: str = ENCODED) -> CodecChoice:
        """Return the codec that a call of ``nbytes`` bytes uses if it allows one, and the reason."""
        if dtype != ENCODED:
            return CodecChoice(None, codec_messages.CODEC_OTHER_TYPE(encoded=ENCODED, dtype=dtype))
        collective = request.collective
        choice = choose_codec(auto.codec, collective, self.link.size, nbytes, self.hosts, self.link_rate, self.rates)
        if self.hosts is not None and self.link_rate is None and self.link.rank == 0 and not self._warned_of_rate:
            self._warned_of_rate = True
            warnings.warn(codec_messages.AUTO_HAS_NO_EFFECT(codec=str(auto), reason=choice.reason), stacklevel=2)
        if choice.codec is not None and request.algorithm is not None:
            algorithm, rounding = request.as_key().algorithm, rounding_mode_of(choice.codec)
            try:
                self.program(collective, algorithm, request.root, nbytes, rounding)
            except GoalError:
                return CodecChoice(None, codec_messages.CODEC_NOT_AGREED(codec=auto.codec))
        return choice

    @property
    def link_rate(self) -> float | None:
        """The bytes per second of the links between hosts, on which the ranks agree; None if it is not known."""
        return self.link.config.link_rate or None

    @property
    def rates(self) -> Rates | NetworkModel:
        """The rates of the network, on which the ranks agree."""
        return agreed_rates(self.link.config, self.hosts)

    @overload
    def transfer(
        self, array: Any, peer: int, tag: int, sending: Literal[True], async_op: bool, timeout: float | None
    ) -> Work | GpuWork | None: ...
    @overload
    def transfer(
        self, array: Any, peer: int | None, tag: int, sending: Literal[False], async_op: bool, timeout: float | None
    ) -> Work | GpuWork | int | None: ...
    def transfer(
        self, array: Any, peer: int | None, tag: int, sending: bool, async_op: bool, timeout: float | None
    ) -> Work | GpuWork | int | None:
        """Send to a peer, or receive from it. A receive from any rank (None) returns the rank of the sender."""
        name = "send" if sending else "recv"
        self.link.check_open(name)
        check_timeout(name, timeout)
        any_rank = peer is None and not sending and self.link.size > 1
        if not any_rank and not (type(peer) is int and 0 <= peer < self.link.size and peer != self.link.rank):
            problem = messages.BAD_DESTINATION if sending else messages.BAD_SOURCE
            raise UsageError(problem(peer=repr(peer), rank=self.link.rank, last=self.link.size - 1))
        if type(tag) is not int or not 0 <= tag <= LARGEST_TAG:
            raise UsageError(messages.BAD_TAG(call=name, tag=repr(tag), largest=LARGEST_TAG))
        buffer = array_of(array, messages.ARRAY_OF_CALL(call=name, name=ARRAY), writable=not sending)
        endpoint, limit = self.link.endpoint, self.limit(timeout)
        endpoint.raise_if_broken()
        if buffer.device is not None:
            return self.gpu.transfer(self, sending, peer, tag, buffer, async_op, limit)
        peer_number = ANY_RANK if peer is None else peer
        transfer = (sending, peer_number, tag, buffer.address, buffer.length, buffer.dtype, limit)
        if not async_op:
            source = endpoint.transfer(*transfer)
            return source if peer is None else None
        other = "any rank" if peer is None else f"rank {peer}"
        label = f"{name} of {buffer.length} {buffer.dtype} {'to' if sending else 'from'} {other} with tag {tag}"
        return Work(endpoint, endpoint.start_transfer(*transfer, keeps=buffer.owner), label)

    def program(
        self,
        collective: Collective,
        algorithm: Any,
        root: int | None,
        nbytes: int,
        rounding: RoundingMode = RoundingMode.NONE,
    ) -> Compiled:
        """Return the program of a call: that of the algorithm it names, or of the best one known."""
        size, config, hosts = self.link.size, self.link.config, self.hosts
        options: Mapping[str, Any] = {}
        if algorithm is None:
            algorithm, _, options = choose(
                collective, size, nbytes, config.table, self.rates,
                lambda each: rounding is RoundingMode.NONE or agrees(each.schedule(size, root), rounding), hosts,
                config.staging_bytes,
            )  # fmt: skip
        else:
            algorithm, options = named_algorithm(collective, algorithm, hosts)
        key = (collective, algorithm, *options.items(), root, rounding, hosts)
        found = self.cache.programs.get(key)
        if found is None:
            schedule = schedule_of(collective, algorithm, size, root, options)
            found = compiled(schedule, self.link.rank, rounding, hosts)
            self.cache.programs.add(key, found)
        return found

    def plan(self, request: CallRequest) -> _engine.Plan:
        """Return the plan of a call, made once for all equal calls; addresses do not matter to it."""
        request = request.as_key()
        plan = self.cache.plan(request)
        if plan is None:
            plan = self.cache.add(request, *self._make_plan(request))
        return plan

    def _make_plan(self, request: CallRequest) -> tuple[_engine.Plan, PlanRecord]:
        link = self.link
        collective, lengths, codec, op = request.collective, request.lengths, request.codec, request.op
        element = ELEMENT_BYTES[request.dtype]
        total = sum(lengths.input)
        algorithm = request.algorithm
        if algorithm is None and not lengths.known_to_all:
            algorithm = FOR_UNEQUAL  # every rank must choose the same, and they know different lengths
        made = self.program(collective, algorithm, request.root, total * element, rounding_mode_of(codec))
        check_blocks(made.schedule, made.proof, lengths.equal_blocks)
        layout = lay_out_call(
            made.lowered, made.schedule, collective, link.rank, lengths, element, link.geometry.staging_bytes,
            codec_block=codec_block_of(codec), tracks=link.geometry.tracks,
        )  # fmt: skip
        text = request.label or label_of(request, made.name)
        known_to_all = (lengths.input, lengths.output) if lengths.known_to_all else None
        agreed: tuple[object, ...] = (text, made.digest, known_to_all, layout.segment_bytes)
        if self.hosts is not None:
            agreed += (self.hosts,)  # the channels of messages depend on them
        output_bytes = result_length(request, link.rank, link.size) * element
        plan = _engine.make_plan(
            program=made.program, extents=layout.extents, segment_bytes=layout.segment_bytes, passes=layout.passes,
            work_bytes=layout.work_bytes, dtype=request.dtype,
            reduction="" if op is None else "sum" if op == "avg" else op, divides=op == "avg",
            skips_empty=not lengths.known_to_all,
            streams=writes_past_caches(collective, output_bytes, 1 + len(made.lowered.near)),
            wire="none" if codec is None else codec.name, stochastic=codec is not None and codec.stochastic,
            seed=0 if codec is None else codec.seed,
            fingerprint=int.from_bytes(hashlib.blake2b(repr(agreed).encode(), digest_size=8).digest(), "little"),
            text=text,
        )  # fmt: skip
        return plan, PlanRecord(made, layout, request, text)

    def run(
        self, plan: _engine.Plan, source: int, target: int, *, async_op: bool = False, timeout: float | None = None,
        keeps: Any = None, finish: Callable[[], None] | None = None,
    ) -> Work | None:  # fmt: skip
        """Execute a plan on two addresses, now or in the background.

        ``keeps`` stays alive until the call is over; ``finish`` is called after the engine has finished.
        """
        endpoint = self.link.endpoint
        if not async_op:
            endpoint.run(plan, source, target, self.limit(timeout))
            if finish is not None:
                finish()
            return None
        endpoint.raise_if_broken()
        completion = endpoint.start(plan, source, target, self.limit(timeout), keeps)
        return Work(endpoint, completion, plan, finish)

    def predict_sent_bytes(self, request: CallRequest, count: int) -> SentBytes:
        """Return the bytes that this rank sends in a call of ``count`` elements in total, in equal parts."""
        collective, dtype = request.collective, request.dtype
        size, element = self.link.size, ELEMENT_BYTES[dtype]
        if collective.blocked and count % size:
            raise UsageError(messages.NOT_DIVISIBLE(call=collective, count=count, size=size))
        blocks = (count // size,) * size if collective.blocked else (count,)
        codec = self.codec_of(request, dtype, Lengths(blocks, blocks))
        if codec is not None and codec.is_topk:  # an all-gather of what each rank keeps
            return self.predict_sent_bytes(CallRequest(all_gather), size * codec.wire_bytes(count))
        algorithm = request.as_key().algorithm
        made = self.program(collective, algorithm, request.root, count * element, rounding_mode_of(codec))
        bytes_of = (lambda n: n * element) if codec is None else codec.wire_bytes
        return sent_bytes(made.lowered, made.schedule, collective, Lengths(blocks, blocks), bytes_of)

    def limit(self, timeout: float | None) -> float:
        """Return the seconds that a call may wait: those that it states, or those of the communicator."""
        return self.link.endpoint.timeout_s if timeout is None else timeout


def check_timeout(name: str, timeout: float | None) -> None:
    """Raise UsageError unless ``timeout`` is None or a positive number of seconds."""
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise UsageError(messages.BAD_TIMEOUT(call=name, timeout=repr(timeout)))
