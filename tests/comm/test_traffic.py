"""The bytes that are sent: counted, predicted, and limited by a slow link."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest

from unisono import find
from unisono.algorithms import catalogue
from unisono.collectives import COLLECTIVES, all_reduce, barrier
from unisono.errors import Aborted
from unisono.launch.spawn import outcomes_of
from unisono.verifier import prove

CODECS = [None, "fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8"]
WITH_DATA = [collective for collective in COLLECTIVES if collective is not barrier]
RATE = 50e6


def make(comm, name, count, algorithm, codec):
    """Make a call on ``count`` elements in all; return the bytes sent and the bytes predicted."""
    collective = next(one for one in WITH_DATA if one.name == name)
    root = comm.size - 1 if collective.rooted else None
    how = {"algorithm": algorithm, "codec": codec, **({"root": root} if collective.rooted else {})}
    whole, part = np.ones(count, np.float32), np.ones(count // comm.size, np.float32)
    before = comm.sent_bytes
    if collective.single_array:
        getattr(comm, name)(whole, **how)
    else:
        where = (comm.rank, comm.size, comm.size, root or 0)
        held = [len(row(*where)) for row in (collective.held_after, collective.held_before)]
        out, source = ([None, part, whole.copy()][min(1, n) + (n == comm.size)] for n in held)
        getattr(comm, name)(out, source, **how)
    predicted = comm.predict_sent_bytes(name, count, root=root, algorithm=algorithm, codec=codec)
    return comm.sent_bytes - before, predicted


def make_all(comm):
    wrong = []
    for collective in WITH_DATA:
        for algorithm in [None, *catalogue.algorithms_serving(collective, comm.size)]:
            for codec in CODECS:
                for length in (0, 1, 33, 1001, 40_003):
                    count = length * comm.size if collective.blocked else length
                    sent, predicted = make(comm, collective.name, count, algorithm, codec)
                    if sent != predicted:
                        wrong.append((str(algorithm), codec, count, sent, predicted))
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_the_bytes_sent_are_those_predicted(pools, size):
    assert pools[size].call(make_all) == [[]] * size


@pytest.mark.parametrize("name", ["ring", "recursive_doubling", "direct", "rabenseifner"])
def test_the_prediction_agrees_with_the_proof(pools, name):
    """5 chunks of 200 elements: the proof's fraction of the vector, in bytes."""
    count = 5 * 4 * 1000
    most = max(sent for sent, _ in pools[5].call(make, *([v] * 5 for v in ("all_reduce", count, name, None))))
    assert most == prove(find(name, all_reduce).schedule(5)).sent * count * 4


@pytest.mark.parametrize(("codec", "part"), [("fp16", 0.5), ("bf16", 0.5), ("fp8_e4m3", 0.27), ("int8", 0.27)])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_codec_sends_a_fraction_of_the_bytes(pools, size, codec, part):
    for name in (None, "ring"):
        sent, plain = (
            pools[size].call(make, *([v] * size for v in ("all_reduce", 1_000_000, name, c))) for c in (codec, None)
        )
        for (mine, predicted), (all_of_it, _) in zip(sent, plain, strict=True):
            assert mine == predicted <= part * all_of_it


def test_top_k_of_one_percent_sends_less_than_three_percent_of_the_bytes(pools):
    sent = pools[4].call(make, *([v] * 4 for v in ("all_reduce", 1_000_000, None, "topk:0.01")))
    dense = Fraction(2 * 3, 4) * 1_000_000 * 4  # the bytes of a ring
    for mine, predicted in sent:
        assert mine == predicted <= 0.03 * dense


def letters(comm):
    before = comm.sent_bytes
    x = np.ones(100_000)
    if comm.rank == 0:
        comm.send(x, dst=1)
        comm.send(x[:1], dst=1, async_op=True).wait()
    elif comm.rank == 1:
        comm.recv(x, src=0)
        comm.recv(x[:1], src=0)
    return comm.sent_bytes - before


def test_transfers_are_counted(pools):
    assert pools[3].call(letters) == [800_008, 0, 0]


def slowly(comm, count, codec):
    comm.limit_rate(RATE)
    try:
        x = np.ones(count, np.float32)
        comm.barrier()
        before, began = comm.sent_bytes, time.perf_counter()
        comm.all_reduce(x, codec=codec)
        taken, sent = time.perf_counter() - began, comm.sent_bytes - before
        x = np.ones(count, np.float32)
        if comm.rank == 0:
            began = time.perf_counter()
            comm.send(x, dst=1)
            comm.all_reduce(np.ones(1, np.float32))
            assert time.perf_counter() - began >= 0.9 * count * 4 / RATE
        else:
            if comm.rank == 1:
                comm.recv(x, src=0)
            comm.all_reduce(np.ones(1, np.float32))
    finally:
        comm.limit_rate(None)
    return sent, taken


@pytest.mark.parametrize("size", [2, 3])
def test_a_call_on_a_slow_link_is_not_faster_than_the_link(pools, size):
    """No call is faster than its bytes at the given rate."""
    made_good_s = 0.001  # of oversleeping
    for codec in (None, "fp8_e4m3"):
        for sent, taken in pools[size].call(slowly, [500_000] * size, [codec] * size):
            assert taken >= sent / RATE - made_good_s


def slowly_and_not(comm):
    comm.limit_rate(1.0)
    comm.limit_rate(None)
    comm.all_reduce(np.ones(100_000, np.float32), timeout=30)


def test_the_rate_limit_can_be_removed(pools):
    """At a byte per second this would take days."""
    pools[2].call(slowly_and_not)


def interrupted_on_a_slow_link(comm):
    comm.limit_rate(1000)
    if comm.rank == 0:
        comm.all_reduce(np.ones(100_000, np.float32), timeout=30)
    comm.abort("enough")


def test_a_wait_for_a_slow_link_ends_when_another_rank_aborts():
    began = time.monotonic()
    errors = [outcome.error for outcome in outcomes_of(interrupted_on_a_slow_link, 2, patience_s=10.0)]
    assert isinstance(errors[0], Aborted)
    assert time.monotonic() - began < 20
