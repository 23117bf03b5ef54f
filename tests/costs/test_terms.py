"""Cost terms: what lies on the critical path of a program."""

from __future__ import annotations

from math import ceil, log2

import pytest

import cost_terms
from unisono import collectives, find
from unisono.collectives import COLLECTIVES, all_reduce, broadcast
from unisono.comm.candidates import candidates_for
from unisono.comm.topology import hosts_of
from unisono.costs.critical_path import terms_of
from unisono.costs.prediction import predict
from unisono.costs.rates import DEFAULT, Rates, rates_from, rates_of
from unisono.costs.stored_terms import (
    ALL,
    ENGINE,
    HALF,
    NETWORK,
    NICS,
    ONE,
    line_name,
    stored_terms,
    stored_topologies,
    terms_of_row,
)
from unisono.networks import ideal

SIZES = (2, 3, 5, 6, 7, 8, 13)
NOTHING = Rates(**dict.fromkeys(Rates._fields, 0))._replace(
    ranks_per_core=1, links=1, beyond_cache=1, slowdown=DEFAULT.slowdown
)


def hosts_of_one(size):
    return hosts_of((1,) * size)


@pytest.mark.parametrize("size", SIZES)
def test_the_terms_of_a_ring_are_those_of_the_textbook(size):
    for part in terms_of(find("ring").schedule(size)).parts:
        steps = 2 * (size - 1)
        assert (part.first.near, part.first.sends, part.first.receives) == (steps, steps, steps)
        assert (part.first.sent, part.first.received, part.first.reduced) == (steps, steps, size - 1)
        assert part.further == part.first


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_recursive_doubling_takes_the_logarithm_of_the_ranks(size):
    terms = terms_of(find("recursive_doubling").schedule(size))
    assert {part.first.near for part in terms.parts} == {log2(size)}


def test_a_chunk_for_all_near_ranks_is_written_once_and_read_by_each():
    near = terms_of(find("all_gather/naive").schedule(5))
    assert {(part.first.sends, part.first.received) for part in near.parts} == {(1, 4)}
    far = terms_of(find("all_gather/naive").schedule(5), hosts_of_one(5))
    assert max(part.first.crossings for part in far.parts) == 4


def test_an_accumulation_is_added_at_once():
    terms = terms_of(find("reduce/naive").schedule(8, 0))
    assert {(part.first.received, part.first.reduced) for part in terms.parts} == {(7, 1)}


def test_a_chunk_that_is_passed_on_is_neither_read_from_an_array_nor_written_to_one():
    ring = terms_of(find("reduce_scatter/ring").schedule(8)).parts[-1].first
    assert (ring.received, ring.sent, ring.read, ring.written) == (7, 7, 8, 1)
    pat = terms_of(find("reduce_scatter/pat").schedule(8)).parts[-1].first
    assert (pat.received, pat.sent) == (7, 7)
    assert (pat.read, pat.written) > (ring.read, ring.written)


def test_a_message_that_does_not_fit_into_its_header_arrives_later():
    terms = stored_terms("all_reduce", (8,))["recursive_doubling"]
    rates = NOTHING._replace(near_s=1.0, fetch_s=0.5)
    times_s = [predict(terms, all_reduce, nbytes, rates, 2 << 20).time_s for nbytes in (8, 32, 64)]
    assert times_s == [3.0, 3.0, 4.5]


def test_the_first_bytes_of_every_message_cost_more():
    terms = stored_terms("all_reduce", (8,))["recursive_doubling"]
    rates = NOTHING._replace(starting_byte_s=1.0)
    times_s = [predict(terms, all_reduce, nbytes, rates, 2 << 20).time_s for nbytes in (64, 512, 4096)]
    assert times_s == [3 * 64, 3 * 512, 3 * 512]


def test_calls_of_rooted_collectives_follow_each_other_like_passes():
    rates = NOTHING._replace(near_s=1.0)
    one, several = (predict(stored_terms("broadcast", (8,))["tree"], broadcast, 8, rates, 2 << 20, tracks).time_s
                    for tracks in (1, 4))  # fmt: skip
    assert one < several


def test_messages_of_several_ranks_of_a_host_share_its_link():
    hosts = hosts_of((4, 4))
    schedule = find("hierarchical").schedule(8, node=4, inner="naive", outer="recursive_doubling")
    terms = terms_of(schedule, hosts)
    assert terms.link == terms.chunks  # the vector crosses once in each direction
    assert max(part.first.crossing for part in terms.parts) == terms.chunks


def test_the_ranks_of_a_pipeline_overlap_in_further_passes():
    broadcast = terms_of(find("broadcast/tree").schedule(8, 0))
    assert all(part.first.near == 3 and part.further.near < 1 for part in broadcast.parts)
    tree = terms_of(find("all_reduce/tree").schedule(8))  # every rank waits for the result before the next pass
    assert all(part.further.near == part.first.near == 6 for part in tree.parts)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("nbytes", [8, 1 << 20])
