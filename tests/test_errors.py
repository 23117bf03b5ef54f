from __future__ import annotations

import pickle

import pytest

from unisono import errors, recv
from unisono.errors import DeadlockError, ScheduleError, UnisonoError, UsageError


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes():
    """Every exception is named in the docstring, under its parent, with its built-in base in brackets."""
    tree = errors.__doc__.split("::")[1].split("Every message")[0]
    classes = {name: c for name, c in vars(errors).items() if isinstance(c, type) and issubclass(c, UnisonoError)}
    found = {}
    for line in tree.strip().splitlines():
        stem = line.lstrip(" │├└─")
        depth = (len(line) - len(stem)) // 4
        name, _, rest = stem.partition(" ")[0].partition("(")
        found[name] = (depth, rest.rstrip(")"))
    assert set(found) == set(classes)
    for name, (_, builtin) in found.items():
        if builtin:
            assert builtin in [base.__name__ for base in classes[name].__mro__]


def test_a_message_states_location_expected_found_and_hint_and_counts_steps_from_1():
    error = DeadlockError(
        "two ranks wait", algorithm="all_reduce/mine", size=3, rank=1, step=4, op="recv 0 from 2",
        expected="progress", found="none", hint="send first",
    )  # fmt: skip
    assert str(error) == (
        "all_reduce/mine on 3 ranks, rank 1, step 5, `recv 0 from 2`: two ranks wait\n"
        "  expected: progress\n  found:    none\n  hint:     send first"
    )
    assert (error.rank, error.step, error.op) == (1, 4, "recv 0 from 2")


@pytest.mark.parametrize("op", [recv(7, src=2), recv(range(9), src=2), "recv 0 from 2", None])
def test_a_schedule_error_is_the_same_after_its_way_from_a_worker_process(op):
    error = DeadlockError("two ranks wait", algorithm="a", size=3, rank=1, step=4, op=op, chunk=7)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is DeadlockError
    assert str(copy) == str(error)
    assert copy.context() == error.context()


def test_a_location_is_added_to_an_error_but_never_changed():
    error = ScheduleError("bad", rank=1).at(rank=5, step=2)
    assert (error.rank, error.step) == (1, 2)


def test_errors_are_caught_as_the_builtin_that_people_expect():
    with pytest.raises(ValueError, match="cannot"):
        raise UsageError("cannot")
    assert issubclass(errors.CollectiveTimeout, TimeoutError)
    assert issubclass(errors.PeerLost, ConnectionError)


def test_a_note_on_an_error_does_not_get_in_its_way():
    error = DeadlockError("two ranks wait", rank=1)
    error.add_note("seen in a dream")
    assert error.at(step=2).step == 2
    assert pickle.loads(pickle.dumps(error)).rank == 1


def test_the_chunk_is_named_unless_the_op_is_about_that_chunk_alone():
    assert "chunk 3" in str(ScheduleError("bad", op=recv(range(10), src=3), chunk=3))
    assert "chunk 3" not in str(ScheduleError("bad", op=recv(3, src=1), chunk=3))
