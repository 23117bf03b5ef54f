"""Meshes and hybrid sharding that are derived from the hosts of a group."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.errors import UsageError  # noqa: E402
from unisono.parallel import Zero, mesh  # noqa: E402
from unisono.parallel.mesh import host_mesh  # noqa: E402

ROUND_ROBIN, CONSECUTIVE = ((0, 2), (1, 3)), ((0, 1), (2, 3))


def members(group, rank):
    found = torch.zeros(group.size)
    group.all_gather(found, torch.tensor([float(rank)]), name="ranks", phase="start")
    return [int(each) for each in found]


def derived(group, hosts):
    group.hosts = hosts
    grid, named = host_mesh(group), mesh(group, nodes=2, dp=-1)
    return [members(each, group.rank) for each in (grid.shard, grid.replica, named.dp, named.nodes)]


@pytest.mark.parametrize("kind", ["comm", "gloo"])
@pytest.mark.parametrize("hosts", [ROUND_ROBIN, CONSECUTIVE], ids=["round robin", "consecutive"])
def test_the_last_axis_of_a_mesh_has_the_ranks_of_a_host(hosts, kind):
    for rank, found in enumerate(run_groups(derived, 4, hosts, kind=kind)):
        near = next(list(ranks) for ranks in hosts if rank in ranks)
        across = [ranks[near.index(rank)] for ranks in hosts]
        assert found == [near, across, near, across]


def facts(group, hosts):
    group.hosts = hosts
    torch.manual_seed(0)
    zero = Zero(nn.Linear(4, 4), group, optimizer=lambda shards: torch.optim.SGD(shards, lr=0.1), replicate="hosts")
    zero(torch.ones(2, 4) * group.rank).sum().backward()
    zero.step()
    state = zero.state_dict()["weight"]
    groups = [members(each, group.rank) for each in (zero.group, zero.replicas) if each is not None]
    return groups, state


def test_hybrid_sharding_by_hosts_equals_training_on_one_rank():
    alone = nn.Linear(4, 4)
    torch.manual_seed(0)
    alone.reset_parameters()
    sum(alone(torch.ones(2, 4) * rank).sum() for rank in range(4)).div(4).backward()
    torch.optim.SGD(alone.parameters(), lr=0.1).step()
    for rank, (groups, state) in enumerate(run_groups(facts, 4, ROUND_ROBIN)):
        assert groups == [[rank % 2, rank % 2 + 2], [rank // 2 * 2, rank // 2 * 2 + 1]]
        assert torch.allclose(state, alone.weight, atol=1e-6)


def test_on_one_host_all_ranks_share_one_model():
    for groups, _ in run_groups(facts, 2, ((0, 1),)):
        assert groups == [[0, 1]]


def refuse(group):
    said = []
    for hosts, replicate in ((((0, 1), (2,)), "hosts"), (None, "hosts"), (((0, 1, 2),), "nodes")):
        group.hosts = hosts
        with pytest.raises(UsageError) as caught:
            Zero(nn.Linear(2, 2), group, optimizer=lambda shards: None, replicate=replicate)
        said.append(str(caught.value))
    return said


def test_hosts_that_cannot_hold_equal_shards_are_refused():
    for said in run_groups(refuse, 3):
        assert "the hosts have 2, 1 ranks; expected the same number" in said[0]
        assert "the hosts of this process group are not known" in said[1]
        assert 'expected a group, None or "hosts"' in said[2]


def hosts_of(group):
    return group.hosts


def test_groups_know_their_hosts_where_the_backend_does():
    assert run_groups(hosts_of, 2) == [((0, 1),)] * 2
    assert run_groups(hosts_of, 2, kind="unisono") == [((0, 1),)] * 2
    assert run_groups(hosts_of, 2, kind="gloo") == [None] * 2
