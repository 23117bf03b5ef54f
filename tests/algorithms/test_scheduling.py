"""play() and prove() accept names, algorithms and schedules."""

from __future__ import annotations

import numpy as np
import pytest

from unisono import Schedule, algorithm, find, play, prove, recv_reduce, send
from unisono.collectives import all_reduce
from unisono.errors import UsageError

INPUTS = [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize(
    "program", ["ring", find("ring"), find("ring").schedule(3)], ids=["name", "algorithm", "schedule"]
)
def test_a_program_is_played_and_proved_in_every_form(program):
    outputs = play(program, INPUTS).outputs
    assert [output.tolist() for output in outputs] == [[9, 12]] * 3
    size = None if isinstance(program, Schedule) else 3
    assert prove(program, size=size).size == 3


def test_root_and_options_reach_the_algorithm():
    outputs = play("broadcast/tree", [None, np.array([7]), None], root=1).outputs
    assert [output.tolist() for output in outputs] == [[7]] * 3
    assert prove("hierarchical", size=6, node=2).algorithm == "all_reduce/hierarchical(node=2)"
    assert play("barrier/tree", size=3).levels == prove("barrier/tree", size=3).levels


def test_an_algorithm_of_a_file_is_named_by_its_path(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from unisono import algorithm, recv_reduce, send\nfrom unisono.collectives import all_reduce\n"
        "@algorithm(all_reduce)\ndef swap(rank, size):\n"
        "    if size == 2:\n        yield send(0, dst=1 - rank), recv_reduce(0, src=1 - rank)\n"
    )
    assert play(f"{path}:swap", [[1], [2]]).outputs[0].tolist() == [3]
    assert prove(str(path), size=2).messages == 2


def undeclared(rank, size):
    yield send(0, dst=1 - rank), recv_reduce(0, src=1 - rank)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: prove("ring"), r"prove needs the number of ranks of all_reduce/ring; write prove\(..., size=4\)"),
        (lambda: play("barrier/tree"), r"play needs the number of ranks of barrier/tree"),
        (lambda: prove(undeclared, size=2), r"found function undeclared; a generator becomes an algorithm with"),
        (
            lambda: play(3, INPUTS),
            r"play needs a schedule, an algorithm or the name of one, such as 'ring'; found int 3",
        ),
        (lambda: play(all_reduce, INPUTS), r"found Collective all_reduce"),
        (lambda: prove(find("ring").schedule(3), size=4), r"all_reduce/ring is already a schedule for 3 ranks"),
        (lambda: prove("rnig", size=3), r"did you mean 'all_reduce/ring'\?"),
    ],
)
def test_any_other_argument_is_rejected_with_a_reason(call, complaint):
    with pytest.raises(UsageError, match=complaint):
        call()


def test_an_algorithm_has_a_short_representation():
    assert repr(find("ring")) == "<Algorithm all_reduce/ring>"
    assert repr(algorithm(all_reduce)(undeclared)) == "<Algorithm all_reduce/undeclared>"
