"""Classes of ranks that behave identically: a folded simulation gives the times of a rank-by-rank one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unisono import networks
from unisono.algorithms import BUILT_IN, algorithm, find, one_per_rank
from unisono.collectives import all_gather, all_reduce
from unisono.errors import ScheduleError, UnmatchedError, UsageError
from unisono.schedule import Schedule, copy, recv, recv_reduce, send
from unisono.simulator import simulation
from unisono.simulator.paths import record
from unisono.simulator.simulation import simulate
from unisono.simulator.templates import Hosts, templates_of

IDEAL = networks.ideal(1e-6, 1e9, 1e-10)
COPYING = replace(IDEAL, endpoint=replace(IDEAL.endpoint, copy_s_per_byte=1e-10))
NBYTES = 1 << 16


def check(schedule, network):
    """Compare the folded simulation with one of every rank; return the number of classes."""
    folded = simulate(schedule, NBYTES, network, contention=False)
    expected = simulate(schedule, NBYTES, network, contention=False, fold=False)
    np.testing.assert_allclose(folded.rank_s, expected.rank_s, rtol=1e-9, atol=0)
    np.testing.assert_allclose(folded.idle_s, expected.idle_s, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(folded.level_s, expected.level_s, rtol=1e-9, atol=0)
    assert (folded.messages, folded.passes) == (expected.messages, expected.passes)
    assert sum(each.bytes for each in folded.links) == pytest.approx(sum(each.bytes for each in expected.links))
    if folded.method == "rank by rank":
        return schedule.size
    return int(folded.method.split()[2])


def cases(sizes):
    return [(each, size) for size in sizes for each in BUILT_IN if each.can_serve(size)]


@pytest.mark.parametrize(("size", "network"), [(2, "ideal"), (7, "ideal"), (6, "xeon-16-cores"), (10, "dgx-h100")])
def test_folded_times_are_those_of_every_rank(size, network):
    network = IDEAL if network == "ideal" else networks.load(network)
    for each, _ in cases([size]):
        check(each.schedule(size), network)


@pytest.mark.long
@pytest.mark.parametrize("network", ["ideal", "dgx-h100", "marenostrum5"])
@pytest.mark.parametrize("size", [24, 32, 48, 100, 128, 200, 256])
def test_folded_times_of_many_ranks_are_those_of_every_rank(size, network):
    network = IDEAL if network == "ideal" else networks.load(network)
    for each, _ in cases([size]):
        check(each.schedule(size), network)


@pytest.mark.parametrize(
    ("name", "size", "classes"),
    [
        ("ring", 13, 1), ("all_gather/naive", 13, 1), ("all_to_all/bruck", 13, 1), ("recursive_doubling", 16, 1),
        ("rabenseifner", 16, 1), ("hierarchical", 16, 1), ("double_tree", 16, 8), ("broadcast/tree", 16, 16),
    ],
)  # fmt: skip
def test_ranks_that_behave_identically_are_one_class(name, size, classes):
    assert check(find(name).schedule(size), IDEAL) == classes


def test_the_position_in_a_host_tells_ranks_apart():
    assert check(find("ring").schedule(32), networks.load("dgx-h100")) == 8


def test_ranks_beyond_a_power_of_two_make_classes():
    # 24 = 16 + 8: a partner, a rank with a partner, a rank without.
    assert check(find("recursive_doubling").schedule(24), IDEAL) == 3


def test_hierarchies_of_three_levels_fold():
    assert check(find("hierarchical").schedule(32, node=2, outer="hierarchical"), IDEAL) == 1
    assert check(find("hierarchical").schedule(26, node=4, outer="hierarchical"), IDEAL) <= 26


@algorithm(all_gather, chunks=one_per_rank)
def ring_of_odd_messages(rank, size):
    """A ring in which a dictionary finds the neighbours."""
    right = {each: (each + 1) % size for each in range(size)}
    for hop in range(size - 1):
        yield (
            send((rank - hop) % size, dst=right[rank]),
            recv((rank - hop - 1) % size, src=(rank - 1) % size),
        )


def test_programs_that_need_an_integer_are_run_rank_by_rank_and_folded():
    assert check(ring_of_odd_messages.schedule(12), IDEAL) == 1


def without_branches(rank, size):
    """Even ranks pass on the block that they received, odd ranks another one, without a branch."""
    left, right = (rank - 1) % size, (rank + 1) % size
    yield send(rank, dst=right), recv(left, src=left)
    yield send((rank - 1 + rank % 2) % size, dst=right), recv((rank - 2) % size, src=left)


def test_ranks_whose_messages_the_compiler_merges_differently_are_not_one_class():
    schedule = Schedule("all_reduce", "x", size=8, chunks=8, slots=8, make=lambda rank: without_branches(rank, 8))
    assert len(record(schedule)) == 1
    templates = list(templates_of(schedule, all_reduce, record(schedule), Hosts(8, 1), rounds=False))
    assert [each.ranks.tolist() for each in templates] in ([[0, 2, 4, 6], [1, 3, 5, 7]], [[1, 3, 5, 7], [0, 2, 4, 6]])
    assert {len(each.rows) for each in templates} == {4, 3}  # a receive and a send were merged, or not


def test_ranks_on_different_lines_of_a_program_may_be_one_class():
    def program(rank):
        if rank < 3:
            yield from ring_of_odd_messages(rank, 8)
        else:
            yield from find("all_gather/ring")(rank, 8)

    schedule = Schedule("all_gather", "x", size=8, chunks=8, slots=8, make=program)
    assert check(schedule, IDEAL) == 1


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (lambda rank: [send(0, dst=rank + 1)], "rank 8"),
        (lambda rank: [send(8, dst=rank ^ 1)], "chunk 8"),
        (lambda rank: [send([], dst=rank ^ 1)], "no chunk"),
        (lambda rank: [send(0, dst=1 // (rank - 5))], "ZeroDivisionError"),
    ],
)
def test_errors_of_programs_are_those_of_a_single_rank(program, text):
    with pytest.raises(ScheduleError, match=text):
        simulate(Schedule("all_reduce", "x", size=8, chunks=8, slots=8, make=program), NBYTES, IDEAL)


def test_messages_that_do_not_match_are_an_error():
    schedule = Schedule("all_reduce", "x", size=8, chunks=8, slots=8, make=lambda rank: [send(0, dst=rank ^ 1)])
    with pytest.raises(UnmatchedError):
        simulate(schedule, NBYTES, IDEAL)


def test_similar_ranks_are_folded_where_every_rank_would_be_too_many(monkeypatch):
    # Five hosts, two on each switch: no two ranks have the same surroundings.
    network = networks.load("dgx-h100")
    network = replace(network, fabric=replace(network.fabric, hosts_per_switch=2))
    schedule = find("ring").schedule(5 * 8)
    exact = simulate(schedule, 1 << 26, network, contention=False)
    monkeypatch.setattr(simulation, "MOST_ACTIONS", 1000)
    similar = simulate(schedule, 1 << 26, network, contention=False)
    assert (exact.method, similar.method) == ("rank by rank", "folded into 8 classes of similar ranks")
    assert similar.time_s == pytest.approx(exact.time_s, rel=1e-3)
    assert similar.range_s[0] <= exact.time_s <= similar.range_s[1] <= 1.05 * exact.time_s
    monkeypatch.setattr(simulation, "MOST_ACTIONS", 100)
    with pytest.raises(UsageError) as caught:
        simulate(schedule, 1 << 26, network, contention=False)
    assert caught.value.id == "simulator.too_large"


def test_ranks_of_a_class_share_links_with_each_other():
    # The four ranks of a host share its NIC: each gets a quarter of it, whether one is simulated or all of them.
    network = replace(networks.load("ethernet-10g"), ranks_per_host=4)
    schedule, nbytes = find("all_to_all/pairwise").schedule(16), 1 << 24
    shared = simulate(schedule, nbytes, network, contention=True)
    alone = simulate(schedule, nbytes, network, contention=False)
    assert shared.method == "folded into 4 classes"
    assert shared.time_s > 2 * alone.time_s
    np.testing.assert_array_equal(
        shared.rank_s, simulate(schedule, nbytes, network, contention=True, fold=False).rank_s
    )


def test_predictions_say_whether_contention_was_ignored(monkeypatch):
    alone = networks.load("ethernet-10g")
    shared = replace(alone, ranks_per_host=4)

    def said(network, **options):
        found = simulate(find("all_to_all/pairwise").schedule(16), NBYTES, network, **options)
        return found.contention, found.contention_ignored

    assert said(shared) == said(shared, fold=False) == (True, False)
    assert said(alone) == said(alone, fold=False) == (False, False)  # the messages of a rank take turns at its port
    assert said(shared, contention=False) == said(shared, contention=False, fold=False) == (False, True)
    monkeypatch.setattr(simulation, "MOST_SHARING", 100)
    assert said(shared) == (False, True)
    assert said(shared, contention=True) == (True, False)


def test_a_ring_of_thousands_of_ranks_takes_the_time_of_the_formula():
    size, nbytes = 4000, 4000 << 10
    predicted = simulate(find("ring").schedule(size), nbytes, IDEAL)
    assert predicted.method == "folded into 1 class"
    assert predicted.messages == 2 * size * (size - 1)
    assert predicted.time_s == pytest.approx((size - 1) * (2 * (1e-6 + 1024 * 1e-9) + 1024 * 1e-10), rel=1e-3)


def test_pairs_of_local_ops_matter_where_the_compiler_drops_some_of_them():
    def program(rank):
        odd = rank % 2
        yield send(0, dst=rank ^ 1), recv_reduce(0, src=rank ^ 1)
        yield copy([odd, 1 - odd], to=[2, 3])
        yield copy(2, to=1)  # slot 3 is never read

    schedule = Schedule("all_reduce", "x", size=8, chunks=2, slots=4, make=program)
    templates = list(templates_of(schedule, all_reduce, record(schedule), Hosts(8, 1), rounds=False))
    assert sorted(each.ranks.tolist() for each in templates) == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert check(schedule, IDEAL) <= 2


def test_the_order_of_receives_and_sums_does_not_matter():
    # Every rank but the first adds its own data at another position.
    schedule = find("naive").schedule(6)
    templates = list(templates_of(schedule, all_reduce, record(schedule), Hosts(6, 1), rounds=False))
    assert sorted(len(each.ranks) for each in templates) == [1, 5]


def test_what_a_rank_does_after_its_last_message_does_not_tell_it_apart():
    # Rank 0 of the naive algorithm need not copy the sum, and finishes earlier.
    schedule = find("naive").schedule(6)
    assert check(schedule, COPYING) == 1
    times = simulate(schedule, NBYTES, COPYING).rank_s
    assert times[0] < times[1] == times.max()
    # In several passes the copy delays the next messages.
    folded, every = (simulate(schedule, NBYTES, COPYING, segments=3, fold=fold) for fold in (True, False))
    assert folded.method == "rank by rank"
    np.testing.assert_array_equal(folded.rank_s, every.rank_s)


def test_tails_that_differ_in_more_than_their_length_tell_ranks_apart():
    def program(rank):
        yield send(0, dst=rank ^ 1), recv_reduce(0, src=rank ^ 1)
        yield copy(3, to=1) if rank % 4 < 2 else copy([3, 0], to=[1, 2])

    schedule = Schedule("all_reduce", "x", size=8, chunks=4, slots=4, make=program)
    assert check(schedule, COPYING) == 2
