"""Calls between test hosts: every collective, send and receive, groups, codecs, and programs of users.

The ranks are real processes that `unisono run --hosts` starts on hosts with separate networks, processes and shared
memory. Results are compared with ``play`` bit by bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from host_calls import exchange_with_tags, reduce_with_own_program, there_and_back, transport, use_duplicate
from host_jobs import HostJob
from tests.comm.test_against_play import compare
from tests.comm.test_hosts import make_chosen_calls, other_calls
from unisono.algorithms import BUILT_IN, Algorithm
from unisono.algorithms.host_options import host_options
from unisono.bootstrap.ucx_search import packaged_libraries
from unisono.collectives import barrier
from unisono.player import play

SHORT = "aabb"
LAYOUTS = {"2x1": "ab", "4x1": "abcd", "2x2": SHORT, "3+1": "aaab"}


@pytest.fixture(
    params=[pytest.param(layout, marks=() if layout == SHORT else pytest.mark.long) for layout in LAYOUTS.values()],
    ids=list(LAYOUTS),
)
def job(hosts, request):
    """Return a job on hosts of which rank r is on the host that letter r names."""
    with HostJob(hosts, request.param) as made:
        yield made
        assert made.close() == (0, "", "")


def test_calls_of_every_kind_are_right_between_hosts(job):
    nothing_wrong = [[]] * job.size
    assert job.call(make_chosen_calls) == nothing_wrong
    assert job.call(other_calls) == nothing_wrong
    assert job.call(exchange_with_tags) == nothing_wrong
    assert job.call(use_duplicate) == nothing_wrong
    inputs = [np.random.default_rng(rank).standard_normal(40_003).astype(np.float32) for rank in range(job.size)]
    played = play(there_and_back.schedule(job.size), inputs, "sum")
    assert job.call(reduce_with_own_program) == [output.tobytes() for output in played.outputs]


@pytest.mark.long
@pytest.mark.parametrize("name", ["tcp", "ucx"])
def test_the_launcher_selects_the_transport(hosts, name):
    if name == "ucx" and not packaged_libraries():
        pytest.skip("SKIPPED, NOT TESTED: UCX (pip install libucx-cu12)")
    with HostJob(hosts, "aab", options=["--transport", name]) as made:
        for found in made.call(transport):
            assert found.startswith(name)
            assert "no RDMA: " in found
        assert made.call(make_chosen_calls) == [[]] * 3


@dataclass(frozen=True)
class OnHosts:
    """A built-in algorithm with the options that it gets on hosts."""

    algorithm: Algorithm
    hosts: tuple[tuple[int, ...], ...]

    @cached_property
    def name(self):
        return self.algorithm.name

    @property
    def collective(self):
        return self.algorithm.collective

    def schedule(self, size, root):
        return self.algorithm.schedule(size, root, **host_options(self.algorithm, self.hosts))


@pytest.mark.long
def test_every_algorithm_computes_the_bits_of_play_between_hosts(job):
    names = sorted(set(job.layout))
    hosts = tuple(tuple(rank for rank, name in enumerate(job.layout) if name == each) for each in names)
    compared = 0
    for number, algorithm in enumerate(BUILT_IN):
        collective = algorithm.collective
        if collective is barrier or not algorithm.can_serve(job.size):
            continue
        length = 4099 if not collective.blocked else 1001 * job.size
        root = job.size - 1 if collective.rooted else None
        op = "sum" if collective.reduces else None
        on_hosts = OnHosts(algorithm, hosts)
        compare(job, on_hosts, length, "float32", op, root, 7)
        compare(job, on_hosts, 20 * length, "bfloat16", op, root, 8)
        with np.errstate(all="ignore"):
            compare(job, on_hosts, 3 * length, "float32", op, root, 9, ("fp16", "fp8_e4m3", "int8")[number % 3])
        compared += 3
    assert compared > 30
