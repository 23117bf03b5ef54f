"""Damaged or hand-written traces are read, or rejected with an explanation."""

from __future__ import annotations

import copy
import json
import os
import random

import pytest

from trace_parts import part_of
from unisono import find
from unisono.drawing.runs import write_run_page
from unisono.errors import UsageError
from unisono.schedule.text import format_schedule
from unisono.tracing import read_run
from unisono.tracing.files import write_trace

NASTY = [
    None, True, -1, 0, 1, 2, 3, 10**9, 2**53, 2**63, 10**30, -(10**30), 0.5, 1e300, -1e300,
    float("nan"), float("inf"),
    "", "</script><b>", "<!--", "\u2028", "\ud800", "x" * 300, "rank 0", [], [[]], [0, 1], [9], {}, {"a": {}},
]  # fmt: skip
MUTANTS = 400


def honest():
    """Return the trace of two ranks as data, with its schedule and a message of send and recv."""
    parts = [part_of(rank) for rank in range(2)]
    headers = [header for header, _ in parts]
    headers[0]["schedules"] = {"digest": format_schedule(find("broadcast/naive").schedule(2, 0))}
    events = [json.loads(line) for _, lines in parts for line in lines]
    for rank, kind in enumerate(("send", "recv")):
        args = {"kind": kind, "peer": 1 - rank, "tag": 0, "bytes": 8, "number": 1}
        events.append({"ph": "X", "cat": "transfer", "pid": rank, "tid": 1, "ts": 9, "dur": 1, "args": args})
    return {"otherData": {"unisono": {"format": 1, "parts": headers}}, "traceEvents": events}


def places(data, path=()):
    """Yield the path of every value in the data."""
    for key in list(data) if isinstance(data, dict) else range(len(data)):
        yield (*path, key)
        if isinstance(data[key], dict | list):
            yield from places(data[key], (*path, key))


def changed(data, path, value=None, *, remove=False):
    made = copy.deepcopy(data)
    inside = made
    for key in path[:-1]:
        inside = inside[key]
    if remove:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return made


def outcome(path):
    """Draw the trace: return the page, or the error message."""
    try:
        return write_run_page(path).html
    except UsageError as error:
        return str(error)


def test_a_trace_with_any_change_is_drawn_or_rejected_with_an_explanation(tmp_path):
    chance = random.Random(6)
    trace, path = honest(), tmp_path / "run.json"
    ways = list(places(trace))
    outcomes = set()
    for _ in range(MUTANTS):
        mutant = trace
        for _ in range(chance.choice((1, 1, 3))):
            remove = chance.random() < 0.2
            try:
                mutant = changed(mutant, chance.choice(ways), chance.choice(NASTY), remove=remove)
            except (KeyError, IndexError, TypeError):  # the first change removed this path
                continue
        path.write_text(json.dumps(mutant))
        said = outcome(path)
        said.encode()
        assert "</script><b>" not in said or not said.startswith("<!doctype")
        drawn = said.startswith("<!doctype")
        assert drawn or (str(tmp_path) in said and len(said) < 1000)
        outcomes.add(drawn)
    assert outcomes == {True, False}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nested deeper"),
        ('{"traceEvents":[],"otherData":[]}', "not a trace of Unisono"),
        ('{"traceEvents":[],"otherData":' + "9" * 5000 + "}", "is not JSON"),
        ("", "is not JSON"),
    ],
)
def test_hostile_text_is_rejected(tmp_path, text, words):
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=words):
        read_run(path)


def test_a_hostile_event_is_rejected(tmp_path):
    path = tmp_path / "run.json"
    for line, words in (
        ("[" * 100_000, "nested deeper"),
        ('{"ph":"X","ts":' + "9" * 5000 + "}", "line 2 is not a complete event"),
    ):
        write_trace(path, [part_of(0)[0]], [line])
        with pytest.raises(UsageError, match=words):
            read_run(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"size": 10**9}, "a communicator of 1000000000 ranks; expected at most 1024"),
        ({"size": 3}, "disagree on the size"),
        ({"rank": 1}, "has two traces"),
        ({"job_rank": -1}, "header is invalid"),
        ({"schedules": {"digest": 7}}, "7 as 'digest'"),
        ({"clock": {"name": []}}, r"\[\] as 'name'"),
    ],
)
def test_an_inconsistent_header_is_rejected(tmp_path, change, words):
    trace = honest()
    trace["otherData"]["unisono"]["parts"][0].update(change)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(trace))
    with pytest.raises(UsageError, match=words):
        read_run(path)


def test_pipes_are_rejected_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(UsageError, match=r"pipe\.json: a folder, a pipe or a device"):
        read_run(tmp_path / "pipe.json")
    (tmp_path / "run").mkdir()
    os.mkfifo(tmp_path / "run" / "run.json")
    with pytest.raises(UsageError, match=r"run\.json: a folder, a pipe or a device"):
        read_run(tmp_path / "run")


@pytest.mark.parametrize("closed", ["run", "run/run.json"])
def test_an_unreadable_folder_or_file_is_rejected(tmp_path, closed):
    header, lines = part_of(0)
    write_trace(tmp_path / "run" / "run.json", [header], lines)
    (tmp_path / closed).chmod(0)
    tmp_path.chmod(0o755)
    child = os.fork()
    if child == 0:
        os.chdir(tmp_path)
        if os.getuid() == 0:  # root may read everything
            os.setuid(65534)
        try:
            read_run("run")
        except UsageError as error:
            os._exit(7 if f"{closed}: cannot be read: Permission denied" in str(error) else 1)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_overlapping_waits_are_analysed_in_limited_time(tmp_path):
    trace = honest()
    wait = next(event for event in trace["traceEvents"] if event.get("cat") == "wait")
    wait["dur"] = 1000
    other = copy.deepcopy(wait)
    other["pid"], other["args"]["peer"] = 0, 1
    trace["traceEvents"] += [wait, other] * 5000
    path = tmp_path / "run.json"
    path.write_text(json.dumps(trace))
    assert write_run_page(path).html
