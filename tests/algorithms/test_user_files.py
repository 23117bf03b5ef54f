"""Names of algorithms: built-in ones, functions in a user's file, and schedules in text form."""

from __future__ import annotations

import os
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

import unisono
from unisono.algorithms import Algorithm, find
from unisono.algorithms import user_file_messages as messages
from unisono.algorithms.user_files import WrittenSchedule, absolute, algorithms_in, names_a_file, resolve
from unisono.collectives import all_gather, all_reduce
from unisono.errors import UsageError
from unisono.message import translated
from unisono.schedule.text import format_schedule

RING = """
from unisono import algorithm, one_per_rank
from unisono.algorithms.ring import ring_all_gather, ring_reduce_scatter
from unisono.collectives import all_gather, all_reduce

@algorithm(all_reduce, chunks=one_per_rank)
def my_ring(rank, size):
    "Go around twice."
    yield from ring_reduce_scatter(rank, size)
    yield from ring_all_gather(rank, size)
"""
GATHER = """
@algorithm(all_gather, chunks=one_per_rank)
def my_gather(rank, size):
    yield from ring_all_gather(rank, size)
"""

IMPORTS = RING[: RING.index("@")]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(RING)
    return path


def test_a_built_in_is_found_by_its_name():
    assert resolve("ring") is find("ring")
    assert resolve("ring", all_gather) is find("all_gather/ring")
    assert not names_a_file("all_gather/ring")


def test_the_only_algorithm_of_a_file_needs_no_name(file):
    found = resolve(str(file))
    assert isinstance(found, Algorithm)
    assert str(found) == "all_reduce/my_ring"
    assert resolve(f"{file}:my_ring") is found
    unisono.prove(found.schedule(5))


def test_the_only_algorithm_of_the_collective_needs_no_name(file):
    file.write_text(RING + GATHER)
    assert str(resolve(str(file), all_gather)) == "all_gather/my_gather"
    with pytest.raises(UsageError) as caught:
        resolve(str(file))
    assert caught.value.id == messages.SEVERAL_IN_FILE.id
    assert caught.value.parameters["names"] == "my_ring, my_gather"


def test_a_file_lists_what_it_declares_and_not_what_it_imports(file):
    file.write_text(RING + GATHER)
    assert [str(each) for each in algorithms_in(file)] == ["all_reduce/my_ring", "all_gather/my_gather"]


def test_a_changed_file_is_loaded_again(file):
    assert resolve(str(file)).idea_in("en") == "Go around twice."
    file.write_text(RING.replace("Go around twice.", "Go around the ring twice."))
    assert resolve(str(file)).idea_in("en") == "Go around the ring twice."


def test_a_watch_gets_problems_that_can_be_translated(file):
    problems = []

    @contextmanager
    def watch(problem):
        problems.append(problem)
        yield SimpleNamespace(inside=True)

    assert list(resolve(str(file), watch=watch).schedule(3).program(0))
    expected = [messages.STILL_LOADING, messages.NOT_RETURNED_YET, messages.NO_STEP_YET]
    assert {problem.id for problem in problems} == {template.id for template in expected}
    assert all(translated(problem, "zh") != problem for problem in problems)


def test_a_schedule_in_text_form_serves_its_size(tmp_path):
    path = tmp_path / "ring.txt"
    path.write_text(format_schedule(find("ring").schedule(3)))
    found = resolve(str(path), all_reduce)
    assert isinstance(found, WrittenSchedule)
    assert found.schedule(3).size == 3
    assert [found.can_serve(size) for size in (2, 3)] == [False, True]
    with pytest.raises(UsageError) as caught:
        found.schedule(4)
    assert caught.value.id == messages.WRITTEN_FOR.id
    assert "-n 3" in caught.value.text("zh")


@pytest.mark.parametrize(
    ("name", "text", "template"),
    [
        ("mine.py", None, messages.NO_FILE),
        ("mine.txt", None, messages.NO_FILE),
        ("./mine", None, messages.NO_FILE),
        ("mine.py", "", messages.NONE_IN_FILE),
        ("mine.py", "import nothing_of_this_name", messages.FILE_FAILED),
        ("mine.py:your_ring", RING, messages.MEANT_IN_FILE),
        ("mine.py:xyz", RING, messages.NOT_IN_FILE),
        ("mine.py:os", "import os", messages.NOT_DECLARED),
        ("mine.py", IMPORTS + GATHER + GATHER.replace("my_", "your_"), messages.NONE_OF_COLLECTIVE),
        ("mine.py", RING + RING.replace("my_ring", "your_ring"), messages.SEVERAL_OF_COLLECTIVE),
        ("mine.py:my_gather", RING + GATHER, messages.OTHER_COLLECTIVE),
    ],
)  # fmt: skip
def test_an_unknown_name_is_rejected_with_a_reason(tmp_path, monkeypatch, name, text, template):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / name.partition(":")[0]).write_text(text)
    with pytest.raises(UsageError) as caught:
        resolve(name, all_reduce)
    assert caught.value.id == template.id
    assert translated(caught.value.message, "zh") != str(caught.value)


def test_an_absolute_name_works_in_another_folder(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = absolute("mine.py:my_ring")
    monkeypatch.chdir(os.sep)
    assert str(resolve(name)) == "all_reduce/my_ring"
    assert absolute("all_gather/ring") == "all_gather/ring"


def test_a_path_without_a_dot_is_a_file(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "ring").write_text(format_schedule(find("ring").schedule(3)))
    monkeypatch.chdir(tmp_path)
    assert isinstance(resolve("folder/ring"), WrittenSchedule)
    assert names_a_file("/etc/passwd")


def _sum_with(comm, names):
    sums = []
    for name in names:
        x = np.full(5, comm.rank + 1.0)
        comm.all_reduce(x, algorithm=name)
        sums.append(x.tolist())
    return sums


def test_a_communicator_runs_the_algorithm_of_a_file(file, tmp_path):
    text = tmp_path / "ring.txt"
    text.write_text(format_schedule(find("ring").schedule(3)))
    names = [str(file), f"{file}:my_ring", str(text)]
    assert unisono.spawn(_sum_with, 3, names) == [[[6.0] * 5] * len(names)] * 3
