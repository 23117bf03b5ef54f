from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from builders import NAMES, SIZES, written
from unisono import find, prove
from unisono.drawing.step_capture import NEVER, capture_steps
from unisono.errors import DeadlockError, UnmatchedError


@pytest.mark.parametrize("name", NAMES)
def test_the_captured_messages_are_those_that_the_verifier_counts(name):
    for size in SIZES:
        schedule = find(name).schedule(size)
        capture, proof = capture_steps(schedule), prove(schedule)
        assert capture.error is None
        assert len(capture.messages["src"]) == proof.messages
        assert capture.last_level == proof.levels
        assert max(map(len, capture.levels)) == proof.steps
        sent = np.bincount(capture.messages["src"], capture.messages["amount"], minlength=size).max()
        assert sent == proof.sent * schedule.chunks or not proof.sent
        assert (capture.messages["got"] >= capture.messages["sent"]).all()


def test_messages_are_in_the_order_of_their_receives():
    messages = capture_steps(find("hierarchical").schedule(6)).messages
    order = list(zip(messages["got"], messages["dst"], strict=True))
    assert order == sorted(order)


def test_a_message_names_its_chunks_at_the_sender_and_at_the_receiver():
    messages = capture_steps(find("all_to_all/pairwise").schedule(3)).messages
    first = messages["src"].tolist().index(0)
    assert messages["sent_chunks"][first] == messages["dst"][first]  # in the input
    assert messages["got_chunks"][first] == 3 + messages["src"][first]  # in the output


def test_chunks_of_many_messages_are_stored_consecutively():
    messages = capture_steps(find("rabenseifner").schedule(8)).messages
    assert len(messages["sent_chunks"]) == messages["amount"].sum()
    assert messages["amount"].max() == 4


def test_local_ops_are_not_messages():
    capture = capture_steps(find("naive").schedule(3))
    assert len(capture.messages["src"]) == 6
    assert capture.locals["reduce"].tolist().count(1) == 6  # every rank combines twice
    assert capture.locals["level"].min() == 2


def test_messages_of_one_step_are_numbered_in_sending_order():
    messages = capture_steps(find("all_gather/naive").schedule(4)).messages
    for rank in range(4):
        mine = messages["src"] == rank
        by_number = messages["dst"][mine][np.argsort(messages["out"][mine])]
        assert by_number.tolist() == [(rank + way) % 4 for way in (1, 2, 3)]


def test_a_deadlock_ends_the_capture_and_earlier_steps_are_kept():
    schedule = written("all_reduce", 1, "send 0 to 1\nrecv_reduce 0 from 1", "recv_reduce 0 from 0\nrecv 0 from 0")
    capture = capture_steps(schedule)
    assert isinstance(capture.error, DeadlockError)
    assert capture.messages["got"].tolist() == [1]
    assert capture.levels == [[1], [1]]


def test_a_message_stuck_in_a_deadlock_keeps_its_receiving_op():
    """The page draws it like any other message, as an addition or as stored."""
    programs = {"recv_reduce": 1, "recv": 0}
    for kind, reduce in programs.items():
        waits = f"send 0 to {{}}\nrecv_reduce 0 from 2\n{kind} 0 from {{}}"
        capture = capture_steps(written("all_reduce", 1, waits.format(1, 1), waits.format(0, 0), ""))
        assert isinstance(capture.error, DeadlockError | UnmatchedError)
        assert capture.messages["got"].tolist() == [NEVER, NEVER]
        assert capture.messages["reduce"].tolist() == [reduce, reduce]


def test_a_message_that_no_rank_receives_still_has_a_destination():
    schedule = written("all_reduce", 1, "send 0 to 2; recv_reduce 0 from 1", "send 0 to 0", "")
    capture = capture_steps(schedule)
    assert isinstance(capture.error, UnmatchedError)
    lost = capture.messages["got"] == NEVER
    assert capture.messages["dst"][lost].tolist() == [2]
    assert capture.messages["src"][lost].tolist() == [0]


def test_a_program_that_raises_is_captured_up_to_the_exception():
    def raises_early(rank):
        yield from find("ring")(rank, 3)
        raise RuntimeError("enough")

    capture = capture_steps(dataclasses.replace(find("ring").schedule(3), make=raises_early))
    assert "RuntimeError: enough" in str(capture.error)
    assert (capture.messages["got"] > 0).any()
