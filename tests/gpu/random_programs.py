"""Random all-reduce programs: every chunk is added up along a random tree and sent back along another one.

The transfers of all chunks are mixed, so that sums, copies and results of different chunks overlap in time; some
transfers go through scratch slots.
"""

from __future__ import annotations

import random

from unisono import Schedule, combine, copy, recv, recv_reduce, send


def random_all_reduce(seed: int) -> Schedule:
    """Return a program that ends and is correct, as its transfers could be made one after another."""
    rng = random.Random(seed)
    size, chunks = rng.randint(2, 7), rng.randint(1, 4)
    pending = [_transfers(rng, size) for _ in range(chunks)]
    programs: list[list[tuple]] = [[] for _ in range(size)]
    while any(pending):
        chunk = rng.choice([number for number, transfers in enumerate(pending) if transfers])
        source, target, reduces = pending[chunk].pop(0)
        slot = chunk
        if rng.random() < 0.3:  # the sender sends a copy
            slot = chunks
            programs[source].append((copy(chunk, to=slot),))
        programs[source].append((send(slot, dst=target),))
        if rng.random() < 0.3:  # the receiver uses a copy
            programs[target].append((recv(chunks + 1, src=source),))
            how = combine(chunks + 1, into=chunk) if reduces else copy(chunks + 1, to=chunk)
        else:
            how = (recv_reduce if reduces else recv)(chunk, src=source)
        programs[target].append((how,))
    return Schedule(
        collective="all_reduce", algorithm=f"random_{seed}", size=size, chunks=chunks, slots=chunks + 2,
        make=programs.__getitem__,
    )  # fmt: skip


def _transfers(rng: random.Random, size: int) -> list[tuple[int, int, bool]]:
    """Return source, target, and whether it adds, for one chunk."""
    found = []
    holders = list(range(size))
    while len(holders) > 1:
        source = holders.pop(rng.randrange(len(holders)))
        found.append((source, rng.choice(holders), True))
    done, missing = holders, [rank for rank in range(size) if rank not in holders]
    rng.shuffle(missing)
    for target in missing:
        found.append((rng.choice(done), target, False))
        done.append(target)
    return found
