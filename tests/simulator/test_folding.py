"""A folded simulation gives the times of a simulation of every rank: every algorithm, on random sizes and networks.

`make test` draws one case for each algorithm, on few ranks; the long version draws several, on up to 256.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from unisono import networks
from unisono.algorithms import BUILT_IN, find
from unisono.simulator import events
from unisono.simulator.simulation import simulate

IDEAL = networks.ideal(1e-6, 1e9, 1e-10)
NETWORKS = [
    IDEAL,
    replace(networks.load("ethernet-10g"), ranks_per_host=4),  # the ranks of a host share its memory and its NIC
    *map(networks.load, ["one-switch", "xeon-16-cores", "dgx-h100", "marenostrum5", "leonardo", "fugaku", "polaris"]),
]


def cases(algorithm, sizes, count, seed):
    """Draw sizes, bytes and networks; those that do not fit are drawn again."""
    drawn = random.Random(f"{algorithm} {seed}")
    found = []
    while len(found) < count:
        size, network = drawn.choice(sizes), drawn.choice(NETWORKS)
        if algorithm.can_serve(size) and (network.size is None or size <= network.size):
            found.append((size, int(2 ** drawn.uniform(0, 26)), network))
    return found


def check(algorithm, size, nbytes, network, contention):
    contention = contention and network is not IDEAL  # messages that wait for both sides do not share links
    schedule = algorithm.schedule(size)
    folded = simulate(schedule, nbytes, network, contention=contention)
    every = simulate(schedule, nbytes, network, contention=contention, fold=False)
    case = f"{schedule.label} on {size} ranks, {nbytes} bytes, {network.name}, contention {contention}"
    np.testing.assert_allclose(folded.rank_s, every.rank_s, rtol=0, atol=0, err_msg=case)
    np.testing.assert_allclose(folded.idle_s, every.idle_s, rtol=1e-9, atol=1e-12, err_msg=case)
    np.testing.assert_allclose(folded.level_s, every.level_s, rtol=0, atol=0, err_msg=case)
    assert (folded.messages, folded.passes) == (every.messages, every.passes), case
    assert (folded.contention, every.method) == (every.contention, "rank by rank"), case
    return folded.method != "rank by rank"


@pytest.mark.parametrize("contention", [False, True])
def test_folded_times_are_those_of_every_rank(contention):
    folded = [
        check(each, *case, contention)
        for each in BUILT_IN
        for case in cases(each, [2, 3, 5, 6, 7, 8, 12, 13, 16, 20, 24], 1, contention)
    ]
    assert sum(folded) > len(folded) / 4  # so that the test compares something


@pytest.mark.parametrize(
    ("name", "size"), [("all_to_all/pairwise", 16), ("rabenseifner", 24), ("all_gather/bruck", 12)]
)
def test_the_loop_in_python_gives_the_same_times_to_classes_that_share_links(name, size, monkeypatch):
    schedule, network = find(name).schedule(size), NETWORKS[1]
    native = simulate(schedule, 1 << 20, network)
    monkeypatch.setattr(events, "_engine", None)
    reference = simulate(schedule, 1 << 20, network)
    assert native.contention
    assert native.method == reference.method != "rank by rank"
    np.testing.assert_allclose(native.rank_s, reference.rank_s, rtol=0, atol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("algorithm", BUILT_IN, ids=str)
def test_folded_times_of_up_to_256_ranks_are_those_of_every_rank(algorithm, record_property):
    powers, others = [32, 64, 128, 256], [size for size in range(2, 256) if size & (size - 1)]
    drawn = cases(algorithm, powers, 2, "powers") + cases(algorithm, others, 4, "others")
    folded = [check(algorithm, *case, contention) for case in drawn for contention in (False, True)]
    record_property("cases", len(folded))
    record_property("folded", sum(folded))