def test_predictions_on_the_ideal_network_are_the_closed_forms(size, nbytes):
    alpha_s, rate, gamma_s = 1e-6, 1e10, 1e-10
    rates = rates_of(ideal(alpha_s, rate, gamma_s))
    hosts = hosts_of_one(size)
    staging_bytes = 1 << 40  # in which every call fits

    def time_s(name):
        return predict(terms_of(find(name).schedule(size), hosts), all_reduce, nbytes, rates, staging_bytes).time_s

    part = nbytes / size
    if part <= 128 * 1024:  # the segments of longer chunks overlap
        ring_s = 2 * (size - 1) * (alpha_s + part / rate) + (size - 1) * part * gamma_s
        assert time_s("ring") == pytest.approx(ring_s, rel=1e-3)
    if size & (size - 1) == 0 and nbytes == 8:
        doubling_s = ceil(log2(size)) * (alpha_s + nbytes / rate + nbytes * gamma_s)
        assert time_s("recursive_doubling") == pytest.approx(doubling_s, rel=1e-3)


def test_the_time_consists_of_its_terms():
    terms = terms_of(find("direct").schedule(8))
    predicted = predict(terms, all_reduce, 1 << 20, DEFAULT, 2 << 20)
    assert predicted.time_s == pytest.approx(predicted.latency_s + predicted.bandwidth_s + predicted.reduction_s)
    free = predict(terms, all_reduce, 1 << 20, NOTHING._replace(reduced_byte_s=1e-9), 2 << 20)
    assert (free.latency_s, free.bandwidth_s) == (0, 0)
    assert free.time_s == pytest.approx((1 << 20) / 8 * 1e-9)


def test_ranks_that_share_cores_wait_for_each_other_and_do_all_the_work():
    terms = terms_of(find("naive").schedule(8))
    alone = predict(terms, all_reduce, 8, DEFAULT, 2 << 20)
    shared = predict(terms, all_reduce, 8, DEFAULT._replace(ranks_per_core=4), 2 << 20)
    assert shared.time_s > alone.time_s + 4 * DEFAULT.turn_s


def check_stored(collective, hosts, ranks, kind, nics=ONE):
    stored = stored_terms(collective.name, (ranks,) * hosts, kind, nics)
    record = cost_terms.record_of(collective, hosts, ranks, kind, nics)
    assert set(record) <= set(stored), "run tools/cost_terms.py"
    for key, row in record.items():
        name = f"{key} on {line_name(hosts, ranks, nics)}"
        assert stored[key] == terms_of_row(row, kind), f"{name} ({kind}): run tools/cost_terms.py"


@pytest.mark.parametrize("collective", COLLECTIVES, ids=str)
@pytest.mark.parametrize(("hosts", "ranks"), [(1, 5), (3, 1), (2, 2)])
def test_stored_terms_are_those_of_the_programs(collective, hosts, ranks):
    check_stored(collective, hosts, ranks, ENGINE)
    check_stored(collective, hosts, ranks, NETWORK)


@pytest.mark.parametrize("nics", [HALF, ALL])
def test_stored_terms_of_hosts_with_several_nics_are_those_of_the_programs(nics):
    for collective in COLLECTIVES:
        check_stored(collective, 2, 4, NETWORK, nics)


@pytest.mark.long
@pytest.mark.parametrize("kind", [ENGINE, NETWORK])
@pytest.mark.parametrize("collective", COLLECTIVES, ids=str)
def test_all_stored_terms_of_up_to_32_ranks_are_those_of_the_programs(collective, kind):
    for hosts, ranks, nics in stored_topologies(kind):
        if hosts * ranks <= 32:
            check_stored(collective, hosts, ranks, kind, nics)


@pytest.mark.parametrize(
    "counts",
    [(17,), (40,), (256,), (1,) * 9, (1,) * 100, (3,) * 3, (8,) * 20, (16,) * 20, (16,) * 7, (72,) * 5, (5, 3, 2)],
)
def test_every_candidate_has_terms_on_any_topology(counts):
    hosts = hosts_of(counts)
    for collective in COLLECTIVES:
        terms = stored_terms(collective.name, counts)
        assert {each.key for each in candidates_for(collective, sum(counts), hosts)} <= set(terms)
        for nics in NICS:
            terms = stored_terms(collective.name, counts, NETWORK, nics)
            assert {each.key for each in candidates_for(collective, sum(counts), hosts, True)} <= set(terms)


@pytest.mark.parametrize("size", [17, 20, 31, 40])
def test_interpolated_terms_are_close_to_those_of_the_programs(size):
    for name in ("ring", "direct", "recursive_doubling", "rabenseifner", "tree"):
        expected = terms_of(find(name).schedule(size))
        found = stored_terms("all_reduce", (size,))[name]
        for nbytes in (8, 4096, 1 << 20):
            times_s = [predict(each, all_reduce, nbytes, DEFAULT, 2 << 20).time_s for each in (found, expected)]
            assert times_s[0] == pytest.approx(times_s[1], rel=0.2), (name, nbytes)


@pytest.mark.parametrize("data", [{"far_s": "1"}, {"far_s": -1}, {"far_s": float("nan")}, {"speed": 1}, [1]])
def test_rates_of_a_damaged_record_are_refused(data):
    with pytest.raises(ValueError, match=r"far_s|speed|1"):
        rates_from(data)


def test_rates_are_read_back():
    rates = Rates(near_s=1e-6, ranks_per_core=2.5)
    assert rates.as_data() == {"near_s": 1e-6, "ranks_per_core": 2.5}
    assert rates_from(rates.as_data()) == rates


def test_every_collective_has_a_file():
    for collective in collectives.COLLECTIVES:
        assert stored_terms(collective.name, (2,))
