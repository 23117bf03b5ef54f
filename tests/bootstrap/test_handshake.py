"""Errors travel between ranks as data: class, id and parameters."""

from __future__ import annotations

import json

import pytest

from unisono.bootstrap import messages
from unisono.bootstrap.handshake import error_from_dict, error_to_dict
from unisono.errors import CollectiveTimeout, CommError, InternalError, PeerLost, UsageError
from unisono.message import CHINESE, Template, join


def travelled(error):
    return error_from_dict(json.loads(json.dumps(error_to_dict(error, 2))))


def test_an_error_arrives_with_its_class_id_parameters_and_rank():
    sent = PeerLost(messages.ENDED_BEFORE_READY(rank=1, process=77), rank=1)
    received = travelled(sent)
    assert type(received) is PeerLost
    assert (received.id, received.parameters, received.rank) == (sent.id, sent.parameters, 1)
    assert str(received) == str(sent)
    assert received.text(CHINESE) == sent.text(CHINESE) != str(sent)


def test_a_message_inside_a_message_can_be_translated_by_the_receiver():
    refusals = messages.REFUSALS(refusals=messages.PROCESS_REFUSED(process=5, reason="x"))
    sent = CollectiveTimeout(
        messages.RANKS_MISSING(
            seconds=2.0, size=3, missing="1", refused=refusals, hint=messages.HINT_CONNECT_TIMEOUT()
        )
    )
    received = travelled(sent)
    assert str(received) == str(sent)
    assert received.text(CHINESE) == sent.text(CHINESE)


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), InternalError("x")])
def test_any_other_error_arrives_as_a_communication_error_that_names_the_rank(error):
    received = travelled(error)
    assert type(received) is CommError
    assert received.rank == 2
    assert str(received) == f"connect: rank 2: {type(error).__name__}: {error}"


@pytest.mark.parametrize(
    "problem",
    [
        "text",
        {"id": "another.version", "parameters": {}, "text": "text"},
        {"id": messages.ENDED_BEFORE_READY.id, "parameters": {"rank": 1}, "text": "text"},
        {"id": messages.ENDED_BEFORE_READY.id, "parameters": [1], "text": "text"},
        {"id": messages.NOT_READY.id, "parameters": {"rank": 1, "process": 2, "seconds": "soon"}, "text": "text"},
        {"id": ["x"], "text": "text"},
    ],
)
def test_a_message_that_is_not_understood_arrives_as_text(problem):
    received = error_from_dict({"problem": problem, "kind": "UsageError", "rank": None})
    assert (type(received), str(received), received.id) == (UsageError, "text", "")


def test_a_message_of_another_package_is_understood_if_its_template_is_given():
    template = Template("elsewhere.failed", "failed: {reason}", "失败：{reason}")
    sent = UsageError(template(reason=messages.HINT_PORT()))
    data = json.loads(json.dumps(error_to_dict(sent, 2)))
    assert (error_from_dict(data).id, str(error_from_dict(data))) == ("", str(sent))
    received = error_from_dict(data, {template.id: template})
    assert (received.id, received.text(CHINESE)) == (template.id, sent.text(CHINESE))


def test_several_messages_in_one_arrive_as_text():
    reasons = join([messages.HINT_PORT(), messages.HINT_INHERITED()])
    sent = CommError(messages.CONNECT(reason=reasons))
    assert str(travelled(sent)) == str(sent)
