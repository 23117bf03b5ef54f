"""Changes a schedule in one small way, like a typical programming error."""

from __future__ import annotations

import random
from collections.abc import Callable

from builders import with_steps
from unisono import Schedule, find
from unisono.schedule.ops import RECV, RECV_REDUCE, Op

Programs = list[list[list[Op]]]


def drop_op(programs: Programs, rng: random.Random, size: int, slots: int) -> None:
    step = _some_step(programs, rng)
    step.pop(rng.randrange(len(step)))


def drop_step(programs: Programs, rng: random.Random, size: int, slots: int) -> None:
    program = _some_program(programs, rng)
    program.pop(rng.randrange(len(program)))


def duplicate_op(programs: Programs, rng: random.Random, size: int, slots: int) -> None:
    step = _some_step(programs, rng)
    step.insert(rng.randrange(len(step) + 1), Op(*rng.choice(step)))


def duplicate_step(programs: Programs, rng: random.Random, size: int, slots: int) -> None:
    program = _some_program(programs, rng)
    program.insert(rng.randrange(len(program) + 1), list(rng.choice(program)))


def swap_steps(programs: Programs, rng: random.Random, size: int, slots: int) -> None:
    program = _some_program(programs, rng)
    one, other = rng.randrange(len(program)), rng.randrange(len(program))
    program[one], program[other] = program[other], program[one]


def swap_ops(programs: Programs, rng: random.Random, size: int, slots: int) -> None:
    program = _some_program(programs, rng)
    one, other = rng.choice(program), rng.choice(program)
    i, j = rng.randrange(len(one)), rng.randrange(len(other))
    one[i], other[j] = other[j], one[i]


def shift_peer(programs: Programs, rng: random.Random, size: int, slots: int) -> None:
    _change_op(
        programs, rng, lambda rank, op: op if op.is_local else _peer(op, (op.other + rng.choice((1, -1))) % size)
    )


def shift_chunk(programs: Programs, rng: random.Random, size: int, slots: int) -> None:
    by = rng.choice((1, -1))

    def shifted(rank: int, op: Op) -> Op:
        if isinstance(op.chunks, int):
            return op._replace(chunks=(op.chunks + by) % slots)
        position = rng.randrange(len(op.chunks))
        chunks = list(op.chunks)
        chunks[position] = (chunks[position] + by) % slots
        return op._replace(chunks=tuple(chunks))

    _change_op(programs, rng, shifted)


def confuse_receives(programs: Programs, rng: random.Random, size: int, slots: int) -> None:
    other_kind = {RECV: RECV_REDUCE, RECV_REDUCE: RECV}
    _change_op(programs, rng, lambda rank, op: op._replace(kind=other_kind.get(op.kind, op.kind)))


def mirror_direction(programs: Programs, rng: random.Random, size: int, slots: int) -> None:
    _change_op(programs, rng, lambda rank, op: op if op.is_local else _peer(op, (2 * rank - op.other) % size))


def mirror_rank(programs: Programs, rng: random.Random, size: int, slots: int) -> None:
    rank = rng.randrange(len(programs))
    for step in programs[rank]:
        step[:] = [op if op.is_local else _peer(op, (2 * rank - op.other) % size) for op in step]


MUTATIONS: tuple[Callable[[Programs, random.Random, int, int], None], ...] = (
    drop_op, drop_step, duplicate_op, duplicate_step, swap_steps, swap_ops, shift_peer, shift_chunk,
    confuse_receives, mirror_direction, mirror_rank,
)  # fmt: skip


def mutant(name: str, seed: int) -> tuple[str, Schedule] | None:
    """Return a spoilt schedule and a description of the change; None if the mutation changed nothing."""
    rng = random.Random(f"{name} {seed}")
    algorithm = find(name)
    size = rng.choice((2, 3, 4, 5, 6, 7, 8))
    schedule = algorithm.schedule(size, rng.randrange(size) if algorithm.collective.rooted else None)
    programs = [[list(step) for step in schedule.program(rank)] for rank in range(size)]
    before = [[tuple(step) for step in program] for program in programs]
    mutation = rng.choice(MUTATIONS)
    mutation(programs, rng, size, schedule.slots)
    after = [[tuple(step) for step in program if step] for program in programs]
    if after == before:
        return None
    return f"{mutation.__name__} of {name} on {size} ranks, seed {seed}", with_steps(schedule, after)


def _some_program(programs: Programs, rng: random.Random) -> list[list[Op]]:
    return rng.choice([program for program in programs if program])


def _some_step(programs: Programs, rng: random.Random) -> list[Op]:
    return rng.choice(_some_program(programs, rng))


def _change_op(programs: Programs, rng: random.Random, change: Callable[[int, Op], Op]) -> None:
    rank = rng.choice([rank for rank, program in enumerate(programs) if program])
    step = rng.choice(programs[rank])
    position = rng.randrange(len(step))
    step[position] = change(rank, step[position])


def _peer(op: Op, peer: int) -> Op:
    return op._replace(other=peer)
