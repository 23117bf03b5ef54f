"""The long way of a call: look at its arguments, choose, prove and compile the algorithm, compute numbers, run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from unisono import _engine, collectives
from unisono.algorithms.declaration import Algorithm
from unisono.algorithms.user_files import WrittenSchedule, resolve
from unisono.bootstrap.membership import Link
from unisono.codecs import Codec
from unisono.collectives import COLLECTIVES, Collective
from unisono.comm.arguments import Arguments, arguments_of
from unisono.comm.arrays import ELEMENT_BYTES, array_of
from unisono.comm.codec_agreement import RoundingMode, agrees
from unisono.comm.encoding import block_of, codec_for, rounding_mode_of
from unisono.comm.nontemporal import writes_past_caches
from unisono.comm.plan_record import PlanRecord
from unisono.comm.programs import Compiled, check_blocks, compiled
from unisono.comm.selection import choose
from unisono.comm.topk_all_reduce import all_reduce_largest
from unisono.comm.work import Work
from unisono.compiler import lay_out_call
from unisono.errors import UsageError
from unisono.reductions import check_op
from unisono.schedule import Schedule

MOST_PLANS = 1024
MOST_PROGRAMS = 256
LARGEST_TAG = 2**32 - 1
ANY_RANK = -1  # to the engine
FOR_UNEQUAL = "naive"


class Calls:
    """Makes the calls of one communicator, and remembers what it computed for them."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.programs: dict[tuple[object, int | None, RoundingMode], Compiled] = {}
        self.plans: dict[tuple[object, ...], _engine.Plan] = {}
        self.made: dict[int, PlanRecord] = {}  # by the number of the plan; for traces
        self.recordings = 0  # that go on, and want to know what plans were made of
        self.traces = 0  # that were made so far

    def make(
        self, collective: Collective, out: Any, array: Any, op: str | None, root: int | None, algorithm: Any,
        async_op: bool, timeout: float | None, sizes: Sequence[int] | None = None,
        out_sizes: Sequence[int] | None = None, codec: Any = None,
    ) -> Work | None:  # fmt: skip
        """Make a call of any collective but barrier."""
        link = self.link
        self.link.check_open(collective.name)
        _check_timeout(collective.name, timeout)
        if collective.rooted and not (type(root) is int and 0 <= root < link.size):
            raise UsageError(f"{collective}: root={root!r}; expected a rank from 0 to {link.size - 1}")
        given = arguments_of(collective, link.rank, link.size, root, out, array, sizes, out_sizes)
        if op is not None:
            op = check_op(op, given.dtype)
        encoded = codec_for(collective, codec, given.dtype)
        if encoded is not None and encoded.is_topk:
            return all_reduce_largest(self, out, encoded, op or "sum", algorithm, async_op, timeout)
        plan = self.plan_for(collective, given, op, root, algorithm, encoded)
        if sizes is None and out_sizes is None:
            link.endpoint.remember(plan, COLLECTIVES.index(collective), out, array, op, root or 0, algorithm, codec)
        keeps = (given.input.owner, given.output.owner)
        return self.run(plan, given.input.address, given.output.address, async_op, timeout, keeps)

    def barrier(self, algorithm: Any, async_op: bool, timeout: float | None) -> Work | None:
        """Make a barrier."""
        self.link.check_open("barrier")
        _check_timeout("barrier", timeout)
        plan = self.plan_for(collectives.barrier, Arguments.nothing(), None, None, algorithm)
        number = COLLECTIVES.index(collectives.barrier)
        self.link.endpoint.remember(plan, number, None, None, None, 0, algorithm, None)
        return self.run(plan, 0, 0, async_op, timeout, None)

    @overload
    def transfer(
        self, array: Any, peer: int, tag: int, sending: Literal[True], async_op: bool, timeout: float | None
    ) -> Work | None: ...
    @overload
    def transfer(
        self, array: Any, peer: int | None, tag: int, sending: Literal[False], async_op: bool, timeout: float | None
    ) -> Work | int | None: ...
    def transfer(
        self, array: Any, peer: int | None, tag: int, sending: bool, async_op: bool, timeout: float | None
    ) -> Work | int | None:
        """Send to a peer, or receive from it. From any (None): return the one whose message it was."""
        name = "send" if sending else "recv"
        self.link.check_open(name)
        _check_timeout(name, timeout)
        any_rank = peer is None and not sending and self.link.size > 1
        if not any_rank and not (type(peer) is int and 0 <= peer < self.link.size and peer != self.link.rank):
            raise UsageError(
                f"{name}: {'dst' if sending else 'src'}={peer!r} on rank {self.link.rank}; expected another rank "
                f"from 0 to {self.link.size - 1}{'' if sending else ', or None for any'}"
            )
        if type(tag) is not int or not 0 <= tag <= LARGEST_TAG:
            raise UsageError(f"{name}: tag={tag!r}; expected a number from 0 to {LARGEST_TAG}")
        given = array_of(array, f"{name}: the array", writable=not sending)
        endpoint, limit = self.link.endpoint, self._limit(timeout)
        endpoint.raise_if_broken()
        what = (sending, ANY_RANK if peer is None else peer, tag, given.address, given.length, given.dtype, limit)
        if not async_op:
            source = endpoint.transfer(*what)
            return source if peer is None else None
        other = "any rank" if peer is None else f"rank {peer}"
        words = f"{name} of {given.length} {given.dtype} {'to' if sending else 'from'} {other} with tag {tag}"
        return Work(endpoint, endpoint.start_transfer(*what, keeps=given.owner), words)

    def compiled_for(
        self,
        collective: Collective,
        algorithm: Any,
        root: int | None,
        nbytes: int,
        rounds: RoundingMode = RoundingMode.NONE,
    ) -> Compiled:
        """Return the program for a call: of the algorithm that was asked for, or the best one known."""
        size, config = self.link.size, self.link.config
        if algorithm is None:
            algorithm = choose(
                collective, size, nbytes, config.table, config.oversubscribed,
                lambda one: rounds is RoundingMode.NONE or agrees(one.schedule(size, root), rounds),
            ).algorithm  # fmt: skip
        elif isinstance(algorithm, str):
            named = resolve(algorithm, collective)
            algorithm = named.written if isinstance(named, WrittenSchedule) else named
        key = (algorithm if isinstance(algorithm, Algorithm) else id(algorithm), root, rounds)
        found = self.programs.get(key)
        if found is None:
            if len(self.programs) >= MOST_PROGRAMS:
                # Together: what a key means is known only as long as `programs` keeps the schedule alive.
                self.programs.clear()
                self.plans.clear()
            schedule = _schedule(collective, algorithm, size, root)
            found = self.programs[key] = compiled(schedule, self.link.rank, rounds)
        return found

    def plan_for(
        self, collective: Collective, given: Arguments, op: str | None, root: int | None, algorithm: Any,
        codec: Codec | None = None, called: str | None = None,
    ) -> _engine.Plan:  # fmt: skip
        """Return the plan of a call, made once for all calls alike. Addresses do not matter to it.

        ``called``: what the user has called, where it is something else.
        """
        # A schedule is known by its identity: `programs` keeps it alive.
        named = algorithm if isinstance(algorithm, str | Algorithm | None) else id(algorithm)
        key = (collective.name, given.lengths, given.dtype, op, root, named, codec, called)
        plan = self.plans.get(key)
        if plan is None:
            if len(self.plans) >= MOST_PLANS:
                self.plans.clear()
                if not self.recordings:
                    self.made.clear()
            plan = self.plans[key] = self._make_plan(collective, given, op, root, algorithm, codec, called)
        return plan

    def _make_plan(
        self, collective: Collective, given: Arguments, op: str | None, root: int | None, algorithm: Any,
        codec: Codec | None, called: str | None,
    ) -> _engine.Plan:  # fmt: skip
        link, lengths = self.link, given.lengths
        element = ELEMENT_BYTES[given.dtype]
        total = sum(lengths.input)
        if algorithm is None and not lengths.equal:
            algorithm = FOR_UNEQUAL  # every rank must choose the same, and they know different lengths
        made = self.compiled_for(collective, algorithm, root, total * element, rounding_mode_of(codec))
        check_blocks(made, lengths.equal_blocks)
        numbers = lay_out_call(
            made.lowered, made.schedule, collective, link.rank, lengths, element, link.geometry.staging_bytes,
            block=block_of(codec),
        )  # fmt: skip
        words = [f"{total if lengths.equal else 'unequal'} {given.dtype}"] if collective.carries_data else []
        words += [f"op={op}"] if op else []
        words += [f"root={root}"] if root is not None else []
        words += [f"codec={codec}"] if codec is not None else []
        text = called or f"{collective}({', '.join([*words, f'algorithm={made.name}'])})"
        known_to_all = (lengths.input, lengths.output) if lengths.equal else None
        about = (text, made.digest, known_to_all, numbers.segment_bytes)
        plan = _engine.make_plan(
            program=made.program, extents=numbers.extents, segment_bytes=numbers.segment_bytes, passes=numbers.passes,
            work_bytes=numbers.work_bytes, dtype=given.dtype,
            reduction="" if op is None else "sum" if op == "avg" else op, divides=op == "avg",
            skips_empty=not lengths.equal, streams=writes_past_caches(collective, given.output.nbytes, link.size),
            wire="none" if codec is None else codec.name, stochastic=codec is not None and codec.stochastic,
            seed=0 if codec is None else codec.seed,
            fingerprint=int.from_bytes(hashlib.blake2b(repr(about).encode(), digest_size=8).digest(), "little"),
            text=text,
        )  # fmt: skip
        self.made[plan.number] = PlanRecord(made, numbers, lengths, given.dtype, op, root, codec, text)
        return plan

    def run(
        self, plan: _engine.Plan, source: int, target: int, async_op: bool, timeout: float | None, keeps: Any,
        finish: Callable[[], None] | None = None,
    ) -> Work | None:  # fmt: skip
        """Execute a plan, now or in the background; ``finish`` is what is left to do when the engine is done."""
        endpoint = self.link.endpoint
        if not async_op:
            endpoint.run(plan, source, target, self._limit(timeout))
            if finish is not None:
                finish()
            return None
        endpoint.raise_if_broken()
        completion = endpoint.start(plan, source, target, self._limit(timeout), keeps)
        return Work(endpoint, completion, plan.text, finish)

    def _limit(self, timeout: float | None) -> float:
        return self.link.endpoint.timeout_s if timeout is None else timeout


def _schedule(collective: Collective, algorithm: Any, size: int, root: int | None) -> Schedule:
    """Return the schedule of an algorithm, or the one that was given in its place."""
    if isinstance(algorithm, Algorithm):
        if algorithm.collective is not collective:
            raise UsageError(f"{collective}: algorithm={algorithm} does a {algorithm.collective}")
        return algorithm.schedule(size, root)
    if not isinstance(algorithm, Schedule):
        raise UsageError(
            f"{collective}: algorithm={algorithm!r}; expected a name, an algorithm (@algorithm) or a schedule"
        )
    found = (algorithm.collective, algorithm.size, algorithm.root)
    if found != (collective.name, size, root):
        raise UsageError(
            f"{collective}: the schedule is for {found[0]} on {found[1]} ranks with root {found[2]}; expected "
            f"{collective} on {size} ranks with root {root}"
        )
    return algorithm


def _check_timeout(name: str, timeout: float | None) -> None:
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise UsageError(f"{name}: timeout={timeout!r}; expected seconds, more than 0")
