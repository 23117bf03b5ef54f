"""The map of hosts says which ranks share memory, for any placement of the ranks."""

from __future__ import annotations

import pytest

from unisono.bootstrap.hosts import SHARED, HostMap, hosts_of, single_host
from unisono.bootstrap.locality import host_info

A, B = host_info(), {**host_info(), "host": "b", "kernel": "another boot"}
PLACEMENTS = {
    "one host": "aaaa",
    "two hosts": "aabb",
    "one rank per host": "abc",
    "three and one": "aaab",
    "one and three": "abbb",
    "round robin": "abababa",
    "round robin, then one": "abcabcc",
    "a lower host later": "bba",
}


def placed(letters: str) -> HostMap:
    return hosts_of([{**host_info(), "host": letter, "kernel": letter} for letter in letters])


@pytest.mark.parametrize("letters", PLACEMENTS.values(), ids=PLACEMENTS)
def test_ranks_with_the_same_letter_are_near_and_all_others_far(letters):
    hosts = placed(letters)
    assert hosts.size == len(letters)
    assert hosts.count == len(set(letters))
    assert sum(hosts.rank_counts) == len(letters)
    assert [hosts.names[host] for host in hosts.host_of] == list(letters)
    for rank, letter in enumerate(letters):
        assert hosts.name(rank) == letter
        assert hosts.near(rank) == [other for other, its in enumerate(letters) if its == letter]
        assert hosts.far(rank) == [its != letter for its in letters]
    assert [list(ranks) for ranks in hosts.groups] == [hosts.near(ranks[0]) for ranks in hosts.groups]
    assert sorted(rank for ranks in hosts.groups for rank in ranks) == list(range(hosts.size))


@pytest.mark.parametrize("letters", PLACEMENTS.values(), ids=PLACEMENTS)
def test_hosts_are_numbered_in_the_order_of_their_lowest_ranks(letters):
    hosts = placed(letters)
    leaders = [hosts.ranks_on(host)[0] for host in range(hosts.count)]
    assert leaders == sorted(leaders)
    assert leaders[0] == 0


def test_the_counts_are_those_of_each_host():
    assert placed("aaab").rank_counts == (3, 1)
    assert placed("abababa").rank_counts == (4, 3)
    assert placed("abababa").groups == ((0, 2, 4, 6), (1, 3, 5))


@pytest.mark.parametrize("part", SHARED)
def test_ranks_that_differ_in_one_part_of_their_identity_are_far(part):
    hosts = hosts_of([A, {**A, part: "other"}])
    assert hosts.far(0) == [False, True]
    assert hosts.names == (A["host"], A["host"])


def test_the_name_of_a_host_does_not_make_ranks_far():
    assert hosts_of([A, {**A, "host": "another name"}]).count == 1


def test_the_map_of_a_part_has_its_order_and_only_its_hosts():
    hosts = placed("aabbc")
    part = hosts.of([4, 3, 1])
    assert part == HostMap(("c", "b", "a"), (0, 1, 2))
    assert hosts.of([3, 0, 2]) == HostMap(("b", "a"), (0, 1, 0))
    assert hosts.of([2, 3]) == HostMap(("b",), (0, 0))
    assert hosts.of(range(5)) == hosts


def test_two_hosts_with_the_same_name_stay_apart_in_a_part():
    hosts = hosts_of([A, {**B, "host": A["host"]}])
    assert hosts.of([1, 0]).far(0) == [False, True]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7, 8, 13])
def test_a_single_host_has_no_far_ranks(size):
    hosts = single_host(size, "here")
    assert (hosts.size, hosts.count, hosts.far(size - 1)) == (size, 1, [False] * size)
