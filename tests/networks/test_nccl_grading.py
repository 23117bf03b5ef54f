"""Predictions of NCCL calls, on a few published measurements.

The times are those of the nccl-tests logs in microsoft/superbenchmark (tests/data, 8 A100), of
NVIDIA/dgxc-benchmarking (nccl/README.md, DGX H100), of aws-samples/awsome-distributed-training (micro-benchmarks,
2 p4de) and of argonne-lcf/alcf-nccl-tests (results_polaris, NCCL 2.21, setup 4).
"""

import math
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from grading import nccl
from grading.nccl_blind import PUBLISHED
from grading.nccl_choice import LL, NVLS, RING, SIMPLE, TREE, Tuner
from grading.nccl_fit import Descent
from grading.nccl_libraries import FITTED, POLARIS, a100, h100, libraries, p4de, polaris, preset_numbers
from grading.nccl_model import predict
from grading.nccl_programs import chains_and_trees
from unisono.networks import load
from unisono.simulator import simulate
from unisono.verifier import prove

MIB = 1 << 20
PAGE = Path(__file__).parents[2] / "docs" / "predictions.md"
QUOTED = [  # library, collective, bytes, ranks, microseconds
    (a100(), "all_reduce", 512 * MIB, 8, 4200.3),
    (a100(), "all_gather", 2 * MIB, 8, 77.3),
    (a100(), "reduce_scatter", 128 * MIB, 8, 618.1),
    (a100(), "all_to_all", 32 * MIB, 8, 237.5),
    (h100(), "all_reduce", 8192, 8, 17.4),
    (h100(), "all_reduce", 512 * MIB, 8, 2151.0),
    (p4de(), "all_reduce", 8192, 16, 175.9),
    (polaris("nccl_2_21 setup4"), "all_gather", 8192, 8, 23.3),
    (polaris("nccl_2_21 setup4"), "all_reduce", 128 * MIB, 32, 7248.8),
    (polaris("nccl_2_21 setup4"), "all_to_all", 128 * MIB, 32, 27407.0),
]


def test_predictions_are_close_to_the_quoted_measurements():
    errors = [
        abs(predict(library, collective, nbytes, ranks, simulate) * 1e6 / measured - 1)
        for library, collective, nbytes, ranks, measured in QUOTED
    ]
    assert statistics.median(errors) < 0.10
    assert max(errors) < 0.40


@pytest.mark.parametrize(
    ("size", "per_host"), [(1, 1), (2, 1), (3, 8), (5, 1), (6, 2), (7, 1), (8, 4), (13, 1), (24, 8)]
)
def test_the_tree_of_nccl_is_proved(size, per_host):
    assert prove(chains_and_trees.schedule(size, per_host=per_host)).steps >= 0


def test_nccl_chooses_as_its_sources_say():
    polaris_tuner = Tuner(221, 80, 4, 10.0, has_ll128=False)
    assert polaris_tuner.choose(True, 64 << 10, 8, 4) == (TREE, LL)
    assert polaris_tuner.choose(True, MIB, 8, 4) == (RING, LL)  # what NCCL 2.18 does not do
    assert Tuner(218, 80, 4, 10.0, has_ll128=False).choose(True, MIB, 8, 4) == (TREE, SIMPLE)
    assert polaris_tuner.choose(False, 256 * MIB, 8, 4) == (RING, SIMPLE)
    assert Tuner(221, 90, 24, 15.45, in_switch=True).choose(True, 64 * MIB, 1, 8) == (NVLS, SIMPLE)


@pytest.mark.parametrize("hosts", [1, 2, 3])
def test_predictions_grow_with_the_bytes_and_stay_below_wire_speed(hosts):
    library, sizes = h100(), [MIB << power for power in range(0, 9, 4)]
    near, nics = library.network.near, library.network.nics
    times = [predict(library, "all_gather", nbytes, hosts * 8, simulate) for nbytes in sizes]
    assert times == sorted(times)
    for nbytes, time in zip(sizes, times, strict=True):
        far_s = nbytes * (hosts - 1) / hosts / (nics.bandwidth * nics.count)
        assert time > max(far_s, nbytes * 7 / 8 / near.bandwidth)


@pytest.mark.parametrize("hosts", [2, 4])
def test_all_reduces_of_several_h100_hosts_are_as_fast_as_their_nics_allow(hosts):
    """A bus bandwidth of 280 to 480 GB/s: 8 NICs of 50 GB/s, of which the trees of 2 hosts need only half."""
    size, nbytes = hosts * 8, 1 << 30
    bus = 2 * (size - 1) / size * nbytes / predict(h100(), "all_reduce", nbytes, size, simulate)
    assert 280e9 < bus < 490e9


