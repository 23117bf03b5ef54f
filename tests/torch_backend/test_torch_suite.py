"""PyTorch's tests of process groups pass: a few of them run here, all with `make torch-suite`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import unittest

import pytest

import torch_suite
import torch_suite_files_page
import torch_suite_hosts
import torch_suite_page
from console_blocks import ROOT
from test_hosts import what_is_missing
from unisono.bootstrap.hosts import hosts_of
from unisono.bootstrap.locality import host_info

FAST = [
    "test_accumulate_gradients_no_sync_allreduce_with_then_hook", "test_all_gather", "test_all_reduce_sum_async",
    "test_all_to_all", "test_broadcast", "test_gather_object", "test_get_future",
    "test_monitored_barrier_gloo_rank_0_timeout", "test_reduce_group_max", "test_reduce_max", "test_scatter",
    "test_sparse_all_reduce_sum",
]  # fmt: skip


missing = what_is_missing()
ON_HOSTS = [
    pytest.mark.hosts,
    pytest.mark.long,
    pytest.mark.skipif(missing is not None, reason=f"SKIPPED, NOT TESTED: torch's tests on two hosts ({missing})"),
]


@pytest.mark.slow
@pytest.mark.parametrize("hosts", [1, pytest.param(2, marks=ON_HOSTS)])
def test_selected_torch_tests_pass_on_unisono(tmp_path, hosts):
    pytest.importorskip("expecttest", reason="torch's tests need it")
    report = tmp_path / "found.json"
    only = [word for name in FAST for word in ("--only", name)]
    command = [
        sys.executable,
        str(ROOT / "tools" / "torch_suite.py"),
        "--timeout",
        "20",
        "--hosts",
        str(hosts),
        "--json",
        str(report),
        *only,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    found = json.loads(report.read_text())["tests"] if report.exists() else {}
    assert {name: test["outcome"] for name, test in found.items()} == dict.fromkeys(sorted(FAST), "passed"), (
        done.stdout
    )
    assert done.returncode == 0, done.stderr


def test_torch_tests_that_pass_on_gloo_pass_on_unisono():
    """If this fails, the last `make torch-suite` has found a failure of Unisono."""
    ours, gloo = torch_suite_page.load()
    assert len(gloo["tests"]) > 250
    assert torch_suite_page.unexplained(ours["tests"], gloo["tests"]) == []


def test_torch_tests_that_pass_on_one_host_pass_on_two():
    """If this fails, the last `tools/torch_suite.py --hosts 2` has found a failure of Unisono between hosts."""
    one, two = torch_suite_page.load()[0], torch_suite_page.load_on_hosts()
    assert two["hosts"] == 2
    assert torch_suite_page.unexplained(two["tests"], one["tests"]) == []
    outcomes = [{name: test["outcome"] for name, test in found["tests"].items()} for found in (one, two)]
    assert outcomes[0] == outcomes[1]


def test_torch_test_files_that_pass_on_gloo_pass_on_unisono_or_are_explained():
    """If this fails, the last `make torch-suite TESTS=...` has found a failure of Unisono."""
    ours, gloo = torch_suite_files_page.load()
    assert len(gloo["tests"]) > 400
    assert torch_suite_files_page.unexplained(ours["tests"], gloo["tests"]) == []


def test_a_fixed_failure_is_not_listed_as_known():
    assert torch_suite_files_page.fixed(torch_suite_files_page.load()[0]["tests"]) == []


def test_an_unexplained_difference_is_detected():
    names = ("f.py::T.test_x", "f.py::T.test_y", "f.py::T.test_z_checks", "f.py::T.test_allreduce_basics")
    gloo = {name: {"outcome": "passed"} for name in names}
    outcomes = dict(zip(names, ("failed", "passed", "worded", "failed"), strict=True))
    ours = {name: {"outcome": outcome} for name, outcome in outcomes.items()}
    assert torch_suite_files_page.unexplained(ours, gloo) == ["f.py::T.test_x"]
    assert torch_suite_files_page.unexplained({}, gloo) == list(names[:3])


FILE = """
import unittest
import torch
import torch.distributed as dist

