"""Device programs give the player's bits in every interleaving of ranks and thread blocks that is tried."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from emulated import blocks_of, check_against_player, emulated_call, inputs_of
from emulator import ENTERS, KERNEL, LEAVES, STREAM, Emulator
from random_programs import random_all_reduce

from arrays import bits
from builders import NAMES, SIZES, written
from mutation import mutant
from unisono import collectives
from unisono.algorithms import find
from unisono.compiler import Lengths
from unisono.errors import ScheduleError, UsageError
from unisono.gpu.lowering import lower_for_device
from unisono.gpu.transports import Movers
from unisono.verifier import proved

SMALL_SCRATCH = 9000  # bytes: several passes
VARIANTS = [
    {"blocks": 3},
    {"mode": STREAM, "movers": Movers.RECEIVERS, "in_place": True},
    {"movers": Movers.RECEIVERS, "blocks": 1, "in_place": True},
    {"mode": STREAM},
    {"scratch": SMALL_SCRATCH, "per_chunk": 150, "tile": 256},
    {"in_place": True, "average": True},
    {
        "scratch": SMALL_SCRATCH,
        "per_chunk": 150,
        "tile": 256,
        "mode": STREAM,
        "average": True,
        "movers": Movers.RECEIVERS,
    },
    {"movers": Movers.BOTH},
    {"movers": Movers.BOTH, "mode": STREAM, "in_place": True},
]
MOVERS = (Movers.RECEIVERS, Movers.SENDERS, Movers.SENDERS, Movers.BOTH, Movers.SENDERS)  # of random programs
CARRYING = [name for name in NAMES if find(name).collective.carries_data]


def check(name: str, size: int, variant: int, seed: int = 0) -> None:
    """Run one algorithm in one variant."""
    algorithm = find(name)
    collective = algorithm.collective
    if not algorithm.can_serve(size):
        return
    options = {"blocks": 2, **VARIANTS[variant % len(VARIANTS)]}
    if options.pop("average", False) and collective.reduces:
        options["op"] = "avg"
    schedule = algorithm.schedule(size, (variant + seed) % size if collective.rooted else None)
    total = options.pop("per_chunk", 7) * size + (0 if collective is collectives.all_to_all else 5)
    check_against_player(schedule, total, seed=seed, **options)


@pytest.mark.parametrize("name", CARRYING)
def test_every_algorithm_gives_the_bits_of_the_player(name):
    for number, size in enumerate(SIZES):
        check(name, size, CARRYING.index(name) + number)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CARRYING)
def test_every_algorithm_gives_the_bits_of_the_player_in_every_variant(name, seed):
    for size, variant in itertools.product(SIZES, range(len(VARIANTS))):
        check(name, size, variant, seed)


@pytest.mark.parametrize("dtype", ["float16", "float8_e4m3fn", "float64"])
def test_sums_of_small_numbers_are_rounded_where_the_player_rounds_them(dtype):
    for name, size in (("direct", 5), ("naive", 3), ("ring", 3), ("recursive_doubling", 6)):
        check_against_player(find(name).schedule(size), 41, dtype=dtype, op="avg", seed=size)


def test_random_programs_give_the_bits_of_the_player():
    _check_random_programs(range(40))


@pytest.mark.long
def test_many_random_programs_give_the_bits_of_the_player():
    _check_random_programs(range(1000))


def _check_random_programs(seeds) -> None:
    staged = 0
    for seed in seeds:
        schedule = random_all_reduce(seed)
        mode = (KERNEL, STREAM)[seed % 2]
        check_against_player(
            schedule, 29, seed=seed, mode=mode, op=("sum", "avg")[seed % 3 == 0], movers=MOVERS[seed % 5]
        )
        staged += any(lower_for_device(proved(schedule)).plain_slots)
    assert staged > len(seeds) / 2  # they do use scratch memory


def test_correct_mutants_of_algorithms_give_the_bits_of_the_player():
    """No person wrote these programs: receives in other orders, ops twice, other peers."""
    accepted = 0
    for number, name in enumerate(CARRYING):
        for seed in range(12):
            made = mutant(name, seed)
            if made is None:
                continue
            schedule = made[1]
            try:
                proved(schedule)
                check_against_player(schedule, 6 * schedule.size, seed=seed, mode=(KERNEL, STREAM)[number % 2])
            except (ScheduleError, UsageError):  # wrong, or not for the engine
                continue
            accepted += 1
    assert accepted >= 10


def circular_wait():
    """Return a program in which a pull would wait, through a third rank, for its own sender.

    Rank 0 sends its number to rank 1 and then adds to it. Rank 1 reads it after a message of rank 2, which comes
    after a message that rank 0 sends once it has added.
    """
    return written(
        "all_reduce", 1,
        "send 0 to 1\nrecv_reduce 0 from 2\nsend 0 to 2\nrecv_reduce 0 from 1",
        "send 0 to 0\nsend 0 to 2\nrecv 1 from 2\nrecv_reduce 1 from 0\ncombine 1 into 0",
        "copy 0 to 1\nsend 0 to 0\nrecv 0 from 0\nsend 1 to 1\nrecv_reduce 0 from 1", slots=2,
    )  # fmt: skip


@pytest.mark.parametrize("mode", [KERNEL, STREAM])
def test_a_message_is_staged_where_a_pull_would_wait_for_its_sender(mode):
    schedule = circular_wait()
    for seed in range(20):
        check_against_player(schedule, 11, mode=mode, seed=seed)
    first = lower_for_device(proved(schedule)).programs[0][0].moves
    assert [place.buffer for move in first for place in move.destinations] == [2]  # scratch memory


@pytest.mark.parametrize("total", [0, 1, 2, 3])
def test_vectors_shorter_than_the_number_of_chunks(total):
    for name in ("direct", "ring", "naive", "broadcast/chain", "all_gather/bruck", "reduce_scatter/ring"):
        algorithm = find(name)
        check_against_player(algorithm.schedule(5, 2 if algorithm.collective.rooted else None), total)


UNEQUAL = {5: (3, 0, 7, 1, 2), 3: (0, 0, 4), 2: (5, 0)}


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("size", UNEQUAL)
def test_blocks_of_unequal_lengths(size, in_place):
    sizes = UNEQUAL[size]
    rng = np.random.default_rng(size)
    for name in ("all_gather/naive", "all_gather/ring", "gather/tree", "scatter/tree", "reduce_scatter/ring"):
        algorithm = find(name)
        schedule = algorithm.schedule(size, 1 if algorithm.collective.rooted else None)
        lengths = Lengths(sizes, sizes)
        inputs = inputs_of(schedule, lengths, lambda n: rng.integers(0, 100, n).astype(np.int32))
        call = emulated_call(proved(schedule), lengths, inputs, op="sum", in_place=in_place)
        (found,) = Emulator([call], 1).run()
        given = [array for array in inputs if array is not None]
        whole = np.concatenate(given) if algorithm.collective.before.others is collectives.OWN else sum(given)
        starts = np.cumsum([0, *sizes])
        for rank, result in enumerate(found):
            own = algorithm.collective.after.others is collectives.OWN
            wanted = whole[starts[rank] : starts[rank + 1]] if own else whole
            assert result is None or bits(result) == bits(wanted), (name, rank)


@pytest.mark.parametrize("mode", [KERNEL, STREAM])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["all_to_all/naive", "all_to_all/pairwise"])
def test_each_rank_knows_only_the_lengths_of_what_it_sends_and_receives(name, size, mode):
    rng = np.random.default_rng(size)
    table = rng.integers(0, 6, (size, size))  # elements from each rank to each rank
    schedule = find(name).schedule(size)

    def known(rank: int) -> Lengths:
        return Lengths(tuple(map(int, table[rank])), tuple(map(int, table[:, rank])), known_to_all=False)

    inputs = [rng.integers(0, 1000, table[rank].sum()).astype(np.int32) for rank in range(size)]
    calls = []
    for _ in range(2):
        calls.append(emulated_call(proved(schedule), known(0), inputs, of_rank=known))
        calls[-1].outputs = [int(table[:, rank].sum()) for rank in range(size)]
    for plan, rank in zip(calls[0].plans, range(size), strict=True):
        assert plan.pair_bytes is not None
        for peer in range(size):
            assert plan.pair_bytes[peer] == calls[0].plans[peer].pair_bytes[rank]
    cut = [np.split(inputs[rank], np.cumsum(table[rank])[:-1]) for rank in range(size)]
    wanted = [np.concatenate([cut[source][rank] for source in range(size)]) for rank in range(size)]
    for outputs in Emulator(calls, size, mode).run():
        assert [bits(output) for output in outputs] == [bits(each) for each in wanted]


def test_an_algorithm_that_forwards_blocks_is_refused_where_only_pairs_know_lengths():
    schedule = find("all_to_all/hierarchical").schedule(6)
    lengths = Lengths((1,) * 6, (1,) * 6, known_to_all=False)
    with pytest.raises(UsageError, match="straight to its receiver"):
        emulated_call(proved(schedule), lengths, [np.zeros(6, np.float32)] * 6)


@pytest.mark.parametrize("mode", [KERNEL, STREAM])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in CARRYING])
def test_no_rank_leaves_a_barrier_before_all_have_entered(name, mode):
    for size in SIZES:
        algorithm = find(name)
        schedule = algorithm.schedule(size)
        lengths = Lengths(blocks_of(schedule, 0), blocks_of(schedule, 0))
        call = emulated_call(proved(schedule), lengths, [None] * size)
        emulator = Emulator([call] * 3, size, mode)
        emulator.run()
        for number in range(3):
            times = {
                kind: [emulator.log.index((kind, rank, number)) for rank in range(size)] for kind in (ENTERS, LEAVES)
            }
            assert max(times[ENTERS]) < min(times[LEAVES]), (size, number)
