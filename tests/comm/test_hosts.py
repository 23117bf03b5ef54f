"""Calls between ranks of several hosts: the chosen programs, all built-in ones, groups, codecs and unequal lengths.

The hosts are pretended (tests/pretend_hosts.py): the engine, the couriers and their connections are real.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

import unisono
from pretend_hosts import run_on_hosts
from unisono.algorithms import algorithms_of
from unisono.codecs import Codec
from unisono.collectives import COLLECTIVES, all_reduce, barrier
from unisono.comm import tuning
from unisono.comm.explain_call import explain_call, explain_with
from unisono.comm.tables import checked_table
from unisono.errors import MismatchError
from unisono.schedule.text import format_schedule, parse_schedule

COUNTS = (0, 1, 1024, 100_000)  # elements of each block


def make_call(comm, collective, part, root, **options):
    """Make one call with blocks of ``part`` elements; return whether its result is right."""
    size, rank = comm.size, comm.rank
    vectors = [np.arange(part * size, dtype=np.float32) % 1000 + peer for peer in range(size)]
    mine, total, block = vectors[rank], sum(vectors), slice(rank * part, (rank + 1) * part)
    firsts = np.concatenate([vector[:part] for vector in vectors])
    if collective.rooted:
        options["root"] = root
    match collective.name:
        case "all_reduce" | "reduce" | "broadcast":
            out = mine.copy()
            getattr(comm, collective.name)(out, **options)
            wanted = vectors[root] if collective.name == "broadcast" else total
            return (collective.name == "reduce" and rank != root) or bool((out == wanted).all())
        case "all_gather" | "gather":
            out = np.zeros(part * size, np.float32) if collective.name == "all_gather" or rank == root else None
            getattr(comm, collective.name)(out, mine[:part].copy(), **options)
            return out is None or bool((out == firsts).all())
        case "reduce_scatter" | "scatter":
            out = np.zeros(part, np.float32)
            source = mine if collective.name == "reduce_scatter" or rank == root else None
            getattr(comm, collective.name)(out, source, **options)
            return bool((out == (total if collective.name == "reduce_scatter" else vectors[root])[block]).all())
        case "all_to_all":
            out = np.zeros(part * size, np.float32)
            comm.all_to_all(out, mine, **options)
            return bool((out == np.concatenate([vector[block] for vector in vectors])).all())
    comm.barrier(**options)
    return True


def make_chosen_calls(comm):
    """Return the calls without an algorithm that went wrong, or whose bytes were not those predicted."""
    wrong, far_bytes = [], 0
    for collective in COLLECTIVES:
        for part in COUNTS if collective.carries_data else (0,):
            for root in (0, comm.size - 1) if collective.rooted else (None,):
                before = comm.sent_bytes
                right = make_call(comm, collective, part, root)
                sent = comm.sent_bytes - before
                if collective.carries_data:
                    count = part * comm.size
                    predicted = comm.predict_sent_bytes(collective, count, root=root)
                    far_bytes += comm.predict_sent_bytes(collective, count, root=root, far=True)
                    right = right and sent == predicted
                if not right:
                    wrong.append((collective.name, part, root, sent))
    deadline = time.monotonic() + 10
    while comm.sent_far_bytes != far_bytes and time.monotonic() < deadline:  # the courier may still be sending
        time.sleep(0.01)
    return wrong if comm.sent_far_bytes == far_bytes else [*wrong, (comm.sent_far_bytes, far_bytes)]


# Several ranks on each of several hosts; `make stress` runs them.
LARGER = ("abcd", "aabb", "abbb", "aaabbb", "abcabcc")


@pytest.mark.parametrize(
    "hosts", ["ab", "abab", "aaab", *(pytest.param(hosts, marks=pytest.mark.long) for hosts in LARGER)]
)
def test_chosen_programs_are_right_and_send_what_was_predicted(hosts):
    assert run_on_hosts(make_chosen_calls, hosts) == [[]] * len(hosts)


def make_all_calls(comm):
    wrong = []
    for collective in COLLECTIVES:
        for algorithm in algorithms_of(collective):
            for part in (5, 20_000) if collective.carries_data else (0,):
                root = comm.size - 1 if collective.rooted else None
                if not make_call(comm, collective, part, root, algorithm=algorithm.name):
                    wrong.append((str(algorithm), part))
    return wrong


@pytest.mark.parametrize(
    "hosts", ["aab", *(pytest.param(hosts, marks=pytest.mark.long) for hosts in ("aaabb", "ababa"))]
)
def test_every_built_in_algorithm_is_right_between_hosts(hosts):
    assert run_on_hosts(make_all_calls, hosts) == [[]] * len(hosts)


def other_calls(comm):
    """Make calls with unequal lengths, codecs, groups and asynchronous ones; return those that went wrong."""
    size, rank, wrong = comm.size, comm.rank, []
    sizes = [7 * peer + 1 for peer in range(size)]
    out = np.zeros(sum(sizes))
    comm.all_gather(out, np.full(sizes[rank], float(rank)), out_sizes=sizes)
    if not (out == np.repeat(np.arange(size), sizes)).all():
        wrong.append("unequal all_gather")
    for unit in (1, 40_000):  # the long blocks take several passes, of which the ranks run different numbers
        received, in_sizes = np.zeros(size * (rank + 1) * unit), [(peer + 1) * unit for peer in range(size)]
        out_sizes = [(rank + 1) * unit] * size
        comm.all_to_all(received, np.full(sum(in_sizes), float(rank)), in_sizes=in_sizes, out_sizes=out_sizes)
        if not (received == np.repeat(np.arange(size), (rank + 1) * unit)).all():
            wrong.append(f"unequal all_to_all, unit {unit}")
    for codec in ("fp16", "int8", Codec("fp8_e4m3", stochastic=True)):
        x = np.linspace(0, 1, 150_000, dtype=np.float32) * (rank + 1)
        comm.all_reduce(x, codec=codec)
        results = np.zeros((size, len(x)), np.float32)
        comm.all_gather(results.reshape(-1), x)
        if not (results == results[0]).all():
            wrong.append(str(codec))
    arrays = [np.full(1000, float(number)) for number in range(5)]
    works = [comm.all_reduce(y, async_op=True) for y in arrays]
    for number, (work, y) in enumerate(zip(works, arrays, strict=True)):
        work.wait()
        if not (y == number * size).all():
            wrong.append("asynchronous")
    part = comm.split(rank % 2)
    x = np.array([float(rank)])
    part.all_reduce(x)
    if x[0] != sum(range(rank % 2, size, 2)) or part.hosts != expected_hosts(comm.hosts, rank % 2):
        wrong.append(f"split {x} {part.hosts}")
    part.close()
    return wrong


def expected_hosts(hosts, color):
    members = [rank for rank in range(sum(map(len, hosts))) if rank % 2 == color]
    groups = [tuple(members.index(rank) for rank in ranks if rank in members) for ranks in hosts]
    return tuple(sorted(group for group in groups if group))


@pytest.mark.parametrize("hosts", ["aabb", "aaabbb", "abcab"])
def test_unequal_lengths_codecs_asynchronous_calls_and_groups_work_between_hosts(hosts):
    assert run_on_hosts(other_calls, hosts) == [[]] * len(hosts)


ADDED = [each for each in COLLECTIVES if each.reduces and each.carries_data]


def sums(comm, dtype):
    """Return the results of the reducing collectives, at two sizes, and the schedules that made them."""
    found = []
    for collective in ADDED:
        for part in (3, 5000):
            root = 1 if collective.rooted else None
            x = numbers(comm.rank, part * comm.size, dtype)
            out = np.zeros(part, dtype) if collective.blocked else x
            options = {"root": root} if collective.rooted else {}
            getattr(comm, collective.name)(*((out, x) if collective.blocked else (x,)), **options)
            made = comm.dispatcher.program(collective, None, root, part * comm.size * x.itemsize)
            found.append((format_schedule(made.schedule), out if root in (None, comm.rank) else None))
    return found


def numbers(rank, count, dtype):
    return np.random.default_rng(rank).standard_normal(count).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("hosts", ["aabb", "aaab", "ababab"])
def test_sums_between_hosts_have_the_bits_of_play(hosts, dtype):
    size = len(hosts)
    by_rank = run_on_hosts(sums, hosts, dtype)
    for calls in zip(*by_rank, strict=True):
        (text,) = {text for text, _ in calls}
        schedule = parse_schedule(text)
        longest = max(len(out) for _, out in calls if out is not None)
        count = longest * size if schedule.collective == "reduce_scatter" else longest
        played = unisono.play(schedule, [numbers(rank, count, dtype) for rank in range(size)]).outputs
        for (_, out), wanted in zip(calls, played, strict=True):
            assert out is None or out.tobytes() == wanted.tobytes()


def facts(comm):
    predicted = [comm.predict_sent_bytes("all_reduce", 1 << 20, far=far) for far in (None, True, False)]
    given = comm.dispatcher.program(all_reduce, "hierarchical", None, 8).name
    return comm.hosts, predicted, comm.explain("all_reduce", 1 << 22), given, comm.dispatcher.rates


def test_the_communicator_states_its_hosts_and_explains_its_choice():
    hosts = ((0, 2), (1, 3))
    for found, predicted, explained, given, rates in run_on_hosts(facts, "abab"):
        assert found == hosts
        # a quarter of the vector crosses to the other host twice, and half of it is exchanged twice inside the host
        assert predicted == [6 << 20, 2 << 20, 4 << 20]
        expected = explain_with(all_reduce, 1 << 22, 4, rates, {}, hosts=hosts)
        assert (explained.algorithm, explained.options) == (expected.algorithm, expected.options)
        assert explained.topology == "2x2"
        assert given == "hierarchical(node=((0, 2), (1, 3)))"
    assert unisono.spawn(lambda comm: comm.hosts, 2) == [((0, 1),), ((0, 1),)]


def measured_table(comm):
    return tuning.tune(comm, 0.5)


def test_tune_stores_its_rules_under_the_topology(monkeypatch):
    monkeypatch.setattr(tuning, "SIZES_BYTES", (8, 16 << 10))
    first, *others = run_on_hosts(measured_table, "aab")
    assert all(other == first for other in others)
    assert {key for sizes in first.values() for key in sizes} == {"2+1"}
    assert checked_table({"table": first}) == first
    assert all(rule[1] != "direct" for rule in first["all_reduce"]["2+1"])


def disagree(comm):
    comm.dispatcher.hosts = ((0, 1), (2, 3)) if comm.rank == 0 else ((0,), (1,), (2,), (3,))
    try:
        comm.all_reduce(np.ones(4), algorithm="ring")
    except MismatchError:
        return "mismatch"
    return "no error"


def test_ranks_that_know_different_hosts_do_not_communicate():
    assert "mismatch" in unisono.spawn(disagree, 4)


def test_there_is_a_rule_for_every_collective_on_several_hosts():
    for collective in COLLECTIVES:
        assert explain_call(collective, 8, size=4, table={}, hosts=((0, 1), (2, 3))).algorithm
    assert explain_call(barrier, 0, size=4, table={}, hosts=((0, 1), (2, 3))).algorithm == "hierarchical"
