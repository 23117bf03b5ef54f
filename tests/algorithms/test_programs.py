"""The structure of the programs, without running anything."""

from __future__ import annotations

import pytest

from builders import SIZES
from unisono import find, prove
from unisono.algorithms import BUILT_IN
from unisono.algorithms.arithmetic import prime_factors
from unisono.algorithms.double_tree import neighbours
from unisono.algorithms.nodes import nodes_of
from unisono.algorithms.ring import ring, ring_all_gather, ring_reduce_scatter
from unisono.errors import UsageError


def steps_of(name, rank, size, **options):
    return list(find(name).schedule(size, **options).program(rank))


@pytest.mark.parametrize("size", SIZES)
def test_all_reduce_is_literally_reduce_scatter_followed_by_all_gather(size):
    for rank in range(size):
        assert list(ring(rank, size)) == [*ring_reduce_scatter(rank, size), *ring_all_gather(rank, size)]


@pytest.mark.parametrize(
    ("whole", "first", "second"),
    [
        ("rabenseifner", "reduce_scatter/recursive_halving", "all_gather/recursive_doubling"),
        ("bidirectional_ring", "reduce_scatter/bidirectional_ring", "all_gather/bidirectional_ring"),
        ("tree", "reduce/tree", "broadcast/tree"),
        ("broadcast/scatter_all_gather", "scatter/tree", "all_gather/ring"),
        ("reduce/reduce_scatter_gather", "reduce_scatter/ring", "gather/tree"),
    ],
)
def test_composed_algorithms_have_the_steps_of_their_parts(whole, first, second):
    for size in (1, 2, 4, 8):
        for rank in range(size):
            assert steps_of(whole, rank, size) == steps_of(first, rank, size) + steps_of(second, rank, size)


@pytest.mark.parametrize("size", SIZES)
def test_bruck_and_pat_meet_both_bounds_at_every_size(size):
    for name in ("all_gather/bruck", "all_gather/pat", "reduce_scatter/pat"):
        proof = prove(find(name).schedule(size))
        assert (proof.latency_ratio, proof.bandwidth_ratio) == (1, 1)


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_at_powers_of_two_the_recursive_family_needs_the_fewest_rounds(size):
    assert prove(find("recursive_doubling").schedule(size)).latency_ratio == 1
    for name in ("rabenseifner", "swing"):
        proof = prove(find(name).schedule(size))
        assert (proof.latency_ratio, proof.bandwidth_ratio) == (2, 1)


@pytest.mark.parametrize("size", SIZES)
def test_rings_move_the_fewest_bytes(size):
    for name in ("ring", "bidirectional_ring", "torus"):
        assert prove(find(name).schedule(size)).bandwidth_ratio == 1


@pytest.mark.parametrize("size", SIZES)
def test_a_bidirectional_ring_needs_half_the_steps(size):
    assert prove(find("bidirectional_ring").schedule(size)).steps == 2 * (size // 2)


@pytest.mark.parametrize("size", range(1, 40))
def test_the_tree_of_a_double_tree_is_a_tree_with_odd_leaves(size):
    for rank in range(size):
        parent, children = neighbours(rank, size)
        assert len(children) <= 2
        assert (parent == []) == (rank == 0)
        if rank % 2:
            assert children == []
        for child in children:
            assert neighbours(child, size)[0] == [rank]


@pytest.mark.parametrize("size", [2, 3, 6, 7, 8, 33])
def test_at_most_one_rank_is_inner_in_both_trees(size):
    """Each tree has half of the work: at most one rank (in an odd size) is an inner rank of both."""
    busy = 0
    for rank in range(size):
        ops = [op for step in steps_of("double_tree", rank, size) for op in step]
        inner_in = {op.chunks for op in ops if op.kind == "recv_reduce"}
        busy += len(inner_in) == 2
    assert busy <= 1


@pytest.mark.parametrize("size", range(1, 200))
def test_the_product_of_the_prime_factors_is_the_number(size):
    product = 1
    for factor in prime_factors(size):
        assert all(factor % divisor for divisor in range(2, factor))
        product *= factor
    assert product == size


def test_a_butterfly_accepts_given_factors():
    assert prove(find("butterfly").schedule(12, factors=(4, 3))).rounds == 5
    assert prove(find("butterfly").schedule(12, factors=12)).rounds == 11
    with pytest.raises(UsageError, match=r"factors=\(5, 2\) with 12 ranks; expected numbers whose product is 12"):
        find("butterfly").schedule(12, factors=(5, 2))


def test_a_torus_accepts_a_given_number_of_rows():
    assert prove(find("torus").schedule(12, rows=2)).steps == 2 * 5 + 2 * 1
    with pytest.raises(UsageError, match="rows=5 with 12 ranks; expected a divisor of 12"):
        prove(find("torus").schedule(12, rows=5))


def test_nodes_are_ranges_of_ranks():
    assert nodes_of(7, 3) == (range(3), range(3, 6), range(6, 7))
    assert nodes_of(7, (1, 4, 2)) == (range(1), range(1, 5), range(5, 7))
    with pytest.raises(UsageError, match="add up to 8"):
        nodes_of(8, (1, 4, 2))
    with pytest.raises(UsageError, match="1 or more"):
        nodes_of(8, 0)


@pytest.mark.parametrize("algorithm", BUILT_IN, ids=str)
def test_the_program_of_one_of_a_hundred_thousand_ranks_is_available(algorithm):
    """Programs are created on request: a schedule of any size costs nothing until a rank is requested."""
    first = next(iter(algorithm.schedule(100_000).program(12_345)))
    assert first
