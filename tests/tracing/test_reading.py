from __future__ import annotations

import json

import pytest

from stories import CLOCK
from trace_parts import part_of, write_part
from unisono.errors import UsageError
from unisono.tracing import messages, read_run
from unisono.tracing.files import write_trace


@pytest.fixture
def both(tmp_path):
    """Return a folder with the parts of two ranks."""
    write_part(tmp_path, 0)
    write_part(tmp_path, 1)
    return tmp_path


def test_a_written_trace_is_read_unchanged(both):
    run = read_run(both)
    (group,) = run.communicators
    assert run.clock == CLOCK
    assert (group.size, group.missing, group.dropped) == (2, [], {0: 0, 1: 0})
    first, second = group.calls
    assert (first.number, first.label, first.root, first.nbytes) == (1, "broadcast/naive", 0, 80)
    assert (first.begin_ns, first.end_ns) == (490, 1300)
    received = first.ranks[1].ops[0]
    assert (received.kind, received.sources, received.chunks, received.nbytes) == ("receive", (0,), "0-1", 80)
    assert (received.entered_ns, received.begin_ns, received.end_ns) == (500, 1200, 1300)
    assert [(wait.peer, wait.reason, wait.ns) for wait in received.waits] == [(0, "message", 700)]
    assert second.ranks[1].ops[0].waits == ()


def test_a_file_rewritten_by_another_program_is_read(both, tmp_path):
    for path in both.glob("rank-*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()), indent=1))
    assert len(read_run(both).communicators[0].calls) == 2


def damage(path, change):
    path.write_text(change(path.read_text()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: len(text) // 2], "this trace is damaged"),
        (lambda text: text.removesuffix("]}\n"), "ends before its last event"),
        (lambda text: text.replace('"dur":0.80025,', ""), "event 5 lacks 'dur'"),
        (lambda text: text.replace('"dur":0.80025,', '"dur":-3,'), "is invalid"),
        (lambda text: text.replace('"ts":0.50025', '"ts":"soon"'), "is invalid"),
        (lambda text: text.replace('"ts":0.50025', '"ts":NaN'), "is invalid"),
        (lambda text: text.replace('"to":[1]', '"to":[2]'), "rank 2 of 2"),
        (lambda text: text.replace('"pass":0', '"pass":-1'), "instead of a number"),
        (lambda text: text.replace('"pid":0,"tid":0,"ts"', '"pid":5,"tid":0,"ts"'), "event 4 lacks"),
        (lambda text: text.replace('"size":2', '"size":0'), "rank 0 of 0"),
        (lambda text: text.replace('"clock"', '"o\'clock"'), "a header lacks clock"),
        (lambda text: text.replace('"format":1', '"format":9'), "format 9; this version of Unisono reads format 1"),
        (lambda text: "", "is not JSON"),
        (lambda text: "\x00\x01", "is not JSON"),
        (lambda text: "[]", "not a trace of Unisono"),
        (lambda text: '{"traceEvents": []}', "not a trace of Unisono"),
    ],
)
def test_a_damaged_file_is_rejected_with_an_explanation(both, change, message):
    path = next(both.glob("rank-0*.json"))
    damage(path, change)
    with pytest.raises(UsageError, match=message) as raised:
        read_run(both)
    assert str(path) in str(raised.value)


def test_a_binary_file_is_rejected(tmp_path):
    path = tmp_path / "run.json"
    path.write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(UsageError, match="is not JSON"):
        read_run(path)


def test_traces_of_two_runs_are_not_mixed(tmp_path):
    write_part(tmp_path, 0)
    write_part(tmp_path, 1, run="another")
    with pytest.raises(UsageError, match=r"traces of 2 runs \(another, r\); expected those of one"):
        read_run(tmp_path)


def test_times_of_two_clocks_are_not_compared(tmp_path):
    write_part(tmp_path, 0)
    write_part(tmp_path, 1, clock={**CLOCK, "machine": "elsewhere"})
    with pytest.raises(UsageError, match="2 different clocks"):
        read_run(tmp_path)


def test_a_rank_has_one_trace_of_a_communicator(both):
    copy = next(both.glob("rank-0*.json"))
    copy.with_name("rank-00.json").write_text(copy.read_text())
    with pytest.raises(UsageError, match="rank 0 has two traces"):
        read_run(both)


def test_a_missing_rank_is_an_error_unless_it_is_allowed(tmp_path):
    write_part(tmp_path, 0)
    with pytest.raises(UsageError, match=r"no trace of rank 1 of 2.*missing_ok=True"):
        read_run(tmp_path)
    assert read_run(tmp_path, missing_ok=True).communicators[0].missing == [1]


def test_a_trace_that_is_too_large_is_rejected_with_a_hint(both):
    with pytest.raises(UsageError, match=r"expected 0 MiB or less.*events=10_000"):
        read_run(both, most_bytes=100)


def test_a_folder_without_a_trace_is_rejected(tmp_path):
    with pytest.raises(UsageError, match="there is no file or folder"):
        read_run(tmp_path / "nothing")
    with pytest.raises(UsageError, match=r"there is no trace in this folder .* unisono run -n 4 --trace"):
        read_run(tmp_path)
    for name in ("one", "two"):
        write_trace(tmp_path / f"{name}.json", [part_of(0)[0]], [])
    with pytest.raises(UsageError, match=r"name one of them: one\.json, two\.json"):
        read_run(tmp_path)
    (tmp_path / "two.json").unlink()
    with pytest.raises(UsageError, match="no trace of rank 1"):
        read_run(tmp_path)  # the only one


def test_an_error_about_a_damaged_trace_is_translated_with_its_reason(tmp_path):
    path = tmp_path / "run.json"
    path.write_bytes(b"hello")
    with pytest.raises(UsageError) as raised:
        read_run(path)
    assert raised.value.id == messages.DAMAGED.id
    assert raised.value.text("zh").startswith(f"{path}：跟踪记录已损坏：不是 JSON（")
