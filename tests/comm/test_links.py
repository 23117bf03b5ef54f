"""The measurement of the links between hosts, on pretended hosts."""

from __future__ import annotations

from pretend_hosts import run_on_hosts
from unisono.comm.links import measure_links, share_s, slowest_rate
from unisono.comm.texts import all_gather_text, broadcast_text
from unisono.launch.spawn import spawn


def _measure(comm):
    links = measure_links(comm, 0.01)
    return links, [all_gather_text(comm, "r" * comm.rank), broadcast_text(comm, f"from {comm.rank} ü")]


def test_every_pair_of_hosts_is_measured_and_all_ranks_know_the_same():
    results = run_on_hosts(_measure, ["a", "b", "a", "c"])
    links = results[0][0]
    assert [(link.first, link.second) for link in links] == [(0, 1), (0, 2), (1, 2)]
    assert all(link.round_trip_s > 0 and link.forth > 0 and link.back > 0 for link in links)
    assert slowest_rate(links) == min(min(link.forth, link.back) for link in links)
    for found, texts in results:
        assert found == links
        assert texts == [["", "r", "rr", "rrr"], "from 0 ü"]


def test_with_many_hosts_each_pair_gets_less_time():
    assert share_s(6, 0.1) == 0.1
    assert share_s(800, 0.1) == 0.025
    assert share_s(10**6, 0.1) == 0.005
    assert share_s(10**6, 0.001) == 0.001


def _measure_on_one_host(comm):
    return measure_links(comm)


def test_one_host_has_no_links():
    assert spawn(_measure_on_one_host, 2) == [[], []]
    assert slowest_rate([]) is None
