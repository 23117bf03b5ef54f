"""Process groups whose ranks are on several hosts meet over the network, through torch's store.

The ranks run on this machine and pretend to be on different hosts (network_ranks.py).
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from fault_ranks import Rank, job, run  # noqa: E402

from network_ranks import pretend_host  # noqa: E402
from unisono.bootstrap import network_rendezvous  # noqa: E402
from unisono.torch_backend import store_network, store_rendezvous  # noqa: E402

pytestmark = pytest.mark.usefixtures("fork_server")


def pretend(host: str) -> None:
    """Let this process be on another host."""
    identity = pretend_host(host)
    store_rendezvous.host_info = network_rendezvous.host_info = lambda: identity


def use_groups(rank: Rank, hosts: str) -> list[float]:
    """Make groups, twice in one store, and communicate in them; return the results."""
    pretend(hosts[rank.rank])
    results = []
    for _ in range(2):
        rank.join(timeout_s=30.0)
        total = torch.full((3,), 2.0**rank.rank)
        dist.all_reduce(total)
        ends = dist.new_group([0, rank.size - 1])
        both = torch.full((3,), 2.0**rank.rank)
        if rank.rank in (0, rank.size - 1):
            dist.all_reduce(both, group=ends)
        near = dist.new_group([0, 1])
        if rank.rank < 2:
            dist.broadcast(both, src=0, group=near)
        dist.barrier()
        results += [float(total[0]), float(both[0])]
        dist.destroy_process_group()
    return results


@pytest.mark.parametrize("hosts", ["ab", "aab", "abba"])
def test_groups_of_ranks_on_several_hosts_communicate(tmp_path, hosts):
    outcomes = run(tmp_path, use_groups, len(hosts), hosts)
    size = len(hosts)
    both = [1.0 + 2.0 ** (size - 1)] * 2 + [2.0**rank for rank in range(2, size - 1)] + [1.0 + 2.0 ** (size - 1)]
    for rank, outcome in enumerate(outcomes):
        assert outcome.value == [2.0**size - 1, both[rank] if size > 2 else 3.0] * 2, outcome.output


def join_late(rank: Rank, hosts: str, late: int) -> str:
    pretend(hosts[rank.rank])
    rank.report("started")
    if rank.rank == late:
        wait_for_network(rank.folder, rank.size)
    rank.join(timeout_s=30.0)
    return "joined"


def wait_for_network(folder: Path, size: int) -> None:
    """Wait until rank 0 has published its port."""
    store = dist.PrefixStore("cpu/", dist.PrefixStore("0/", dist.FileStore(str(folder / "store"), size)))
    ends_s = time.monotonic() + 20
    while not store.check([store_network.NETWORK]):
        assert time.monotonic() < ends_s, "rank 0 has published no port"
        time.sleep(0.02)


@pytest.mark.parametrize("late", [1, 2])
def test_a_rank_that_starts_after_rank_0_has_moved_joins(tmp_path, late):
    outcomes = run(tmp_path, join_late, 4, "aabb", late)
    assert [outcome.value for outcome in outcomes] == ["joined"] * 4, [outcome.output for outcome in outcomes]


def join_without_the_last(rank: Rank, hosts: str) -> None:
    pretend(hosts[rank.rank])
    if rank.rank == rank.size - 1:
        time.sleep(8.0)
        return
    rank.join(timeout_s=3.0)


def test_a_rank_that_is_missing_is_named_on_all_hosts(tmp_path):
    with job(tmp_path, join_without_the_last, 4, "abab") as running:
        for rank in range(3):
            running.outcome(rank).check_raised("CollectiveTimeout", "have not connected to rank 0 at")


class Store(dict):
    """A store in a dictionary."""

    def check(self, keys):
        return all(key in self for key in keys)

    def set(self, key, value):
        self[key] = value.encode()


NETWORK = {"rendezvous": "a", "addresses": ["10.0.0.1", "::1"], "port": 4000, "token": "t"}


def test_the_address_of_another_rendezvous_is_ignored():
    store = Store()
    assert store_network.network_in(store, "a") is None
    store.set(store_network.NETWORK, json.dumps(NETWORK))
    assert store_network.network_in(store, "a") == store_network.StoreNetwork(**NETWORK)
    assert store_network.network_in(store, "b") is None


@pytest.mark.parametrize(
    "changed", [{"addresses": ["host"]}, {"port": "1"}, {"token": 7}, {"more": 1}, {"addresses": 5}]
)
def test_other_content_of_the_store_is_refused(changed):
    store = Store()
    store.set(store_network.NETWORK, json.dumps({**NETWORK, **changed}))
    with pytest.raises(store_rendezvous.CommError, match="unisono/network is not what rank 0 writes there"):
        store_network.network_in(store, "a")


def test_a_request_is_for_one_rendezvous():
    store = Store()
    assert not store_network.is_requested(store, "a")
    store_network.request_network(store, "a")
    assert store_network.is_requested(store, "a")
    assert not store_network.is_requested(store, "b")
