"""The flight record holds the last calls, and torch's tool can read it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402
from unisono.torch_backend import flight_record, write_flight_record  # noqa: E402
from unisono.torch_backend.flight import kept_calls  # noqa: E402


def test_calls_are_recorded_only_if_the_torch_variable_is_set():
    assert kept_calls({}) == 0
    assert kept_calls({"TORCH_FR_BUFFER_SIZE": "12"}) == 12
    assert kept_calls({"TORCH_NCCL_TRACE_BUFFER_SIZE": "7"}) == 7
    assert kept_calls({"TORCH_FR_BUFFER_SIZE": "no number"}) == 0


def recorded_calls(kept):
    os.environ["TORCH_FR_BUFFER_SIZE"] = str(kept)
    dist.init_process_group("unisono")
    for _ in range(3):
        dist.all_reduce(torch.ones(3, 4))
    dist.all_gather([torch.ones(2), torch.ones(2)], torch.ones(2))
    work = dist.all_reduce(torch.ones(5), async_op=True)
    work.wait()
    return flight_record()


def test_the_record_holds_the_last_calls():
    for found in run_ranks(recorded_calls, 2, 4, init=False):
        assert found["version"] == "2.10"
        assert [entry["profiling_name"] for entry in found["entries"]] == [
            "gloo:all_reduce", "gloo:all_reduce", "gloo:all_gather", "gloo:all_reduce"
        ]  # fmt: skip
        first, last = found["entries"][0], found["entries"][-1]
        assert (first["input_sizes"], first["input_dtypes"], first["state"]) == (((3, 4),), ["Float"], "completed")
        assert (first["collective_seq_id"], last["collective_seq_id"]) == (2, 5)
        assert last["state"] == "completed"
        assert "recorded_calls" in [frame["name"] for frame in last["frames"]]
        (config,), (status,) = found["pg_config"].values(), found["pg_status"].values()
        assert (config["desc"], config["ranks"]) == ("default_pg", "[0, 1]")
        assert (status["last_enqueued_collective"], status["last_completed_collective"]) == (5, 5)


def call_that_hangs(folder):
    os.environ["TORCH_FR_BUFFER_SIZE"] = "10"
    dist.init_process_group("unisono")
    dist.all_reduce(torch.ones(3))
    if dist.get_rank() == 0:
        work = dist.all_reduce(torch.ones(7), async_op=True)
        write_flight_record(folder)
        dist.barrier()
        work.wait()
    else:
        write_flight_record(folder)
        while not (Path(folder) / "unisono_rank_0").exists():  # until then, rank 0 must not get its sum
            time.sleep(0.01)
        dist.all_reduce(torch.ones(7))
        dist.barrier()


def test_the_torch_tool_reads_the_record_and_shows_the_missing_call_of_a_rank(tmp_path):
    run_ranks(call_that_hangs, 2, str(tmp_path / "record"), init=False)
    record = pickle.loads((tmp_path / "record" / "unisono_rank_0").read_bytes())
    assert [entry["state"] for entry in record["entries"]] == ["completed", "scheduled"]
    tool = "from torch.distributed.flight_recorder.fr_trace import main; main()"
    database = tmp_path / "read" / "database"
    database.parent.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", tool, str(tmp_path / "record"), "-o", str(database)], capture_output=True, text=True,
        timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    _, found = pickle.loads(database.read_bytes())
    assert {call.collective_name for call in found.collectives} == {"gloo:all_reduce"}
    assert sorted(call.global_rank for call in found.ncclcalls) == [0, 0, 1]


def unrecorded_calls():
    dist.all_reduce(torch.ones(3))
    return flight_record()["entries"]


def test_without_the_variable_there_is_no_record():
    assert run_ranks(unrecorded_calls, 1) == [[]]
