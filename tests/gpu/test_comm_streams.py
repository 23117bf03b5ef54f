"""Calls on tensors run on torch's current stream, and torch keeps the memory of tensors that another stream uses."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from unisono.gpu.streams import keep_for_stream, stream_finder


class Tensor:
    def __init__(self):
        self.recorded = []

    def record_stream(self, stream):
        self.recorded.append(stream)


class TorchCuda:
    current = 11

    def current_stream(self, device):
        return SimpleNamespace(cuda_stream=self.current + 100 * device)

    def ExternalStream(self, handle, device):  # noqa: N802 (torch's name)
        return (handle, device)


@pytest.fixture
def cuda(monkeypatch):
    made = TorchCuda()
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=made))
    return made


def of_interface(stream):
    return SimpleNamespace(__cuda_array_interface__={"stream": stream})


def test_the_stream_of_a_tensor_is_the_current_one_at_that_time(cuda):
    find = stream_finder(Tensor(), 1)
    assert find() == 111
    cuda.current = 22
    assert find() == 122


@pytest.mark.parametrize(("stated", "found"), [(None, 0), (1, 1), (2, 2), (4096, 4096)])
def test_the_stream_of_another_array_is_the_one_that_it_states(stated, found):
    assert stream_finder(of_interface(stated), 0)() == found


def test_an_array_that_states_no_stream_belongs_to_the_default_stream():
    assert stream_finder(SimpleNamespace(__cuda_array_interface__={}), 0)() == 0


def test_tensors_are_recorded_and_other_arrays_are_returned(cuda):
    first, second, other = Tensor(), Tensor(), of_interface(None)
    assert keep_for_stream((first, None, other, second), 77, 1) == [other]
    assert first.recorded == second.recorded == [(77, 1)]