class MyTest(unittest.TestCase):
    def test_sum(self):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        dist.all_reduce(torch.ones(1))
        self.assertEqual(dist.get_backend(), "BACKEND")
        dist.destroy_process_group()

    def test_nothing(self):
        pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["unisono", pytest.param("gloo", marks=pytest.mark.long)])
def test_the_test_files_of_a_folder_run_on_the_selected_backend(tmp_path, backend):
    pytest.importorskip("expecttest", reason="torch's tests need it")
    (tmp_path / "test_mine.py").write_text(FILE.replace("BACKEND", backend))
    tool, report = str(ROOT / "tools" / "torch_suite.py"), tmp_path / "found.json"
    command = [sys.executable, tool, "--tests", str(tmp_path), "--files", "test_mine.py", "--backend", backend]
    done = subprocess.run([*command, "--json", str(report)], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(report.read_text())["tests"]
    assert {name: (test["outcome"], test["used"]) for name, test in found.items()} == {
        "test_mine.py::MyTest.test_nothing": ("passed", False), "test_mine.py::MyTest.test_sum": ("passed", True)
    }  # fmt: skip


def seen_by(place, rank):
    """Return the identity of the host to which a forked process moves as a rank of four."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        place(rank, 4)
        os.write(writer, json.dumps(host_info()).encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as pipe:
        seen = json.load(pipe)
    os.waitpid(child, 0)
    return seen


@pytest.mark.hosts
@pytest.mark.skipif(missing is not None, reason=f"SKIPPED, NOT TESTED: ranks on test hosts ({missing})")
def test_the_ranks_of_a_torch_test_move_to_two_hosts():
    with torch_suite_hosts.on_hosts(2) as place:
        hosts = hosts_of([seen_by(place, rank) for rank in range(4)])
    assert (hosts.names, hosts.host_of) == (("a", "b"), (0, 0, 1, 1))


def test_ranks_are_spread_evenly_over_hosts():
    assert [torch_suite_hosts.host_of(rank, 8, 3) for rank in range(8)] == [0, 0, 0, 1, 1, 1, 2, 2]


def test_the_page_of_torch_tests_matches_the_results():
    """If this fails: python tools/torch_suite.py --page."""
    text = torch_suite_page.PAGE.read_text()
    assert torch_suite_page.page(text) == text


def test_a_test_that_passes_only_on_gloo_is_detected():
    good, bad, refused = {"outcome": "passed"}, {"outcome": "failed", "why": "…"}, {"outcome": "refused", "why": "…"}
    gloo = {"a": good, "b": good, "c": good, "d": bad, "e": good}
    ours = {"a": good, "b": bad, "c": refused, "d": bad}
    assert torch_suite_page.unexplained(ours, gloo) == ["b", "e"]


def test_a_test_that_hangs_is_killed_with_all_its_processes(monkeypatch):
    monkeypatch.setattr(torch_suite, "GRACE_S", 0)
    reader, writer = os.pipe()  # the test and its child hold the writing end until they exit

    class Hangs(unittest.TestCase):
        def test_hangs(self):
            os.fork()
            time.sleep(600)

    found = torch_suite.run(Hangs, ["test_hangs"], jobs=1, limit_s=0.5)
    os.close(writer)
    with open(reader, "rb") as pipe:
        assert pipe.read() == b""  # returns only when no process holds the writing end
    assert (found["test_hangs"]["outcome"], found["test_hangs"]["why"]) == ("failed", "time limit")


def test_a_test_whose_process_died_counts_as_failed():
    class Dies(unittest.TestCase):
        def test_dies(self):
            os.kill(os.getpid(), 9)

    found = torch_suite.run(Dies, ["test_dies"], jobs=1, limit_s=20)["test_dies"]
    assert (found["outcome"], found["why"]) == ("failed", "the process of the test died")
