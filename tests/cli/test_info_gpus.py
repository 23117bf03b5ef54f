"""``unisono info`` about GPUs: with a driver that is a table in this file."""

from __future__ import annotations

import contextlib
import json
from typing import ClassVar

import pytest

from unisono import _engine
from unisono.cli import gpu_facts
from unisono.cli.main import main
from unisono.gpu.inventory import NoGpus, find_gpus


class Unavailable(RuntimeError):
    """What the engine raises where there is no driver."""


class Driver:
    """A machine with H200s; the second half of them cannot access the first half if ``divided``."""

    count: ClassVar[int] = 1
    mps: ClassVar[bool] = False
    divided: ClassVar[bool] = False

    def __init__(self, path: str) -> None:
        assert path == "libcuda.so.1"

    def devices(self) -> list[dict[str, object]]:
        half = self.count // 2
        return [
            {
                "ordinal": mine, "name": "NVIDIA H200", "uuid": f"{mine:032x}", "multiprocessors": 132, "major": 9,
                "minor": 0, "memory_bytes": 150_754_820_096, "mps": self.mps,
                "peers": [not self.divided or (mine < half) == (other < half) for other in range(self.count)],
            }
            for mine in range(self.count)
        ]  # fmt: skip


class NoDriver:
    def __init__(self, path: str) -> None:
        raise Unavailable("libcuda.so.1: cannot open shared object file")


@pytest.fixture
def machine(monkeypatch):
    """Return a function that gives this machine GPUs."""
    monkeypatch.setattr(_engine, "GpuUnavailable", Unavailable, raising=False)

    def give(driver: type = Driver, **settings: object) -> None:
        monkeypatch.setattr(_engine, "GpuDriver", type("GpuDriver", (driver,), settings), raising=False)

    return give


def shown(capsys) -> str:
    assert main(["info"]) == 0
    return " ".join(capsys.readouterr().out.split())


def as_data(capsys) -> dict:
    assert main(["info", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_machine_without_a_gpu_says_so_in_one_line(machine, capsys):
    machine(NoDriver)
    assert main(["info"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "gpu" in line.lower()]
    assert len(lines) == 1
    assert "libcuda.so.1" in lines[0]
    data = as_data(capsys)
    assert data["gpus"] == []
    assert "libcuda.so.1" in data["no_gpu_because"]


def test_the_engine_is_asked_for_gpus():
    with contextlib.suppress(NoGpus):  # most machines have none
        assert all(gpu.multiprocessors > 0 for gpu in find_gpus())


def test_a_driver_without_visible_gpus_says_so(machine, capsys):
    machine(count=0)
    assert "CUDA_VISIBLE_DEVICES" in shown(capsys)


def test_one_gpu_without_mps_uses_stream_mode_and_the_hint_names_the_option(machine, capsys, monkeypatch):
    machine()
    monkeypatch.setattr(gpu_facts.shutil, "which", lambda name: f"/usr/bin/{name}")
    text = shown(capsys)
    assert "NVIDIA H200, 140.4 GiB, compute capability 9.0, 132 multiprocessors" in text
    assert "not active; start it for one job with `unisono run --mps`" in text
    assert "stream for ranks that share a GPU, because" in text
    assert "peer access" not in text
    data = as_data(capsys)
    assert data["gpu_mode"]["ranks_share_a_gpu"] == "stream"
    assert data["mps"] == {"active": False, "control_program": "/usr/bin/nvidia-cuda-mps-control"}
    assert data["gpus"][0]["memory_bytes"] == 150_754_820_096


def test_without_the_program_of_mps_the_line_names_it(machine, capsys, monkeypatch):
    machine()
    monkeypatch.setattr(gpu_facts.shutil, "which", lambda name: None)
    assert "nvidia-cuda-mps-control, which starts it, is not on the PATH" in shown(capsys)


def test_under_mps_ranks_use_kernel_mode(machine, capsys):
    machine(mps=True)
    assert "kernel, because MPS is active" in shown(capsys)
    assert as_data(capsys)["gpu_mode"]["ranks_share_a_gpu"] == "kernel"


@pytest.mark.parametrize(("divided", "text"), [(False, "every GPU can access"), (True, "missing between 0 -> 2, ")])
def test_peer_access_is_shown_where_there_are_several_gpus(machine, capsys, divided, text):
    machine(count=4, divided=divided)
    assert text in shown(capsys)
    assert len(as_data(capsys)["gpu_mode"]["pairs_without_peer_access"]) == (8 if divided else 0)
