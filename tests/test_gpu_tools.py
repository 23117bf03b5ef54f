"""The tools that measure and stress GPUs: what can be tested without one."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import gpu_jobs
import gpu_page
import gpu_random_calls
import measure_gpu
import page_parts
from by_hand import block_counts
from unisono.collectives import find

TOOLS = Path(measure_gpu.__file__).parent


def run(tool: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOLS / tool), "--device", "cpu", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def row(**values: object) -> dict[str, object]:
    return {
        "part": "times",
        "mode": "kernel",
        "ranks": 2,
        "contender": "unisono",
        "collective": "all_reduce",
        **values,
    }


MEASURED = {
    "rows": [
        row(part="bandwidth", bytes_per_s=4e12),
        row(bytes=1024, us=[7.0, 7.5]),
        row(bytes=1 << 20, us=[8.0, 10.0]),
        row(bytes=64 << 20, us=[100.0, 110.0]),
        row(bytes=1024, us=[700.0], contender="gloo"),
        {"part": "host", "mode": "kernel", "ranks": 2, "through": "comm", "us": [3.9, 4.1]},
        {"part": "by_hand", "mode": "kernel", "ranks": 2, "collective": "all_reduce", "bytes": 1024, "us": [5.0],
         "unisono_us": [5.4, 5.6, 5.5]},
    ]
}  # fmt: skip


def test_the_page_is_up_to_date():
    assert gpu_page.page() == gpu_page.PAGE.read_text(encoding="utf-8"), "run tools/measure_gpu.py --write-docs"


def test_every_part_of_the_page_is_generated():
    assert set(page_parts.names(gpu_page.PAGE.read_text(encoding="utf-8"))) == set(gpu_page.PARTS)


def test_a_table_states_whether_a_target_was_reached_in_all_runs():
    lines = gpu_page.all_reduce_table(gpu_page.Results(MEASURED), "kernel").splitlines()[2:]
    assert [line.split("|")[5].strip() for line in lines] == ["yes", "in part", "no"]
    assert "| 7 – 7.5 | 8 | yes |  | 700 | 93.3 |" in lines[0]
    # 2 ranks read and write 64 MiB each, twice: 268 MB at 4 TB/s are 67 µs.
    assert "| 1.64 |" in lines[2]


def test_ratios_and_host_times_are_shown():
    text = gpu_page.collectives_as_text(MEASURED)
    assert "| all_reduce | 2 | 1 KiB | 5.4 – 5.6 | 5 | 1.10 |" in text
    assert "| kernel | 2 | comm | 3.9 – 4.1 | 4 | no |" in text


def test_a_row_that_is_measured_again_replaces_the_stored_one(tmp_path):
    result = {"rows": [row(bytes=1024, us=[9.0]), row(bytes=2048, us=[1.0])]}
    measure_gpu.merge(result, [row(bytes=1024, us=[7.0])])
    path = tmp_path / "new" / "file.json"
    measure_gpu.save({"machine": {"cores": 2}, **result}, path)
    assert measure_gpu.load(path) == {
        "machine": {"cores": 2}, "rows": [row(bytes=1024, us=[7.0]), row(bytes=2048, us=[1.0])]
    }  # fmt: skip


@pytest.mark.parametrize("size", [2, 3, 5, 6, 7, 8])
def test_random_calls_are_the_same_on_all_ranks_and_can_be_made(size):
    pairs = gpu_random_calls.pairs_of(1, 12)
    assert len(set(pairs)) == 12
    for number in range(200):
        call = gpu_random_calls.draw(random.Random(number), size, pairs)
        assert call == gpu_random_calls.draw(random.Random(number), size, pairs)
        lengths = [gpu_random_calls.lengths_of(call, rank, size) for rank in range(size)]
        if call["collective"] == "all_to_all":
            assert sum(given for given, _, _ in lengths) == sum(got for _, got, _ in lengths)
        assert find(call["collective"]).rooted == (call["root"] is not None)


def test_differences_are_found_bit_by_bit_and_nans_are_equal():
    first = torch.tensor([0.0, 1.0, float("nan")])
    assert gpu_random_calls.differences(first, first.clone()) == 0
    other = torch.tensor([-0.0, 1.0, float("nan")])
    other[2:].view(torch.int32).add_(1)  # another NaN
    assert gpu_random_calls.differences(first, other) == 1


def test_blocks_of_all_ranks_fit_on_the_gpu():
    for size in (2, 4, 8):
        for nbytes in measure_gpu.SIZES:
            for blocks in block_counts(nbytes, size, 132):
                assert 1 <= blocks <= 256
                assert blocks * size <= 2 * 132


def failing(comm, rows_file, settings):
    gpu_jobs.Rows(rows_file, comm.rank).add(name="first")
    if settings["hangs"]:
        while True:
            comm.barrier()
    raise ValueError("as planned")


@pytest.mark.parametrize("hangs", [True, False])
def test_a_job_that_hangs_or_fails_leaves_the_rows_that_it_had_finished(monkeypatch, hangs, capsys):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    rows, problem = gpu_jobs.run(
        "test_gpu_tools:failing", 2, {"hangs": hangs}, mps=False, limit_s=12 if hangs else 60
    )
    assert rows == [{"name": "first"}]
    assert problem is not None
    assert ("killed after 12 s" if hangs else "ended with code 1") in problem
    assert hangs or "as planned" in capsys.readouterr().err


@pytest.mark.slow
def test_the_tools_run_on_the_cpu(tmp_path):
    measured = run(
        "measure_gpu.py", "--ranks", "2", "--modes", "stream", "--sizes", "1024", "--json", str(tmp_path / "a")
    )
    assert measured.returncode == 0, measured.stdout + measured.stderr
    parts = {each["part"] for each in json.loads((tmp_path / "a").read_text())["rows"]}
    assert {"bandwidth", "times", "host", "torch"} <= parts
    stressed = run("gpu_stress.py", "--modes", "stream", "--count", "5", "-n", "3", "--json", str(tmp_path / "b"))
    assert stressed.returncode == 0, stressed.stdout + stressed.stderr
    rows = json.loads((tmp_path / "b").read_text())["rows"]
    assert [(each["name"], each["done"], each["failures"]) for each in rows] == [
        ("random calls", 5, 0), ("full occupancy", 5, 0), ("kills", 5, 0)
    ]  # fmt: skip


@pytest.mark.slow
def test_training_is_measured_on_the_cpu(tmp_path):
    done = run("measure_gpu_training.py", "-n", "2", "--json", str(tmp_path / "c"))
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "c").read_text())["rows"]
    assert {(each["contender"], each["case"]) for each in rows if "ms" in each} == {
        (backend, case) for backend in ("unisono", "gloo") for case in ("DDP", "FSDP2", "tensor parallel")
    } | {("single rank", "single rank")}
