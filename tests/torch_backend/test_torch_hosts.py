"""Groups whose ranks are on several hosts, here pretended ones: the ranks differ in the identity of their hosts."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import timedelta
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
from fault_ranks import Rank, job, run  # noqa: E402

from torch_ranks import free_port, run_ranks  # noqa: E402
from unisono import CommError, Options  # noqa: E402
from unisono.bootstrap.ucx_search import packaged_libraries  # noqa: E402
from unisono.torch_backend import store_network, store_rendezvous  # noqa: E402
from unisono.torch_backend.options import own_options  # noqa: E402
from unisono.torch_backend.store_network import FAR, own_address, published_addresses, store_host  # noqa: E402
from unisono.torch_backend.store_rendezvous import WHERE  # noqa: E402

pytestmark = pytest.mark.usefixtures("fork_server")


def move_to_host(name: str, **parts: str) -> None:
    """Pretend that this process is on another host: by default, a container with another PID namespace."""
    here = store_rendezvous.host_info()
    parts = parts or {"processes": f"pid:[{name}]"}
    store_rendezvous.host_info = lambda: {**here, "host": name, **parts}


def join_on_hosts(hosts: str, options: Options | None = None) -> int:
    """Create the default group, of which rank r is on host ``hosts[r]``; return the rank."""
    rank = int(os.environ["RANK"])
    move_to_host(hosts[rank])
    dist.init_process_group("unisono", pg_options=options)
    return rank


def sum_in(group, value):
    tensor = torch.tensor([float(value)])
    dist.all_reduce(tensor, group=group)
    return tensor.item()


def listening_ports() -> set[int]:
    """Return the TCP ports at which this process listens."""
    own = {os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.exists()}
    rows = [row.split() for name in ("tcp", "tcp6") for row in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own}


def use_groups(hosts):
    """Create groups of several kinds; return the sums in them and the hosts of their ranks."""
    rank = join_on_hosts(hosts)
    size = dist.get_world_size()
    world = dist.group.WORLD
    groups = {
        "all": world, "duplicate": dist.new_group(), "ends": dist.new_group([0, size - 1]),
        "rest": dist.new_group(list(range(1, size))), "part": world.split_group(list(range(rank % 2, size, 2))),
    }  # fmt: skip
    facts = {}
    for name, group in groups.items():
        if group is not dist.GroupMember.NON_GROUP_MEMBER:
            facts[name] = (sum_in(group, 10**rank), group.communicator.hosts)
    received = torch.zeros(3)
    request = dist.irecv(received, (rank - 1) % size)
    dist.send(torch.full((3,), float(rank)), (rank + 1) % size)
    request.wait()
    pending = dist.all_reduce(torch.ones(100_000), async_op=True)
    pending.wait()
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    facts["couriers"] = len(listening_ports() - {int(os.environ["MASTER_PORT"])})
    return facts, received.tolist(), objects


@pytest.mark.parametrize("hosts", ["ab", "aab", pytest.param("abab", marks=pytest.mark.long)])
def test_groups_of_every_kind_work_on_several_hosts(hosts):
    size = len(hosts)
    members = {"all": range(size), "duplicate": range(size), "ends": [0, size - 1], "rest": range(1, size)}
    for rank, (facts, received, objects) in enumerate(run_ranks(use_groups, size, hosts, init=False)):
        assert received == [float((rank - 1) % size)] * 3
        assert objects == [{"rank": each} for each in range(size)]
        ranks_of = {**members, "part": range(rank % 2, size, 2)}
        assert facts.pop("couriers") == 1  # one for all groups of the process
        assert facts.keys() == {name for name, ranks in ranks_of.items() if rank in ranks}
        for name, (total, groups) in facts.items():
            ranks = list(ranks_of[name])
            assert total == sum(10.0**each for each in ranks)
            found = {tuple(hosts[ranks[member]] for member in group) for group in groups}
            names = [hosts[each] for each in ranks]
            assert found == {(host,) * names.count(host) for host in names}


def create_again(hosts):
    """Create and destroy groups; return what this process has open before, meanwhile and afterwards."""

    def opened():
        return listening_ports(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    rank = int(os.environ["RANK"])
    move_to_host(hosts[rank])
    store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), len(hosts), rank == 0)
    states = []
    for number in range(3):
        part = dist.PrefixStore(str(number // 2), store)  # the first two groups use the same keys
        dist.init_process_group("unisono", store=part, rank=rank, world_size=len(hosts))
        group = dist.new_group()
        assert sum_in(None, 1) == sum_in(group, 1) == len(hosts)
        during = opened()
        dist.destroy_process_group()
        states.append((during, opened()))
    return states


def test_ports_and_threads_are_released_with_their_groups():
    for states in run_ranks(create_again, 2, "ab", init=False):
        first = states[0][1]
        for during, after in states:
            assert len(during[0] - first[0]) == 1  # the courier of both groups listens
            assert during[2] > first[2]
            assert (after[0], after[2]) == (first[0], first[2])
            assert after[1] <= first[1]  # descriptors; the store may close one


def test_a_group_on_one_host_opens_no_port():
    for states in run_ranks(create_again, 2, "aa", init=False):
        for during, after in states:
            assert during[0] == after[0]


def join_at_ports(hosts, first, second):
    options = Options(interface="lo", ports=range(first, first + 20))
    rank = join_on_hosts(hosts, options)
    found = [listening_ports() - ({int(os.environ["MASTER_PORT"])} if rank == 0 else set())]
    # The first two have the network options of the default group.
    for options in (None, Options(algorithms={"all_reduce": "ring"}), Options(ports=range(second, second + 20))):
        before = listening_ports()
        group = dist.new_group(pg_options=options)
        assert sum_in(group, 1) == len(hosts)
        found.append(listening_ports() - before)
    dist.destroy_process_group(group)
    assert listening_ports() == before
    return found


def test_a_group_has_a_separate_courier_if_its_options_name_other_ports():
    first, second = free_port(), free_port()
    for world, *shared, other in run_ranks(join_at_ports, 2, "ab", first, second, init=False):
        assert len(world) == len(other) == 1
        assert world < set(range(first, first + 20))
        assert other < set(range(second, second + 20))
        assert shared == [set(), set()]


def group_of_gloo(hosts):
    """Create groups below a default group of another backend; return how many couriers each of them has added."""
    move_to_host(hosts[int(os.environ["RANK"])])
    dist.init_process_group("gloo")
    added = []
    for _ in range(3):
        before = listening_ports()
        assert sum_in(dist.new_group(backend="unisono"), 1) == len(hosts)
        added.append(len(listening_ports() - before))
    return added


def test_groups_share_a_courier_also_if_the_default_group_has_another_backend():
    assert run_ranks(group_of_gloo, 2, "ab", init=False) == [[1, 0, 0]] * 2


def repeat_all_reduce():
    while True:
        dist.all_reduce(torch.ones(8))


def lose_a_rank(rank: Rank, hosts: str) -> list[float]:
    """Lose the last rank; return the sums in a group of the others, and in one that they make afterwards."""
    move_to_host(hosts[rank.rank])
    rank.join(timeout_s=30.0)
    others = list(range(rank.size - 1))
    before = dist.new_group(others)
    if rank.rank == rank.size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(ConnectionError, match=f"rank {rank.size - 1}"):
        repeat_all_reduce()
    after = dist.new_group(others, use_local_synchronization=True)
    sums = [sum_in(group, 1) for group in (before, after)]
    assert len(listening_ports()) == 1
    dist.destroy_process_group()
    return sums


def test_groups_of_the_survivors_continue_on_the_courier_of_a_group_that_has_lost_a_rank(tmp_path):
    with job(tmp_path, lose_a_rank, 3, "aba") as running:
        assert [running.outcome(rank).value for rank in (0, 1)] == [[2.0, 2.0]] * 2, running.output(0)


def join_with(options):
    try:
        join_on_hosts("ab", options)
    except ValueError as error:
        return str(error)
    return ""


def test_options_that_are_wrong_are_refused():
    for text in run_ranks(join_with, 2, Options(ports=[1, 2]), init=False):
        assert "ports=[1, 2]; expected a range of port numbers" in text
    for text in run_ranks(join_with, 2, Options(transport="rdma"), init=False):
        assert "transport='rdma'; expected \"tcp\"" in text
    for text in run_ranks(join_with, 2, Options(link_rate="fast"), init=False):
        assert "link_rate='fast'; expected a number of bytes per second" in text
    first, second = run_ranks(join_with, 2, Options(interface="nothing0"), init=False)
    assert "interface='nothing0'; expected the name" in second
    assert "interface='nothing0'; expected the name" in first


def transports(hosts, options):
    join_on_hosts(hosts, options)
    groups = [dist.group.WORLD, dist.new_group(), dist.new_group(pg_options=Options(transport="tcp"))]
    assert [sum_in(group, 1) for group in groups] == [len(hosts)] * 3
    return [group.communicator.transport for group in groups]


@pytest.mark.skipif(not packaged_libraries(), reason="SKIPPED, NOT TESTED: UCX (pip install libucx-cu12)")
def test_a_group_takes_its_transport_from_its_options_or_from_the_default_group():
    for world, without_options, over_tcp in run_ranks(transports, 2, "ab", Options(transport="ucx"), init=False):
        assert world == without_options
        assert world.startswith("ucx 1.")
        assert over_tcp.startswith("tcp (no RDMA: ")


NETWORK_OF_DEFAULT = Options(interface="eth0", ports=range(5, 9), transport="ucx", staging_bytes=1)


@pytest.mark.parametrize("given", [None, Options(algorithms={"all_reduce": "ring"}), Options(transport="tcp")])
def test_a_group_takes_what_its_options_do_not_state_about_the_network_from_the_default_group(given):
    made = own_options(given, shared=False, default=NETWORK_OF_DEFAULT)
    stated = given or Options()
    assert (made.interface, made.ports, made.transport) == ("eth0", range(5, 9), stated.transport or "ucx")
    assert (made.algorithms, made.staging_bytes) == (stated.algorithms, stated.staging_bytes)
    assert own_options(given, shared=False) == stated


# ---- faults --------------------------------------------------------------------------------------------------------


def join_from(rank: Rank, parts: list[dict[str, str]], timeout_s: float = 30.0, absent: int = -1) -> None:
    """Join from a host that differs from this one in some parts of its identity; one rank may not join at all."""
    if rank.rank == absent:
        return
    if parts[rank.rank]:
        move_to_host("far-away", **parts[rank.rank])
    rank.join(timeout_s)
    assert sum_in(None, 1) == rank.size


CONTAINER, MACHINE = {"processes": "pid:[1]"}, {"kernel": "another one"}


def test_ranks_meet_at_any_common_address_if_the_store_has_no_host(tmp_path):
    for outcome in run(tmp_path, join_from, 3, [{}, CONTAINER, {}]):
        assert outcome.code == 0, outcome.output


def has_only_a_loopback_address(rank: Rank, where: int) -> None:
    if rank.rank == where:
        store_network.usable_addresses = lambda: ["127.0.0.1", "::1"]
    join_from(rank, [{}, MACHINE, {}])


@pytest.mark.parametrize("where", [0, 1])
def test_a_host_with_only_a_loopback_address_is_reported_on_all_ranks(tmp_path, where):
    for outcome in run(tmp_path, has_only_a_loopback_address, 3, where):
        outcome.check_raised("UsageError", "one of them has only a loopback address", "rank 1 on far-away")


def test_a_rank_on_another_host_is_refused_if_torchrun_states_that_all_are_on_one(tmp_path):
    torchrun = {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3"}
    for outcome in run(tmp_path, join_from, 3, [{}, MACHINE, {}], **torchrun):
        outcome.check_raised("UsageError", "torchrun states that all ranks are on one host", "rank 1 on far-away")


@pytest.mark.parametrize("absent", [0, 1, 2])
def test_a_rank_that_never_comes_is_named(tmp_path, absent):
    with job(tmp_path, join_from, 3, [{}, {}, CONTAINER], 4.0, absent) as running:
        for rank in {0, 1, 2} - {absent}:
            outcome = running.outcome(rank)
            text = "waiting for rank 0 of 3" if absent == 0 else "these ranks of 3 have not connected"
            outcome.check_raised("CollectiveTimeout", text)
            if absent == 1:  # rank 0 has met the rank on the other host
                assert outcome.about == 1
                assert "0 on" in outcome.text
                assert "2 on far-away" in outcome.text


def join_late(rank: Rank, parts: list[dict[str, str]], late: int) -> None:
    """Join; one rank joins only after rank 0 has published its port."""
    if rank.rank == late:
        store = keys_of_group(rank.folder)
        store.wait([WHERE], timedelta(seconds=20))
        store.wait([store_network.NETWORK + json.loads(store.get(WHERE))["name"]], timedelta(seconds=20))
    join_from(rank, parts)


@pytest.mark.parametrize("late", [1, 2])
def test_a_rank_that_starts_after_rank_0_has_moved_to_the_network_joins(tmp_path, late):
    for outcome in run(tmp_path, join_late, 4, [{}, {}, CONTAINER, CONTAINER], late):
        assert outcome.code == 0, outcome.output


def keys_of_group(folder):
    store = dist.FileStore(str(folder / "store"), 2)
    return dist.PrefixStore("cpu/", dist.PrefixStore("0/", store))


def join_second(rank: Rank, parts: list[dict[str, str]]) -> None:
    if rank.rank == 0:
        while not (rank.folder / "go").exists():
            time.sleep(0.01)
    join_from(rank, parts)


@pytest.mark.parametrize("parts", [[{}, {}], [{}, CONTAINER]], ids=["one host", "two hosts"])
def test_an_address_on_another_host_may_be_left_from_a_job_that_was_killed(tmp_path, parts):
    left = {"name": "old", "secret": "x", "rank 0": {**store_rendezvous.host_info(), "kernel": "gone"}}
    store = keys_of_group(tmp_path)
    store.set(WHERE, json.dumps(left))
    with job(tmp_path, join_second, 2, parts) as running:
        store.wait([FAR + "old"], timedelta(seconds=20))
        (tmp_path / "go").touch()
        for outcome in running.outcomes():
            assert outcome.code == 0, outcome.output


def announce_nonsense(rank: Rank, content: str) -> None:
    if rank.rank == 1:
        store = keys_of_group(rank.folder)
        store.wait([WHERE], timedelta(seconds=20))
        store.set(FAR + json.loads(store.get(WHERE))["name"], content)
        return
    rank.join(timeout_s=30.0)


@pytest.mark.parametrize("content", ["[]", '{"rank": 1, "host": {}, "address": "x"}', "[" * 100_000])
def test_an_invalid_announcement_is_rejected_immediately(tmp_path, content):
    with job(tmp_path, announce_nonsense, 2, content) as running:
        running.outcome(0).check_raised("CommError", "is not what rank 0 writes there")


PUBLISHED = {"addresses": ["10.0.0.1", "::1"], "port": 4000}


def test_published_addresses_are_read():
    assert published_addresses(json.dumps(PUBLISHED).encode(), "key") == (["10.0.0.1", "::1"], 4000)


@pytest.mark.parametrize("changed", [{"addresses": ["host"]}, {"port": "1"}, {"port": 0}, {"addresses": 5}])
def test_other_content_of_the_store_is_refused(changed):
    with pytest.raises(CommError, match="the store's key is not what rank 0 writes there"):
        published_addresses(json.dumps({**PUBLISHED, **changed}).encode(), "key")


# ---- addresses -----------------------------------------------------------------------------------------------------


def hosts_of_stores():
    os.environ["MASTER_ADDR"] = "node-1"
    store = dist.TCPStore("localhost", 0, is_master=True)
    found = [store_host(dist.PrefixStore("a", dist.PrefixStore("b", store))), store_host(dist.HashStore())]
    del os.environ["MASTER_ADDR"]
    return [*found, store_host(dist.HashStore())]


def test_the_host_of_a_store_is_found_below_prefixes():
    assert run_ranks(hosts_of_stores, 1, init=False) == [["localhost", "node-1", ""]]


def test_an_address_that_other_hosts_reach_is_preferred(monkeypatch):
    routes = {"a": "127.0.0.1", "b": "10.0.0.1", "c": ""}
    monkeypatch.setattr(store_network, "source_address", routes.__getitem__)
    assert own_address(None, ["a", "b"]) == own_address(None, ["b", "a"]) == "10.0.0.1"
    assert own_address(None, ["c", "a"]) == "127.0.0.1"
    assert own_address(None, ["", "c"]) == ""
    assert own_address("lo", ["b"]) == "127.0.0.1"
