"""Profiles of torch show the calls of the backend."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402


def profiled_calls():
    """Make calls under a profiler; return the events of the backend with their shapes."""
    other = 1 - dist.get_rank()
    with torch.profiler.profile(record_shapes=True) as profile:
        dist.all_reduce(torch.ones(3, 2))
        dist.all_reduce_coalesced([torch.ones(2), torch.ones(5)])
        dist.all_gather([torch.ones(4), torch.ones(4)], torch.ones(4))
        sent = dist.isend(torch.ones(7), other)
        dist.recv(torch.ones(7), other)
        sent.wait()
    events = [event for event in profile.events() if event.name.startswith("unisono:")]
    return [(event.name, event.input_shapes) for event in sorted(events, key=lambda event: event.time_range.start)]


def test_every_call_is_one_event_with_the_shapes_of_its_tensors():
    expected = [
        ("unisono:all_reduce", [[3, 2]]),
        ("unisono:all_reduce", [[2], [5]]),
        ("unisono:all_gather", [[4]]),
        ("unisono:send", [[7]]),
        ("unisono:recv", [[7]]),
    ]
    assert run_ranks(profiled_calls, 2) == [expected, expected]


def named_calls(backend):
    """Make calls under a profiler; return the names of torch's operators, and those of the backend."""
    with torch.profiler.profile() as profile:
        dist.all_reduce(torch.ones(3))
        dist.all_reduce_coalesced([torch.ones(2), torch.ones(5)])
        dist.broadcast(torch.ones(3), 0)
        dist.all_gather([torch.ones(4), torch.ones(4)], torch.ones(4))
        dist.reduce(torch.ones(3), 0)
        dist.barrier()
    events = sorted(profile.events(), key=lambda event: event.time_range.start)
    operators = [event.name for event in events if event.name.startswith("c10d::")]
    return operators, [event.name for event in events if event.name.startswith(f"{backend}:")]


def run_both(function):
    return [run_ranks(function, 2, backend, backend=backend)[0] for backend in ("unisono", "gloo")]


def test_profiles_have_the_same_operators_as_on_gloo():
    (ours, _), (theirs, _) = run_both(named_calls)
    assert ours == theirs


def renamed_call():
    with torch.profiler.profile() as profile, dist.record_comm("my gradients"):
        dist.all_reduce(torch.ones(3))
    return [event.name for event in profile.events() if event.name == "my gradients"]


@pytest.mark.skipif(not hasattr(dist, "record_comm"), reason="this torch cannot name calls")
def test_a_call_can_have_a_user_defined_name():
    assert run_ranks(renamed_call, 1) == [["my gradients"]]
