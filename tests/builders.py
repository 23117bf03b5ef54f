"""Short notations for schedules in tests, and the inputs and expected results of collectives."""

from __future__ import annotations

import numpy as np

from unisono import Schedule, algorithm, combine, copy, recv, recv_reduce, send
from unisono.algorithms import BUILT_IN
from unisono.collectives import all_reduce, find
from unisono.schedule.text import parse_schedule

SIZES = (1, 2, 3, 5, 6, 7, 8, 13)  # not 4, at which few bugs show
NAMES = [str(algorithm) for algorithm in BUILT_IN]


def written(collective: str, chunks: int, *programs: str, slots: int | None = None, root: int | None = None):
    """Return a schedule from one text per rank, with a step on each line."""
    lines = ["unisono schedule 1", f"collective {collective}", "algorithm mine", f"size {len(programs)}"]
    lines += [f"chunks {chunks}", f"slots {slots or chunks}"]
    lines += [] if root is None else [f"root {root}"]
    for rank, program in enumerate(programs):
        steps = [line.strip() for line in program.strip().splitlines() if line.strip()]
        lines += [f"rank {rank}", *(f"{index}: {step}" for index, step in enumerate(steps, 1))]
    return parse_schedule("\n".join(lines))


def xor_exchange(rank: int, size: int):
    """Exchange sums with the rank that differs in one bit: correct only for powers of two."""
    distance = 1
    while distance < size:
        yield send(0, dst=rank ^ distance), recv_reduce(0, src=rank ^ distance)
        distance *= 2


def line_steps(rank: int, size: int):
    """Sum up a line of ranks, then send the sum back along it."""
    if rank > 0:
        yield recv_reduce(0, src=rank - 1)
    if rank < size - 1:
        yield send(0, dst=rank + 1)
        yield recv(0, src=rank + 1)
    if rank > 0:
        yield send(0, dst=rank - 1)


@algorithm(all_reduce)
def there_and_back(rank: int, size: int):
    """Send the data of rank 1 to rank 0, which adds it and sends the sum back."""
    if rank == 0:
        yield recv_reduce(0, src=1)
        yield send(0, dst=1)
    else:
        yield send(0, dst=0)
        yield recv(0, src=0)


@algorithm(all_reduce, scratch=1)
def keeps_a_copy(rank: int, size: int):
    """Correct on two ranks without a codec. With one, each rank adds its own data unrounded, and they disagree."""
    yield copy(0, to=1)
    yield send(0, dst=1 - rank), recv(0, src=1 - rank)
    yield combine(1, into=0)


def with_steps(schedule: Schedule, programs: list[list[tuple]]) -> Schedule:
    """Return the same schedule with other steps."""
    return Schedule(
        collective=schedule.collective, algorithm=schedule.algorithm, size=schedule.size, chunks=schedule.chunks,
        slots=schedule.slots, make=programs.__getitem__, root=schedule.root,
    )  # fmt: skip


def inputs_for(schedule: Schedule, make, per_chunk: int = 3, more: int = 0) -> list[np.ndarray | None]:
    """Return an input for each rank that has one; ``make(rank, length)`` gives the numbers.

    With ``more`` the vector is that many elements longer, so that its chunks differ in length.
    """
    collective = find(schedule.collective)
    inputs = []
    for rank in range(schedule.size):
        held = collective.held_before(rank, schedule.size, schedule.chunks, schedule.root or 0)
        inputs.append(make(rank, per_chunk * len(held) + more) if len(held) else None)
    return inputs


def wanted_outputs(schedule: Schedule, inputs: list[np.ndarray | None]) -> list[np.ndarray | None]:
    """Return the results by the textbook definition, with a numpy expression for each collective."""
    size, root = schedule.size, schedule.root or 0
    ranks = range(size)
    match schedule.collective:
        case "broadcast":
            return [inputs[root] for _ in ranks]
        case "scatter":
            return list(np.array_split(inputs[root], size))
        case "gather":
            return [np.concatenate(inputs) if rank == root else None for rank in ranks]
        case "reduce":
            return [np.sum(inputs, axis=0) if rank == root else None for rank in ranks]
        case "all_gather":
            return [np.concatenate(inputs) for _ in ranks]
        case "reduce_scatter":
            return list(np.array_split(np.sum(inputs, axis=0), size))
        case "all_reduce":
            return [np.sum(inputs, axis=0) for _ in ranks]
        case "all_to_all":
            letters = [np.array_split(sent, size) for sent in inputs]
            return [np.concatenate([letters[source][rank] for source in ranks]) for rank in ranks]
    raise AssertionError(schedule.collective)


def same(outputs: list[np.ndarray | None], wanted: list[np.ndarray | None]) -> bool:
    """Return whether two lists of results are equal, element by element."""
    return all(
        (one is None and other is None) or (one is not None and other is not None and np.array_equal(one, other))
        for one, other in zip(outputs, wanted, strict=True)
    )
