from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from unisono.errors import UsageError
from unisono.tracing.files import clear, headers_in, part_path, parts_in, write_trace
from unisono.tracing.joining import join, join_when_all_are_there


def header(rank, run="r", number=0):
    return {"run": run, "job_rank": rank, "number": number}


def write(folder, rank, run="r", lines=('{"ph":"X"}',)):
    head = header(rank, run)
    path = part_path(folder, head)
    write_trace(path, [head], lines)
    return path


@pytest.mark.parametrize("lines", [(), ('{"a":1}',), ('{"a":1}', '{"b":"]}"}', "[2]")])
def test_a_trace_is_a_json_object_with_the_events_unchanged(tmp_path, lines):
    path = tmp_path / "t.json"
    write_trace(path, [header(0)], lines)
    found = json.loads(path.read_text())
    assert found["traceEvents"] == [json.loads(line) for line in lines]
    assert headers_in(path) == [header(0)]


def test_parts_are_joined_and_removed(tmp_path):
    for rank in range(3):
        write(tmp_path, rank, lines=[f"[{rank},{number}]" for number in range(rank)])
    join(parts_in(tmp_path), tmp_path / "run.json")
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    assert json.loads((tmp_path / "run.json").read_text())["traceEvents"] == [[1, 0], [2, 0], [2, 1]]
    assert [one["job_rank"] for one in headers_in(tmp_path / "run.json")] == [0, 1, 2]


def test_the_last_rank_joins_the_parts(tmp_path):
    folder, path = tmp_path / "run.json.parts", tmp_path / "run.json"
    for rank in range(3):
        write(folder, rank)
        write(folder, rank, run="another")
        assert join_when_all_are_there(folder, "r", 3, path) == (rank == 2)
    assert len(parts_in(folder)) == 3  # of the other run
    assert join_when_all_are_there(folder, "another", 3, path)
    assert not folder.exists()


def test_concurrent_ranks_join_the_parts_once(tmp_path):
    for lap in range(20):
        folder, path = tmp_path / f"{lap}.parts", tmp_path / f"{lap}.json"
        joined = []

        def leave(rank, folder=folder, path=path, joined=joined):
            write(folder, rank)
            joined.append(join_when_all_are_there(folder, "r", 4, path))

        threads = [threading.Thread(target=leave, args=(rank,)) for rank in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(joined) == 1
        assert len(headers_in(path)) == 4
        assert not folder.exists()


def test_joining_parts_that_another_rank_has_joined_does_nothing(tmp_path, monkeypatch):
    folder = tmp_path / "run.json.parts"
    monkeypatch.setattr(Path, "is_dir", lambda path: True)  # it existed a moment ago
    assert not join_when_all_are_there(folder, "r", 2, tmp_path / "run.json")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_another_rank_removes_while_empty_is_created_again(tmp_path, monkeypatch):
    make_folder, removed = Path.mkdir, []

    def make_folder_and_remove_it(path, *args, **options):
        make_folder(path, *args, **options)
        if not removed:
            path.rmdir()
            removed.append(path)

    monkeypatch.setattr(Path, "mkdir", make_folder_and_remove_it)
    folder = tmp_path / "run.json.parts"
    part = write(folder, 0)
    assert removed == [folder]
    assert headers_in(part) == [header(0)]


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written"):
        write_trace(tmp_path / "file" / "run.json", [], [])
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_clearing_keeps_files_of_other_programs(tmp_path):
    write(tmp_path, 0)
    for name in ("run.json", "notes.txt", "other.json"):
        (tmp_path / name).touch()
    clear(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "other.json"]
