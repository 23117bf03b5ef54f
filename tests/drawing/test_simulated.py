"""The data of pages in simulated time: they are the times and crossovers of the simulator."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

import unisono
from unisono import draw, networks
from unisono.drawing.simulated import NETWORKS, SIZES
from unisono.errors import UsageError
from unisono.simulator.sweep import Sweep, takeovers

ZIGZAG = str(Path(__file__).parents[2] / "examples" / "zigzag.py")
NETWORK_FILE = """
name = "mine"
title = "two hosts"
ranks_per_host = 4
[nic]
latency = "8 us"
bandwidth = "25 Gbit/s"
"""


def data_of(drawing):
    text = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', drawing.html, re.DOTALL)[1]
    return json.loads(text)


def unpacked(packed):
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), "<i4")
    ends = np.cumsum(packed["lengths"])
    return {
        name: np.cumsum(numbers[end - length : end], dtype=np.int64)
        for name, length, end in zip(packed["names"], packed["lengths"], ends, strict=True)
    }


@pytest.mark.parametrize(
    ("name", "size", "network", "nbytes"),
    [
        ("ring", 16, "dgx-h100", 1 << 20),
        ("hierarchical", 13, "dgx-h100", 1 << 22),
        ("tree", 5, "xeon-16-cores", 1 << 21),
        ("all_to_all/pairwise", 7, "fugaku", 100_000),
        ("all_reduce/ring", 3, "ethernet-10g", 8),
    ],
)
def test_the_times_on_a_page_are_those_of_simulate(name, size, network, nbytes):
    page = data_of(draw(name, size=size, network=network, nbytes=nbytes))
    options = {"node": (8, 5)} if name == "hierarchical" else {}
    predicted = unisono.simulate(unisono.find(name).schedule(size, **options), nbytes, network, timeline=True)
    simulated, timeline = page["simulated"], predicted.timeline
    columns = unpacked(simulated["packed"])
    unit_s = predicted.time_s / simulated["parts"]
    assert simulated["prediction"] == json.loads(json.dumps(predicted.as_data()))
    assert simulated["passes"] == predicted.passes
    for column, times in (("sent", timeline.leave_s), ("arrived", timeline.arrival_s), ("got", timeline.done_s)):
        assert columns[column] * unit_s == pytest.approx(times.ravel(), abs=unit_s)
    assert columns["step"] * unit_s == pytest.approx(np.concatenate(timeline.step_s), abs=unit_s)
    used = np.unique(timeline.routes[timeline.routes >= 0])
    assert used[columns["use_link"]].tolist() == timeline.use.link.tolist()
    assert columns["use_load"] / 1000 == pytest.approx(timeline.use.used, abs=0.0005)


def test_near_and_far_links_are_told_apart_and_have_names_in_both_languages():
    simulated = data_of(draw("ring", size=16, network="dgx-h100"))["simulated"]
    names = {link["name"]["en"]: link for link in simulated["links"]}
    assert not names["near link out of rank 3"]["far"]
    assert names["link into host 1, NIC 0"]["far"]
    assert names["link into host 1, NIC 0"]["name"]["zh"] == "到达主机 1 网卡 0 的链路"
    far = {(source, target) for source, target, is_far, _ in simulated["pairs"] if is_far}
    assert far == {(7, 8), (15, 0)}


def test_a_race_has_the_times_and_crossovers_of_the_simulator():
    names, size = ("ring", "recursive_doubling"), 6
    race = data_of(draw(names, size=size))["race"]
    assert [network["name"] for network in race["networks"]] == list(NETWORKS)
    assert race["sizes"] == list(SIZES)
    schedules = [unisono.find(name).schedule(size) for name in names]
    columns, start = unpacked(race["packed"]), 0
    for network in race["networks"]:
        record = networks.load(network["name"])
        if network["name"] in ("ideal", "dgx-h100"):
            sweeps = [Sweep(schedule, record) for schedule in schedules]
            changes = takeovers(sweeps, race["chart_sizes"])
            assert [(each["bytes"], each["after"]) for each in network["crossovers"]] == changes[1:]
            assert network["chart"] == [[sweep.time_s(nbytes) for nbytes in race["chart_sizes"]] for sweep in sweeps]
        for at, schedule in enumerate(schedules):
            for nbytes, finish in zip(race["sizes"], network["finish"][at], strict=True):
                if nbytes in (8, 1 << 18):
                    predicted = unisono.simulate(schedule, nbytes, record, timeline=True)
                    timeline, unit_s = predicted.timeline, predicted.time_s / race["parts"]
                    part = slice(start, start + len(timeline.source))
                    assert finish == predicted.time_s
                    assert columns["sent"][part] * unit_s == pytest.approx(timeline.leave_s.min(axis=0), abs=unit_s)
                    assert columns["got"][part] * unit_s == pytest.approx(timeline.done_s.max(axis=0), abs=unit_s)
                start += unisono.prove(schedule).messages
    assert start == len(columns["sent"])
    assert any(network["crossovers"] for network in race["networks"])


def test_a_crossover_is_where_simulate_says_that_another_algorithm_is_faster():
    race = data_of(draw("ring", "recursive_doubling", size=8, network="dgx-h100"))["race"]
    (network,) = race["networks"]
    schedules = [unisono.find(name).schedule(8) for name in ("ring", "recursive_doubling")]
    assert network["crossovers"]
    for change in network["crossovers"]:

        def lead_s(nbytes, change=change):
            before, after = (
                unisono.simulate(schedules[change[name]], nbytes, "dgx-h100") for name in ("before", "after")
            )
            return before.time_s - after.time_s

        assert lead_s(change["bytes"]) > 0 >= lead_s(int(change["bytes"] / 1.02))


def test_the_page_opens_at_the_size_that_was_asked_for():
    race = data_of(draw("ring", "tree", size=3, network="ideal", nbytes=3000))["race"]
    assert race["bytes"] == 3000
    assert 3000 in race["sizes"]
    assert len(race["sizes"]) == len(SIZES) + 1


def test_collectives_without_data_race_without_sizes():
    race = data_of(draw("barrier/dissemination", "barrier/tree", size=5))["race"]
    assert (race["sizes"], race["chart_sizes"]) == ([0], [])


def test_a_network_file_and_a_program_of_the_user_are_animated(tmp_path):
    (tmp_path / "mine.toml").write_text(NETWORK_FILE)
    made = draw(ZIGZAG, size=8, network=tmp_path / "mine.toml", nbytes=1 << 16)
    page = data_of(made)
    assert made.title == "all_reduce/zigzag · 8 · mine"
    assert page["scenes"][0]["layout"]["best"] == "nodes"
    assert page["scenes"][0]["hosts"] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_more_ranks_than_the_stage_has_room_for_have_times_without_a_stage():
    page = data_of(draw("ring", "hierarchical", size=72, network="dgx-h100", nbytes=1 << 20))
    assert [scene["packed"] for scene in page["scenes"]] == [None, None]
    assert page["scenes"][1]["label"] == "all_reduce/hierarchical(node=8)"
    assert not page["race"]["animated"]
    hierarchical = unisono.find("hierarchical").schedule(72, node=8)
    at = page["race"]["sizes"].index(1 << 20)
    assert page["race"]["networks"][0]["finish"][1][at] == unisono.simulate(hierarchical, 1 << 20, "dgx-h100").time_s


def test_a_program_that_fails_its_proof_is_not_simulated(tmp_path):
    wrong = Path(ZIGZAG).parent / "wrong" / "zigzag_twice.py"
    made = draw(wrong, size=4, network="ideal")
    assert made.failures
    assert data_of(made)["simulated"] is None


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"network": "dgx-h10"}, "did you mean 'dgx-h100'"),
        ({"network": "nowhere.toml"}, "nowhere.toml"),
        ({"network": "polaris", "size": 4000}, "expected: between 1 and 2240 ranks"),
        ({"network": 7}, "the network is 7"),
        ({"nbytes": 8}, "expected: a network as well"),
        ({"network": "ideal", "nbytes": -1}, "expected: a whole number of bytes"),
        ({"network": "ideal", "nbytes": "1MiB"}, "expected: a whole number of bytes"),
        ({"bytes": 8}, "did you mean nbytes="),
    ],
)
def test_arguments_that_make_no_sense_are_explained(arguments, text):
    with pytest.raises(UsageError, match=re.escape(text)):
        draw("ring", **arguments)


def test_a_lesson_and_a_run_take_no_network():
    with pytest.raises(UsageError, match="leave out names"):
        draw(lesson="ring", network="ideal")
