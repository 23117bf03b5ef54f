"""Predictions of NCCL calls, on a few published measurements.

The times are those of the nccl-tests logs in microsoft/superbenchmark (tests/data, 8 A100), of
NVIDIA/dgxc-benchmarking (nccl/README.md, DGX H100), of aws-samples/awsome-distributed-training (micro-benchmarks,
2 p4de) and of argonne-lcf/alcf-nccl-tests (results_polaris, NCCL 2.21, setup 4).
"""

import math
import statistics

import pytest

from grading import nccl
from grading.nccl_choice import LL, NVLS, RING, SIMPLE, TREE, Tuner
from grading.nccl_libraries import a100, h100, p4de, polaris
from grading.nccl_model import predict
from grading.nccl_programs import chains_and_trees
from unisono.simulator import simulate
from unisono.verifier import prove

MIB = 1 << 20
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


def test_the_rows_that_are_graded_are_not_those_of_the_calibration(tmp_path):
    header = "id,source,system,nodes,gpus_per_node,ranks,coll,variant,bytes,oop_us,algbw,busbw,ip_us,ip_busbw"
    lines = [f"x,s,DGX H100 1 node,1,8,8,allreduce,,{1 << power},{10 + power},1,1,1,1" for power in range(8, 32)]
    (tmp_path / nccl.FILE).write_text("\n".join([header, *lines]), encoding="utf-8")
    rows = list(nccl.rows(tmp_path / nccl.FILE))
    assert [round(math.log2(row.nbytes)) for row in rows] == list(range(10, 31))
    assert {row.nbytes for row in rows if row.fitted} == {1 << power for power in range(10, 31, 2)}
    titles = [grade.title for grade in nccl.grades(tmp_path)]
    assert titles == ["DGX H100, 1 node", "NCCL, all machines"]
