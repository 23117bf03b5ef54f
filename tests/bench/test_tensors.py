"""Tensors on a device, as the ranks of the benchmark measure them; the device of these tests is the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from unisono.bench.contender_ranks import trial_of
from unisono.bench.standalone.ranks import loop
from unisono.bench.standalone.ranks.buffers import Buffers
from unisono.bench.standalone.ranks.library import Library
from unisono.bench.standalone.ranks.patterns import STORED
from unisono.bench.standalone.ranks.tensors import TensorBuffers
from unisono.cli.main import main

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter")


def command(collective: str, **more: Any) -> dict[str, Any]:
    return {
        "collective": collective, "count": 60, "dtype": "float32", "op": "sum", "check": True, "warmup": 2,
        "iterations": 25, **more,
    }  # fmt: skip


@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_tensors_hold_the_test_vectors_of_the_arrays(collective, dtype):
    arrays = Buffers(command(collective, dtype=dtype), 1, 3)
    tensors = TensorBuffers(command(collective, dtype=dtype), 1, 3, "cpu")
    arrays.fill()
    tensors.fill()
    for here, there in zip(arrays.tensors(), tensors.tensors(), strict=True):
        assert there.dtype is getattr(torch, dtype)
        assert torch.equal(here, there)
        assert here.numel() == 0 or here.data_ptr() != there.data_ptr()
    assert (tensors.tensors()[0] is tensors.tensors()[1]) == arrays.in_place


def test_wrong_elements_are_counted_on_the_device():
    tensors = TensorBuffers(command("broadcast"), 0, 3, "cpu")
    tensors.fill()
    assert tensors.wrong() == 0
    tensors.tensors()[1][:5] += 1
    assert tensors.wrong() == 5
    tensors.clear()
    assert not tensors.tensors()[1].any()


class Counting(Library):
    """A library whose calls do nothing but count."""

    rank, size, communicates = 0, 1, True

    def __init__(self) -> None:
        self.calls = self.barriers = 0

    def barrier(self) -> None:
        self.barriers += 1

    def call(self, buffers, command):
        def count() -> None:
            self.calls += 1

        return count


class Slow(TensorBuffers):
    """Tensors that count how often they are waited for."""

    waits = 0

    def synchronize(self) -> None:
        Slow.waits += 1


def test_calls_that_enqueue_are_timed_in_batches_and_one_by_one(monkeypatch):
    monkeypatch.setattr(loop, "make_buffers", lambda *of: Slow(*of, device="cpu"))
    library = Counting()
    answer = loop.measure(library, command("broadcast", check=False))
    assert len(answer["nanoseconds"]) == 25 // (25 // loop.BATCHES)
    assert answer["latency_ns"] > 0
    assert library.calls == 2 + 24 + 25  # to warm up, in batches of two, one by one
    assert Slow.waits == 1 + 12 + 25
    trial = trial_of({0: answer, 1: {**answer, "latency_ns": 5e9}})
    assert trial.latency_s == 5.0


def test_calls_on_the_cpu_have_a_time_each_and_no_latency():
    answer = loop.measure(Counting(), command("broadcast", check=False))
    assert len(answer["nanoseconds"]) == 25
    assert "latency_ns" not in answer
    assert trial_of({0: answer}).latency_s is None
    assert np.isfinite(answer["mean_ns"])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--mps"], "--mps needs --device cuda"),
        (["--device", "cuda", "--hosts", "a,b"], "without --hosts"),
        (["--device", "cuda", "--against", "mpi"], "--against mpi: not measured with --device cuda"),
        (["--device", "tpu"], "invalid choice"),
    ],
)
def test_what_cannot_be_measured_on_gpus_is_refused(words, text, capsys):
    try:
        code = main(["bench", *words])
    except SystemExit as error:
        code = error.code
    assert code == 2
    assert text in capsys.readouterr().err
