"""Traces on their way from an agent to the launcher."""

from __future__ import annotations

import json
import random

import pytest

from unisono.launch.trace_files import TRACE, FileReceiver, send_files


def sent(folder, ranks=(0, 4)):
    lines = []
    send_files(str(folder), ranks, lines.append)
    assert all(line.startswith(TRACE) and line.endswith(b"\n") and len(line) < 100_000 for line in lines)
    return [line.removeprefix(TRACE) for line in lines]


@pytest.fixture
def folders(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    return here, there


def test_files_arrive_as_they_were(folders):
    here, there = folders
    contents = {"rank-0.r-0.json": b"", "rank-3.r-12.json": random.Random(1).randbytes(300_000)}
    for name, content in contents.items():
        (here / name).write_bytes(content)
    (here / "rank-7.r-0.json").write_bytes(b"of a rank of another host")
    (here / ".rank-0.r-1.json.99").write_bytes(b"not complete")
    receiver = FileReceiver(there, range(4))
    assert [receiver.take(line) for line in sent(here)] == [None] * len(sent(here))
    assert {path.name: path.read_bytes() for path in there.iterdir()} == contents


def test_a_folder_that_does_not_exist_has_no_files(tmp_path):
    assert sent(tmp_path / "nothing") == []


def test_files_that_are_too_long_are_refused_once_and_leave_nothing(folders):
    here, there = folders
    for rank in range(3):
        (here / f"rank-{rank}.r-0.json").write_bytes(bytes(50_000))
    receiver = FileReceiver(there, range(4), most_bytes=120_000)
    problems = [problem for line in sent(here) if (problem := receiver.take(line)) is not None]
    assert [problem.id for problem in problems] == ["launch.trace_too_long"]
    assert sorted(path.name for path in there.iterdir()) == ["rank-0.r-0.json", "rank-1.r-0.json"]


def test_a_file_that_is_not_complete_leaves_nothing(folders):
    here, there = folders
    (here / "rank-0.r-0.json").write_bytes(random.Random(2).randbytes(200_000))
    receiver = FileReceiver(there, range(4))
    receiver.take(sent(here)[0])
    receiver.close()
    assert list(there.iterdir()) == []


@pytest.mark.parametrize(
    "line",
    [
        b"", b"7", b"{}", b"[" * 100_000, b'{"name":"../rank-0.r-0.json","data":"","last":true}',
        b'{"name":"rank-9.r-0.json","data":"","last":true}', b'{"name":"rank-0.r-0.json","data":"*","last":true}',
        b'{"name":"rank-0.r-0.json","data":"AAAA","last":true}', b'{"name":"rank-0.r-0.json","data":"","last":true}',
        b'{"name":["rank-0.r-0.json"],"data":"","last":true}', b'{"name":"rank-0./x.json","data":"","last":true}',
    ],
)  # fmt: skip
def test_invalid_lines_are_refused_and_leave_nothing(folders, line):
    receiver = FileReceiver(folders[1], range(4))
    problem = receiver.take(line)
    assert problem is not None
    assert problem.id == "launch.bad_trace_line"
    assert list(folders[1].iterdir()) == []
    assert receiver.take(json.dumps({"name": "rank-0.r-0.json", "data": "", "last": True}).encode()) is None
    assert list(folders[1].iterdir()) == []
