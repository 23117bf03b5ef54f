"""The choice of algorithms for a network that replaces this machine, and the time that a choice takes."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import unisono
from measure_choice import ALLOWED, choice_s, points_of
from unisono import networks
from unisono.collectives import COLLECTIVES, all_gather, all_reduce, all_to_all, reduce
from unisono.comm import dispatch
from unisono.comm.candidates import candidates_for
from unisono.comm.network_rates import rates_of_network, tuning_for
from unisono.comm.ranking import ranking_for
from unisono.comm.topology import hosts_of
from unisono.costs.network_model import NetworkModel, model_from, model_of
from unisono.costs.rates import DEFAULT, Rates
from unisono.networks import PRESETS, Near, Network, Nics

LIMIT_S = 60


def test_nearly_all_choices_are_as_good_as_the_best_of_a_simulation():
    """All points: ``tools/measure_choice.py --regret``. The network of textbooks is not a machine."""
    points = []
    for name in sorted(set(PRESETS) - {"ideal", "gb200-nvl72"}):
        network = networks.load(name)
        counts = (1,) if network.hosts == 1 else (7,) if network.ranks_per_host == 1 else (2,)
        points += points_of(network, counts, (1 << 10, 4 << 20), (all_reduce, all_gather, all_to_all, reduce))
    beyond = [point for point in points if point.regret > ALLOWED]
    assert len(points) == 104
    assert len(beyond) <= 0.05 * len(points), beyond
    assert max(point.regret for point in points) < 1.7, beyond


@pytest.mark.parametrize("name", PRESETS)
def test_the_numbers_of_a_network_travel_as_json(name):
    model = model_of(networks.load(name))
    assert model_from(json.loads(json.dumps(model.as_data()))) == model


def test_direct_is_a_candidate_between_hosts_where_a_network_is_stated():
    hosts = hosts_of((4, 4))
    assert "direct" not in {each.name for each in candidates_for(all_reduce, 8, hosts)}
    model = rates_of_network("dgx-h100", hosts)
    assert "direct" in {each.variant.name for each in ranking_for(all_reduce, 8, hosts, model).ranked(1 << 20)}


def test_ranks_that_share_memory_have_no_ports():
    near = Near(kind="memory", latency_s=1e-6, bandwidth=1e10)
    network = Network("shared", ranks_per_host=4, near=near, nics=Nics(latency_s=1e-5, bandwidth=1e9))
    assert isinstance(rates_of_network(network, None), Rates)
    assert isinstance(rates_of_network(network, hosts_of((4, 4))), NetworkModel)
    assert isinstance(rates_of_network("dgx-h100", None), NetworkModel)


@pytest.mark.parametrize(("nics", "share"), [(1, 1.0), (2, 0.5), (4, 1.0), (6, 4 / 6), (8, 1.0), (16, 1.0)])
def test_bytes_between_hosts_are_scaled_to_the_nics_of_a_host(nics, share):
    model = model_of(Network("some", ranks_per_host=8, nics=Nics(count=nics)))
    assert model.nic_share(8) == pytest.approx(share)
    assert model.nic_share(1) == 1.0  # a group with one rank on each host


def test_a_stated_link_rate_is_that_of_all_nics_of_a_host():
    hosts = hosts_of((8, 8))
    model = rates_of_network("dgx-h100", hosts, link_rate=8e9)
    assert {costs.far_byte_s for costs in model.protocols} == {1e-9}


def test_latency_grows_with_the_hosts_where_the_fabric_does():
    costs = rates_of_network("fugaku", hosts_of((1, 1))).protocols[0]
    assert costs.on_hosts(2) < costs.on_hosts(64) < costs.on_hosts(4096)
    assert costs.on_hosts(2) == costs.far_s[0]
    assert costs.on_hosts(10**6) == costs.far_s[-1]


TOPOLOGIES = [(2,), (13,), (1000,), (1,) * 7, (4,) * 4, (6,) * 300, (8,) * 1000, (3, 1), (8, 7, 5, 3)]


@pytest.mark.parametrize("counts", TOPOLOGIES, ids=lambda counts: f"{len(counts)} hosts, {sum(counts)} ranks")
def test_the_first_choice_takes_less_than_two_milliseconds(counts):
    """Of the processor, as other processes may use the machine; all_reduce has the most candidates."""
    for rates in (DEFAULT, rates_of_network("dgx-h100", hosts_of(counts))):
        assert choice_s(all_reduce, counts, rates)[0] < 2e-3


def test_nothing_is_chosen_from_the_second_call_of_a_size_on(monkeypatch):
    chosen = []

    def choose(collective, size, nbytes, *others, **options):
        chosen.append(nbytes)
        return original(collective, size, nbytes, *others, **options)

    original = dispatch.choose
    monkeypatch.setattr(dispatch, "choose", choose)
    with unisono.connect() as comm:
        for count in (3, 3, 1000, 3, 1000, 1000):
            comm.all_reduce(np.ones(count, np.float32))
    assert chosen == [12, 4000]


# Every rank has another table, another record of its machine, and another network.
DIFFERENT = """
import json, os, sys
folder, stated = sys.argv[1], json.loads(sys.argv[2])
rank = int(os.environ["UNISONO_RANK"])
os.environ["XDG_CACHE_HOME"] = os.path.join(folder, str(rank))
import numpy as np
import unisono
from unisono.collectives import COLLECTIVES
from unisono.comm import machine, tables
from unisono.costs.rates import Rates
tables.store_table({"all_reduce": {"3": [[0, ("tree", "ring", "naive")[rank]]]}})
machine.store_machine({3: Rates(near_s=1e-7 * 10**rank, sent_byte_s=1e-9 / 10**rank)}, 4)
with unisono.connect(network=stated[rank]) as comm:
    said = [str(comm.explain(each, nbytes)) for each in COLLECTIVES for nbytes in (8, 4096, 1 << 20)]
    with comm.split(comm.rank // 2) as part:
        said_in_part = str(part.explain("broadcast", 4096)) if part.size == 2 else None
    x = np.ones(5000, np.float32)
    comm.all_reduce(x)
    comm.broadcast(x, root=1)
    assert (x == 3).all()
with open(os.path.join(folder, f"{rank}.json"), "w") as file:
    json.dump([said, said_in_part], file)
"""


def said_by_ranks(folder, stated):
    command = [sys.executable, "-m", "unisono", "run", "-n", "3", sys.executable, "-c", DIFFERENT, str(folder)]
    done = subprocess.run([*command, json.dumps(stated)], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(3)]


def test_ranks_choose_alike_if_their_tables_machines_and_networks_differ(tmp_path):
    first, second, third = said_by_ranks(tmp_path, ["ethernet-1g", None, "dgx-h100"])
    assert first[0] == second[0] == third[0]
    assert first[1] == second[1]
    assert "all_reduce of 8 bytes on 3 ranks: tree, selected for all sizes" in " ".join(first[0])  # rank 0's table


def test_the_network_of_rank_0_applies_to_all_ranks(tmp_path):
    for folder in ("first", "others"):
        (tmp_path / folder).mkdir()
    of_first = said_by_ranks(tmp_path / "first", ["dgx-h100", None, None])
    of_others = said_by_ranks(tmp_path / "others", [None, "dgx-h100", "dgx-h100"])
    assert of_first[0] == of_first[1] != of_others[0] == of_others[1]
    predicted = ranking_for(all_gather, 3, None, rates_of_network("dgx-h100", None)).best(1 << 20)
    assert f"all_gather of 1048576 bytes on 3 ranks: {predicted.key}, " in " ".join(of_first[0][0])


def test_an_unknown_network_is_an_error_on_the_rank_that_states_it():
    with pytest.raises(unisono.UsageError, match="dgx-h1000"):
        tuning_for("dgx-h1000")
    with pytest.raises(unisono.UsageError, match="dgx-h1000"):
        unisono.connect(network="dgx-h1000")


@pytest.mark.parametrize("collective", COLLECTIVES, ids=str)
def test_there_is_a_choice_for_every_call_on_every_network(collective):
    for name in PRESETS:
        for counts in ((1,), (2,), (7,), (1, 1, 1), (4, 4), (3, 1)):
            hosts = None if len(counts) == 1 else hosts_of(counts)
            ranking = ranking_for(collective, sum(counts), hosts, rates_of_network(name, hosts))
            assert ranking.best(0).algorithm.can_serve(sum(counts))
            assert ranking.ranked(1 << 20)[0].prediction.time_s >= 0
