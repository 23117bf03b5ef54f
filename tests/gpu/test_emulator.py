"""The emulator can fail: without any one of its waits, or with a signal too early, a program gives wrong results."""

from __future__ import annotations

from dataclasses import replace

import pytest
from emulated import calls_and_results, is_right
from emulator import KERNEL, STREAM, Emulator, Stuck, Trespass

from builders import written
from unisono.algorithms import find
from unisono.gpu.plans import DevicePlan
from unisono.gpu.program import Step, unpack
from unisono.gpu.stream_plan import WAIT, pack_stream_ops, unpack_stream_ops

CASES = [
    ("direct", 3), ("naive", 3), ("ring", 3), ("recursive_doubling", 3), ("tree", 5), ("all_gather/naive", 3),
    ("all_gather/ring", 3), ("reduce_scatter/naive", 3), ("reduce_scatter/ring", 3), ("broadcast/tree", 5),
    ("all_to_all/bruck", 3), ("scatter/tree", 5),
]  # fmt: skip
MOST_SEEDS = 150


def without_wait(plan: DevicePlan, size: int, number: int) -> DevicePlan:
    """Return the same plan without its wait ``number``; it still counts the signals that it receives."""
    program = unpack(plan.program, size)
    steps = []
    for step in program.steps:
        kept = tuple(wait for at, wait in enumerate(step.waits) if at != number)
        steps.append(step._replace(waits=kept))
        number -= len(step.waits)
    trailer = 8 * size
    return replace(plan, program=program._replace(steps=tuple(steps)).pack()[:-trailer] + plan.program[-trailer:])


def wait_count(plan: DevicePlan, size: int) -> int:
    return sum(len(step.waits) for step in unpack(plan.program, size).steps)


def fails(schedule, mutated, mode: str) -> bool:
    """Return whether some interleaving of a changed call gives wrong results; ``mutated`` changes the plans."""
    calls, wanted = calls_and_results(schedule, 11 if schedule.collective != "all_to_all" else 9, blocks=1)
    for call in calls:
        call.plans = mutated(call.plans)
    try:
        return any(not is_right(Emulator(calls, seed, mode, tile=16), wanted) for seed in range(MOST_SEEDS))
    except Trespass:
        return True


@pytest.mark.parametrize(("name", "size"), CASES)
def test_every_wait_is_needed(name, size):
    algorithm = find(name)
    schedule = algorithm.schedule(size, 0 if algorithm.collective.rooted else None)
    (call, *_), _ = calls_and_results(schedule, 9, blocks=1)
    removed = 0
    for rank in range(size):
        for number in range(wait_count(call.plans[rank], size)):

            def mutated(plans, rank=rank, number=number):
                changed = list(plans)
                changed[rank] = without_wait(plans[rank], size, number)
                return changed

            assert fails(schedule, mutated, KERNEL), f"{name}: rank {rank} does not need its wait {number}"
            removed += 1
    assert removed > 0


def test_every_wait_of_a_stream_is_needed():
    schedule = find("direct").schedule(3)
    (call, *_), _ = calls_and_results(schedule, 9)
    ops = unpack_stream_ops(call.plans[0].stream_ops)
    for at in [at for at, op in enumerate(ops) if op.kind == WAIT]:

        def mutated(plans, at=at):
            left = pack_stream_ops([op for index, op in enumerate(ops) if index != at])
            return [replace(plans[0], stream_ops=left), *plans[1:]]

        assert fails(schedule, mutated, STREAM), ops[at]


def test_a_wait_without_its_signal_is_reported():
    calls, _ = calls_and_results(find("direct").schedule(3), 9)
    plan = calls[0].plans[0]
    program = unpack(plan.program, 3)
    silent = tuple(Step(step.waits, step.moves, ()) for step in program.steps)
    calls[0].plans = [replace(plan, program=program._replace(steps=silent).pack()), *calls[0].plans[1:]]
    with pytest.raises(Stuck):
        Emulator(calls, 0).run()


def test_a_pull_across_ranks_that_overwrite_their_data_fails_without_staging():
    """The emulator notices a sender that overwrites what it has sent before the receiver has read it."""
    schedule = written("all_reduce", 1, "send 0 to 1; recv_reduce 0 from 1", "send 0 to 0; recv_reduce 0 from 0")
    calls, wanted = calls_and_results(schedule, 9)
    assert all(is_right(Emulator(calls, seed), wanted) for seed in range(20))

    def unsynchronized(plans):
        for rank in range(2):
            while wait_count(plans[rank], 2):
                plans = [*plans[:rank], without_wait(plans[rank], 2, 0), *plans[rank + 1 :]]
        return plans

    assert fails(schedule, unsynchronized, KERNEL)