@pytest.mark.parametrize("preset", ["dgx-a100", "dgx-h100", "gb200-nvl72", "aws-p4d", "aws-p5", "polaris"])
def test_presets_contain_the_numbers_of_the_fit(preset):
    network = load(preset)
    protocols = {each.name: each for each in network.protocols}
    found = {
        "near.latency_s": network.near.latency_s,
        "near.bandwidth": network.near.bandwidth,
        "near.reduce_bandwidth": network.near.reduce_bandwidth,
        "nic.latency_s": network.nics.latency_s,
        "nic.bandwidth": network.nics.bandwidth,
    }
    for name, each in protocols.items():
        found |= {
            f"{name}.near_latency_s": each.near_latency_s,
            f"{name}.far_latency_s": each.far_latency_s,
            f"{name}.far_efficiency": each.far_efficiency,
        }
    expected = preset_numbers()[preset]
    assert expected
    for key, number in expected.items():
        assert found[key] == pytest.approx(number, rel=1e-9), key


def test_a_step_between_hosts_costs_more_with_more_channels_on_a_nic():
    library = polaris("nccl_2_21 setup4")
    few, many = (library.far_latency_s(RING, SIMPLE, channels, 4096) for channels in (2, 4))
    assert many - few == pytest.approx(4 * library.message_s)  # two slices, two turns of the proxy
    long = library.far_latency_s(RING, SIMPLE, 4, 1 << 20)
    assert long - many == pytest.approx(8 * library.rendezvous_s)


def test_short_messages_of_an_all_to_all_are_slow_on_slingshot():
    """ALCF, NCCL 2.21, setup 4, 8 nodes: 483 us with messages of 128 B, 125.6 us with 256 B."""
    library = polaris("nccl_2_21 setup4")
    short, longer = (predict(library, "all_to_all", nbytes, 32, simulate) for nbytes in (4096, 8192))
    assert 3 < short / longer < 5


def test_the_bytes_of_an_all_to_all_take_the_time_of_the_busiest_link():
    library = replace(p4de(), message_s=0.0, net_s=0.0)
    nics, nbytes = library.network.nics, 1 << 30
    far_s = 8 * 8 * (nbytes / 16) / (nics.bandwidth * nics.count)
    assert predict(library, "all_to_all", nbytes, 16, simulate) == pytest.approx(far_s, rel=0.01)


def test_a_fit_finds_the_numbers_that_made_its_rows():
    name, true = "nccl_2_21 setup1", 21.0
    library = polaris(name, {**FITTED, "setup1.ring_ll_us": true})
    sizes = [1 << power for power in range(10, 17)]
    rows = [
        nccl.Row(name, "all_gather", each, 8, predict(library, "all_gather", each, 8, simulate)) for each in sizes
    ]
    descent = Descent({name: rows}, {**FITTED, "setup1.ring_ll_us": 10.0}, ["setup1.ring_ll_us"])
    assert descent.run()["setup1.ring_ll_us"] == pytest.approx(true, rel=0.02)


def test_a_number_belongs_to_the_machines_that_it_changes():
    changed = libraries({**FITTED, "setup4.message_us": 99.0})
    assert [name for name, each in libraries().items() if each != changed[name]] == [
        "nccl_2_18 setup4",
        "nccl_2_21 setup4",
    ]


def test_bytes_move_when_all_gpus_of_a_process_have_started():
    """One process enqueues 8 calls: it hides the latency of short calls, and delays the bytes of long ones."""
    together, apart = a100(), replace(a100(), host_call_s=0.0)
    host_s = together.host_call_s
    assert predict(together, "all_gather", 1024, 8, simulate) == pytest.approx(host_s, rel=0.05)
    long = 64 * MIB
    late_s = predict(together, "all_gather", long, 8, simulate) - predict(apart, "all_gather", long, 8, simulate)
    assert 0.5 * host_s < late_s < 2.5 * host_s


def test_the_rows_of_eight_nodes_are_graded_and_those_of_two_are_fitted():
    rows = [nccl.Row(POLARIS[0], "all_gather", 1 << power, ranks, 1.0) for power in (10, 11) for ranks in (8, 32)]
    assert [row.fitted for row in rows] == [True, False, True, False]


def test_the_grade_on_machines_outside_the_file_is_that_of_the_page():
    """The rows are quoted in tools/grading/nccl_blind.py, with their sources."""
    grade = nccl.outside()
    assert len(grade.errors) == sum(len(each.times_us) for each in PUBLISHED if not each.calibrates) > 40
    assert f"| {grade.median:.1%} (15%) |" in PAGE.read_text(encoding="utf-8")


def test_the_rows_that_are_graded_are_not_those_of_the_calibration(tmp_path):
    header = "id,source,system,nodes,gpus_per_node,ranks,coll,variant,bytes,oop_us,algbw,busbw,ip_us,ip_busbw"
    lines = [f"x,s,DGX H100 1 node,1,8,8,allreduce,,{1 << power},{10 + power},1,1,1,1" for power in range(8, 32)]
    (tmp_path / nccl.FILE).write_text("\n".join([header, *lines]), encoding="utf-8")
    rows = list(nccl.rows(tmp_path / nccl.FILE))
    assert [round(math.log2(row.nbytes)) for row in rows] == list(range(10, 31))
    assert {row.nbytes for row in rows if row.fitted} == {1 << power for power in range(10, 31, 2)}
    titles = [grade.title for grade in nccl.grades(tmp_path)]
    assert titles == ["DGX H100, 1 node", "NCCL, all machines", "NCCL, machines that are not in the file"]
