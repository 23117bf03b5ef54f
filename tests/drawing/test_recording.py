from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from builders import NAMES, SIZES, written
from unisono import find, prove
from unisono.drawing.recording import NEVER, record
from unisono.errors import DeadlockError, UnmatchedError


@pytest.mark.parametrize("name", NAMES)
def test_what_is_recorded_is_what_the_verifier_counts(name):
    for size in SIZES:
        schedule = find(name).schedule(size)
        recording, proof = record(schedule), prove(schedule)
        assert recording.error is None
        assert len(recording.messages["src"]) == proof.messages
        assert recording.last_level == proof.levels
        assert max(map(len, recording.levels)) == proof.steps
        sent = np.bincount(recording.messages["src"], recording.messages["amount"], minlength=size).max()
        assert sent == proof.sent * schedule.chunks or not proof.sent
        assert (recording.messages["got"] >= recording.messages["sent"]).all()


def test_messages_stand_in_the_order_in_which_they_are_received():
    messages = record(find("hierarchical").schedule(6)).messages
    order = list(zip(messages["got"], messages["dst"], strict=True))
    assert order == sorted(order)


def test_a_message_names_its_chunks_as_the_sender_and_as_the_receiver_does():
    messages = record(find("all_to_all/pairwise").schedule(3)).messages
    first = messages["src"].tolist().index(0)
    assert messages["sent_chunks"][first] == messages["dst"][first]  # in the input
    assert messages["got_chunks"][first] == 3 + messages["src"][first]  # in the output


def test_chunks_of_many_messages_lie_one_after_the_other():
    messages = record(find("rabenseifner").schedule(8)).messages
    assert len(messages["sent_chunks"]) == messages["amount"].sum()
    assert messages["amount"].max() == 4


def test_without_chunks_there_is_one_number_for_each_message():
    messages = record(find("rabenseifner").schedule(8), with_chunks=False).messages
    assert len(messages["sent_chunks"]) == len(messages["src"])
    assert messages["amount"].max() == 4


def test_local_ops_are_no_messages():
    recording = record(find("naive").schedule(3))
    assert len(recording.messages["src"]) == 6
    assert recording.locals["reduce"].tolist().count(1) == 6  # every rank combines twice
    assert recording.locals["level"].min() == 2


def test_messages_of_one_step_are_numbered_as_they_are_sent():
    messages = record(find("all_gather/naive").schedule(4)).messages
    for rank in range(4):
        mine = messages["src"] == rank
        by_number = messages["dst"][mine][np.argsort(messages["out"][mine])]
        assert by_number.tolist() == [(rank + way) % 4 for way in (1, 2, 3)]


def test_a_deadlock_ends_the_recording_and_what_came_before_is_kept():
    schedule = written("all_reduce", 1, "send 0 to 1\nrecv_reduce 0 from 1", "recv_reduce 0 from 0\nrecv 0 from 0")
    recording = record(schedule)
    assert isinstance(recording.error, DeadlockError)
    assert recording.messages["got"].tolist() == [1]
    assert recording.levels == [[1], [1]]


def test_a_message_that_nobody_receives_still_has_a_destination():
    schedule = written("all_reduce", 1, "send 0 to 2; recv_reduce 0 from 1", "send 0 to 0", "")
    recording = record(schedule)
    assert isinstance(recording.error, UnmatchedError)
    lost = recording.messages["got"] == NEVER
    assert recording.messages["dst"][lost].tolist() == [2]
    assert recording.messages["src"][lost].tolist() == [0]


def test_a_program_that_breaks_off_is_recorded_up_to_there():
    def breaks_off(rank):
        yield from find("ring")(rank, 3)
        raise RuntimeError("enough")

    recording = record(dataclasses.replace(find("ring").schedule(3), make=breaks_off))
    assert "RuntimeError: enough" in str(recording.error)
    assert (recording.messages["got"] > 0).any()
