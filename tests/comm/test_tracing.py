"""Recordings of real ranks."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from paired_transfers import paired_transfers
from stories import check_structure, events_of
from traced_calls import many_calls, record
from unisono import find, spawn
from unisono.comm.plan_record import PlanRecord
from unisono.tracing import read_run
from unisono.tracing.matching import messages_of
from unisono.tracing.replay import schedule_of, times_of
from unisono.verifier import prove

SIZES = (2, 3, 5)


def recorded(pools, size, path, action):
    """Run a function on ranks; return its trace and its results."""
    answers = pools[size].call(record, [path] * size, [action] * size)
    check_structure(path)
    assert not path.with_name(f"{path.name}.parts").exists()
    return read_run(path), answers


# ---- what is recorded --------------------------------------------------------------------------------------------


def several_algorithms(comm):
    x = np.ones(50_000, np.float32)
    for name in ("ring", "direct", "naive", "tree", "recursive_doubling"):
        comm.all_reduce(x, algorithm=name)
    comm.broadcast(x, root=comm.size - 1)
    out = np.ones(comm.size * 1000)
    comm.all_to_all(out, np.ones(comm.size * 1000))
    comm.all_gather(out, np.ones(1000))
    comm.barrier()
    made: dict[int, PlanRecord] = comm.dispatcher.cache.records()
    return [
        (one.made.schedule.label, one.layout.passes, [(op.kind, op.step) for op in one.made.lowered.instructions])
        for _, one in sorted(made.items())
    ]


@pytest.mark.parametrize("size", SIZES)
def test_every_instruction_of_every_rank_is_recorded(tmp_path, size):
    path = tmp_path / "run.json"
    programs = spawn(record, size, path, several_algorithms)
    check_structure(path)
    (group,) = read_run(path).communicators
    assert len(group.calls) == 9
    for rank, of_rank in enumerate(programs):
        assert [call.ranks[rank].whole for call in group.calls] == [True] * 9
        for call, (label, passes, program) in zip(group.calls, of_rank, strict=True):
            assert call.label == label.replace(f"(root={size - 1})", "") or call.root == size - 1
            assert [(op.kind, op.step) for op in call.ranks[rank].ops] == program * passes
            assert call.passes == passes


@pytest.mark.parametrize("size", SIZES)
def test_the_messages_are_those_of_the_schedule_and_arrive_after_they_were_sent(pools, tmp_path, size):
    run, _ = recorded(pools, size, tmp_path / "run.json", several_algorithms)
    for call in run.communicators[0].calls:
        messages = messages_of(call)
        schedule = schedule_of(run, call)
        assert len(messages) == prove(schedule).messages * call.passes
        for message in messages:
            assert message.sent.nbytes == message.received.nbytes
            # All ranks have the same clock: otherwise messages in one direction would arrive before they were sent.
            assert message.received.end_ns > message.sent.begin_ns
        expected = find(f"{call.collective}/{call.algorithm.split('(')[0]}").schedule(size, call.root)
        assert [list(schedule.program(rank)) for rank in range(size)] == [
            list(expected.program(rank)) for rank in range(size)
        ]


def test_times_are_those_of_the_system_clock(pools, tmp_path):
    path = tmp_path / "run.json"
    before = time.monotonic_ns()
    recorded(pools, 3, path, several_algorithms)
    after = time.monotonic_ns()
    about = json.loads(path.read_text())["otherData"]["unisono"]["parts"]
    for part in about:
        assert part["clock"]["name"] == "CLOCK_MONOTONIC"
        assert before <= part["began_ns"] < part["ended_ns"] <= after
        times = [
            event["ts"] * 1000 for event in events_of(path) if event["ph"] == "X" and event["pid"] == part["rank"]
        ]
        assert part["began_ns"] - 1000 <= part["base_ns"] + min(times)
        assert part["base_ns"] + max(times) <= part["ended_ns"] + 1000


def test_a_recorded_call_has_its_properties(pools, tmp_path):
    run, _ = recorded(pools, 3, tmp_path / "run.json", several_kinds)
    first, second = run.communicators[0].calls[:2]
    assert (first.label, first.count, first.dtype) == ("all_reduce/ring", 12, "float64")
    assert (first.nbytes, first.op, first.root, first.codec) == (96, "max", None, None)
    assert (second.collective, second.root, second.op, second.codec) == ("broadcast", 2, None, "bf16")


def several_kinds(comm):
    comm.all_reduce(np.ones(12, np.float64), op="max", algorithm="ring")
    comm.broadcast(np.ones(7, np.float32), root=2, codec="bf16")


def with_codecs(comm):
    x = np.ones(100_000, np.float32)
    before = comm.sent_bytes
    for codec in ("bf16", "fp8_e4m3", "int8"):
        comm.all_reduce(x, codec=codec, op="avg")
    comm.all_reduce(x, codec="topk:0.01")
    return comm.sent_bytes - before


@pytest.mark.parametrize("size", SIZES)
def test_calls_with_a_codec_are_recorded_with_the_bytes_on_the_wire(pools, tmp_path, size):
    run, sent = recorded(pools, size, tmp_path / "run.json", with_codecs)
    calls = run.communicators[0].calls
    assert [call.codec for call in calls] == ["bf16", "fp8_e4m3", "int8", None]
    for rank in range(size):
        ops = [op for call in calls for op in call.ranks[rank].ops]
        assert sum(op.nbytes * len(op.to) for op in ops) == sent[rank]
        assert sum(op.kind == "results" for op in ops) >= 3  # divided at the end of every pass


def in_background(comm):
    arrays = [np.ones(1000), np.ones(20_000), np.ones(3)]
    works = [comm.all_reduce(array, async_op=True) for array in arrays]
    for work in works:
        work.wait()
    comm.all_reduce(arrays[0])  # on the thread of its caller, or behind the others if their thread is still running


@pytest.mark.parametrize("size", SIZES)
def test_asynchronous_calls_are_recorded(pools, tmp_path, size):
    run, _ = recorded(pools, size, tmp_path / "run.json", in_background)
    for rank in range(size):
        calls = [call.ranks[rank] for call in run.communicators[0].calls]
        assert [call.background for call in calls[:3]] == [True, True, True]
        assert all(call.whole for call in calls)


def without_some_blocks(comm):
    sizes = [3 * rank for rank in range(comm.size)]  # nothing from rank 0
    comm.all_gather(np.ones(sum(sizes)), np.ones(sizes[comm.rank]), out_sizes=sizes)
    rows = [(comm.rank + peer) % 2 for peer in range(comm.size)]
    comm.all_to_all(np.ones(sum(rows)), np.ones(sum(rows)), in_sizes=rows, out_sizes=rows)


@pytest.mark.parametrize("size", SIZES)
def test_omitted_empty_messages_are_not_recorded(pools, tmp_path, size):
    run, _ = recorded(pools, size, tmp_path / "run.json", without_some_blocks)
    exchange = run.communicators[0].calls[-1]
    expected = sum((rank + peer) % 2 for rank in range(size) for peer in range(size) if rank != peer)
    assert len(messages_of(exchange)) == expected


def letters(comm):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    out = [
        comm.send(np.full(length, 1.0), right, tag=tag, async_op=True) for tag, length in enumerate((1, 50_000, 0))
    ]
    comm.recv(np.ones(0), left, tag=2)
    comm.recv(np.ones(50_000), tag=1)  # from any rank
    comm.recv(np.ones(1), left, tag=0)
    for work in out:
        work.wait()


@pytest.mark.parametrize("size", SIZES)
def test_sends_are_matched_with_their_receives(pools, tmp_path, size):
    path = tmp_path / "run.json"
    recorded(pools, size, path, letters)
    run, _ = recorded(pools, size, path, letters)  # earlier messages do not matter
    pairs = paired_transfers(run.communicators[0].transfers)
    assert len(pairs) == 3 * size
    for sent, received in pairs:
        assert (received.rank, received.peer) == ((sent.rank + 1) % size, sent.rank)
        assert sent.nbytes == received.nbytes == 8 * (1, 50_000, 0)[sent.tag]
        assert received.end_ns > sent.begin_ns


def test_a_single_rank_is_recorded(pools, tmp_path):
    run, _ = recorded(pools, 1, tmp_path / "run.json", in_background)
    assert len(run.communicators[0].calls) == 4


# ---- what is not recorded ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("events", [7, 64])
def test_when_the_event_log_is_full_the_oldest_events_are_dropped_and_counted(pools, tmp_path, events):
    path, size = tmp_path / "run.json", 3
    # At the same time, another event log is large enough.
    pools[size].call(record_twice, [path] * size, [tmp_path / "all.json"] * size, [events] * size)
    check_structure(tmp_path / "all.json")
    few, whole = (
        json.loads(one.read_text())["otherData"]["unisono"]["parts"] for one in (path, tmp_path / "all.json")
    )
    for short, long in zip(few, whole, strict=True):
        assert long["dropped"] == 0
        # The slice of a call is reconstructed if the log has only its end.
        assert short["dropped"] == long["events"] - events
    (group,) = read_run(path).communicators
    assert group.calls[-1].number == read_run(tmp_path / "all.json").communicators[0].calls[-1].number
    for rank in range(size):
        first, *others = [call.ranks[rank] for call in group.calls if rank in call.ranks]
        assert first.truncated >= 0
        assert all(call.whole for call in others)


def record_twice(comm, path, all_of_it, events):
    with comm.trace(path, events=events), comm.trace(all_of_it):
        many_calls(comm)


def nested_blocks(comm, folder):
    x, out = np.ones(4), np.ones(4 * comm.size)
    comm.all_reduce(x, algorithm="naive")
    with comm.trace(folder / "outer.json"):
        comm.all_reduce(x, algorithm="ring")
        with comm.trace(folder / "inner.json"):
            comm.all_gather(out, x, algorithm="ring")
        comm.all_reduce(x, algorithm="ring")
    comm.all_reduce(x, algorithm="naive")


def test_only_what_happens_in_the_block_is_recorded(pools, tmp_path):
    pools[2].call(nested_blocks, [tmp_path] * 2)
    outer, inner = (read_run(tmp_path / f"{name}.json").communicators[0].calls for name in ("outer", "inner"))
    assert [call.label for call in outer] == ["all_reduce/ring", "all_gather/ring", "all_reduce/ring"]
    assert [call.label for call in inner] == ["all_gather/ring"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inner.json", "outer.json"]


def test_nothing_is_logged_without_a_recording(pools):
    pools[2].call(record_nothing)


def record_nothing(comm):
    endpoint = comm.dispatcher.link.endpoint
    recording = endpoint.start_event_log(100)
    comm.all_reduce(np.ones(3))
    endpoint.stop_event_log(recording)
    before = len(recording.collectives()[0])
    assert before > 0
    comm.all_reduce(np.ones(3))
    comm.send(np.ones(1), 1) if comm.rank == 0 else comm.recv(np.ones(1), 0)
    assert (len(recording.collectives()[0]), len(recording.transfers()[0])) == (before, 0)


def test_the_times_of_a_call_can_be_drawn(pools, tmp_path):
    run, _ = recorded(pools, 3, tmp_path / "run.json", several_algorithms)
    for call in run.communicators[0].calls:
        schedule = schedule_of(run, call)
        times = times_of(call, schedule)
        assert len(times.sent) == len(times.got) == prove(schedule).messages
        assert all(times.sent[key] < times.got[key] for key in times.sent)
        for rank in range(3):
            finished = times.finished[rank]
            assert finished == sorted(finished)
            assert len(finished) == len(list(schedule.program(rank)))
            assert times.begun[rank] <= finished[0]
            assert finished[-1] <= times.ended[rank] + 1e-9
