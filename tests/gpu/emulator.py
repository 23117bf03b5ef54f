"""Runs the packed device programs of all ranks on numpy arrays, with every interleaving that a seed gives.

It knows only the words of the programs and of the stream operations, which it unpacks; a tile is read and written in
separate moments, between which any other rank or thread block may run. Memory that a rank may not rely on is garbage:
scratch memory and outputs before a call, and everything that belongs to a rank once its call is over.

In *kernel mode* every thread block of every rank runs the whole program on its tiles, with separate counters; in
*stream mode* a rank runs its stream operations one by one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unisono.codecs import Codec, decode, encode
from unisono.gpu.plans import DevicePlan
from unisono.gpu.program import APART, DIVIDE, INPUT, OUTPUT, REDUCE, ROUND, SCRATCH, Move, Ref, unpack
from unisono.gpu.stream_plan import LAUNCH, POST, SIGNAL, unpack_stream_ops
from unisono.player.reduction import combining, combining_wide, finished, rounded

KERNEL, STREAM = "kernel", "stream"
BLOCKS = 0  # in stream mode there is one sequence of operations, and one set of counters

# A coroutine yields None where it can continue, else the condition that it waits for.
Actor = Iterator[Callable[[], bool] | None]


ENTERS, LEAVES = "enters", "leaves"
CHANGES = 0.03  # how often another one goes first


class Stuck(Exception):
    """No rank can continue."""


class Trespass(Exception):
    """A rank uses memory outside of the arrays of a call."""


@dataclass(eq=False)
class _Running:
    actor: Actor
    priority: float
    waits_for: Callable[[], bool] | None = None


@dataclass
class EmulatedCall:
    """A call of all ranks; ``outputs`` are the lengths of the results in elements, None where a rank has none.

    ``offsets``: the input of a rank lies in its output, that many elements after its begin. ``single_array``: input
    and output are the same array.
    """

    plans: Sequence[DevicePlan]
    inputs: Sequence[np.ndarray | None]
    outputs: Sequence[int | None]
    dtype: np.dtype
    op: str | None = None
    codec: Codec | None = None
    single_array: bool = False
    offsets: Sequence[int] | None = None


class Emulator:
    """The memory and the counters of all ranks."""

    def __init__(self, calls: Sequence[EmulatedCall], seed: int, mode: str = KERNEL, tile: int = 16) -> None:
        self.calls, self.mode, self.tile = calls, mode, tile
        self.random = random.Random(seed)
        self.garbage = np.random.default_rng(seed)
        self.size = len(calls[0].plans)
        scratch = max(plan.scratch_bytes for call in calls for plan in call.plans)
        self.memory = [{SCRATCH: self._garbage(scratch)} for _ in range(self.size)]
        self.entered: Counter = Counter()  # by rank that enters, peer, block
        self.awaited: Counter = Counter()  # by rank that waits, peer, block: the entries that it has seen
        self.signals: Counter = Counter()  # by sender, receiver, block
        self.sent: Counter = Counter()  # by sender, receiver, block: at the beginning of the call
        self.received: Counter = Counter()
        self.results: list[list[np.ndarray | None]] = [[None] * self.size for _ in calls]
        self.log: list[tuple[str, int, int]] = []  # which rank enters or leaves which call
        self.running: list[_Running] = []

    def run(self) -> list[list[np.ndarray | None]]:
        """Return the results of every call, of every rank; raise Stuck if they do not end."""
        self.running = [_Running(self._user(rank), self.random.random()) for rank in range(self.size)]
        while self.running:
            # The first one in a random order of priorities continues, for a random while.
            self.running.sort(key=lambda each: each.priority)
            chosen = next((each for each in self.running if each.waits_for is None or each.waits_for()), None)
            if chosen is None:
                raise Stuck(f"{len(self.running)} ranks and blocks wait for each other")
            try:
                chosen.waits_for = next(chosen.actor)
            except StopIteration:
                self.running.remove(chosen)
            if self.random.random() < CHANGES:
                chosen.priority = self.random.random()
        return self.results

    def _user(self, rank: int) -> Actor:
        """Make all calls of a rank, one after another."""
        for number in range(len(self.calls)):
            self._enter(rank, number)
            self.log.append((ENTERS, rank, number))
            blocks = [_Running(actor, self.random.random()) for actor in self._actors(rank, number)]
            self.running += blocks
            yield lambda blocks=blocks: not any(block in self.running for block in blocks)
            self.log.append((LEAVES, rank, number))
            self._leave(rank, number)
            yield None

    # ---- the user's buffers ------------------------------------------------------------------------------------

    def _garbage(self, count: int) -> np.ndarray:
        return self.garbage.integers(0, 256, count, np.uint8)

    def _enter(self, rank: int, number: int) -> None:
        """Prepare the arrays of a rank for a call."""
        call = self.calls[number]
        given, length = call.inputs[rank], call.outputs[rank]
        element = call.dtype.itemsize
        here = self.memory[rank]
        here[OUTPUT] = self._garbage((length or 0) * element)
        if given is None:
            here[INPUT] = here[OUTPUT] if call.single_array else np.empty(0, np.uint8)
            return
        source = given.view(np.uint8)
        if call.single_array and length is not None:
            here[OUTPUT][:] = source
            here[INPUT] = here[OUTPUT]
        elif call.offsets is not None and length is not None:
            first = call.offsets[rank] * element
            here[INPUT] = here[OUTPUT][first : first + len(source)]
            here[INPUT][:] = source
        else:
            here[INPUT] = source.copy()
            if call.single_array:
                here[OUTPUT] = here[INPUT]

    def _leave(self, rank: int, number: int) -> None:
        """Keep the result of a rank, and overwrite all that belongs to it, as its user may."""
        call, here = self.calls[number], self.memory[rank]
        if call.outputs[rank] is not None:
            self.results[number][rank] = here[OUTPUT].copy().view(call.dtype)
        for array in here.values():
            array[:] = self._garbage(len(array))

    # ---- programs ----------------------------------------------------------------------------------------------

    def _actors(self, rank: int, number: int) -> list[Actor]:
        if self.mode == STREAM:
            return [self._stream(rank, number)]
        return [self._block(rank, block, number) for block in range(self.calls[number].plans[rank].blocks)]

    def _block(self, rank: int, block: int, number: int) -> Actor:
        plan = self.calls[number].plans[rank]
        program = unpack(plan.program, self.size)
        for peer in self._shuffled(program.contacts):
            self.entered[rank, peer, block] += 1
            yield None
        for peer in program.contacts:
            self.awaited[rank, peer, block] += 1
            yield lambda peer=peer: self.entered[peer, rank, block] >= self.awaited[rank, peer, block]
        for each in range(program.passes):
            for step in program.steps:
                for peer, count in step.waits:
                    wanted = self.received[rank, peer, block] + count
                    yield lambda peer=peer, wanted=wanted: self.signals[peer, rank, block] >= wanted
                yield from self._moves(rank, number, step.moves, each, program.segment_bytes, block, plan.blocks)
                for peer, count in self._shuffled(step.signals):
                    self.signals[rank, peer, block] = self.sent[rank, peer, block] + count
                    yield None
            for peer in range(self.size):
                self.sent[rank, peer, block] += _sent(plan.program, self.size, peer)
                self.received[rank, peer, block] += _received(plan.program, self.size, peer)

    def _stream(self, rank: int, number: int) -> Actor:
        plan = self.calls[number].plans[rank]
        program = unpack(plan.program, self.size)
        for kind, peer, count, step in unpack_stream_ops(plan.stream_ops):
            if kind == POST:
                pass  # what an entry says is known here; the signal after it says when
            elif kind == SIGNAL:
                self.signals[rank, peer, BLOCKS] = self.sent[rank, peer, BLOCKS] + count
            elif kind == LAUNCH:
                moves = program.steps[step].moves
                yield from self._launch(rank, number, moves, count, program.segment_bytes)
                continue
            else:
                wanted = self.received[rank, peer, BLOCKS] + count
                yield lambda peer=peer, wanted=wanted: self.signals[peer, rank, BLOCKS] >= wanted
                continue
            yield None
        for peer in program.contacts:
            self.sent[rank, peer, BLOCKS] += 1 + program.passes * _sent(plan.program, self.size, peer)
            self.received[rank, peer, BLOCKS] += 1 + program.passes * _received(plan.program, self.size, peer)

    def _launch(self, rank: int, number: int, moves: Sequence[Move], each: int, segment: int) -> Actor:
        """Run the moves of a step with all thread blocks, which take turns at random."""
        blocks = self.calls[number].plans[rank].blocks
        running = [self._moves(rank, number, moves, each, segment, block, blocks) for block in range(blocks)]
        while running:
            block = self.random.choice(running)
            try:
                yield next(block)
            except StopIteration:
                running.remove(block)

    def _moves(
        self, rank: int, number: int, moves: Sequence[Move], each: int, segment: int, block: int, blocks: int
    ) -> Actor:
        """Move the tiles of a block, of independent moves in any order.

        A tile is read, and then written to one destination after another.
        """
        groups: list[list[tuple[Move, int, int]]] = [[]]
        for move in moves:
            length = min(max(move.length - each * segment, 0), segment)
            tiles = [(move, first, min(self.tile, length - first)) for first in range(0, length, self.tile)]
            if not move.flags & APART:
                groups.append([])
            groups[-1] += tiles[block::blocks]
        for group in groups:
            yield from self._tiles(rank, number, group, each * segment)

    def _tiles(self, rank: int, number: int, tiles: list[tuple[Move, int, int]], done: int) -> Actor:
        for move, first, count in self._shuffled(tiles):
            values = [self._read(rank, number, ref, done, first, count) for ref in move.sources]
            yield None
            result = self._value(number, move, values)
            for ref in self._shuffled(move.destinations):
                self._write(rank, number, ref, done, first, result)
                yield None

    def _value(self, number: int, move: Move, values: list[np.ndarray]) -> np.ndarray:
        call = self.calls[number]
        value = values[0]
        if move.flags & REDUCE:
            add = combining(call.op, call.dtype)
            wide = combining_wide(call.op, call.dtype)
            for other in values[1:]:
                value = (wide or add)(value, other)
            value = rounded(value, call.dtype) if wide else value
        else:
            assert len(values) == 1
        if move.flags & ROUND:
            value = decode(encode(value, call.codec), call.codec, len(value))
        return finished("avg", value, self.size) if move.flags & DIVIDE else value

    # ---- memory ------------------------------------------------------------------------------------------------

    def _slice(self, rank: int, number: int, ref: Ref, begin: int, count: int) -> np.ndarray:
        memory = self.memory[ref.rank].get(ref.buffer)
        if memory is None:
            raise Trespass(f"rank {rank} uses memory of rank {ref.rank} before it has entered")
        if ref.rank != rank and ref.buffer != SCRATCH:
            plan = self.calls[number].plans[ref.rank]  # of the rank that posted the address
            begin += (plan.bias_out if ref.buffer == OUTPUT else plan.bias_in)[rank]
        begin += ref.offset
        if begin + count > len(memory):
            raise Trespass(f"rank {rank} uses bytes {begin} to {begin + count} of {len(memory)} of {ref}")
        return memory[begin : begin + count]

    def _bytes(self, number: int, ref: Ref, done: int, first: int, count: int) -> tuple[int, int]:
        """Return where a tile begins, and its bytes."""
        call = self.calls[number]
        if ref.encoded:
            element = call.dtype.itemsize
            return call.codec.wire_bytes(first // element), call.codec.wire_bytes(count // element)
        return first + (0 if ref.buffer == SCRATCH else done), count

    def _read(self, rank: int, number: int, ref: Ref, done: int, first: int, count: int) -> np.ndarray:
        call = self.calls[number]
        found = self._slice(rank, number, ref, *self._bytes(number, ref, done, first, count)).copy()
        if ref.encoded:
            return decode(found, call.codec, count // call.dtype.itemsize)
        return found.view(call.dtype)

    def _write(self, rank: int, number: int, ref: Ref, done: int, first: int, value: np.ndarray) -> None:
        target = self._slice(rank, number, ref, *self._bytes(number, ref, done, first, value.nbytes))
        target[:] = encode(value, self.calls[number].codec) if ref.encoded else value.view(np.uint8)

    def _shuffled(self, things: Sequence) -> list:
        found = list(things)
        self.random.shuffle(found)
        return found


def _sent(packed: bytes, size: int, peer: int) -> int:
    return int(np.frombuffer(packed, "<u4")[-2 * size :][2 * peer])


def _received(packed: bytes, size: int, peer: int) -> int:
    return int(np.frombuffer(packed, "<u4")[-2 * size :][2 * peer + 1])
