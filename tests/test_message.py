from __future__ import annotations

import pickle

import pytest

from unisono.errors import DeadlockError, UsageError
from unisono.message import CHINESE, ENGLISH, Message, Template, join, listed, translated

NO_RANK = Template("test.no_rank", "there is no rank {rank}", "没有 rank {rank}")
FOR = Template("test.for", "{what} in {place}", "在 {place} 中{what}")


def test_a_message_is_its_english_sentence():
    message = NO_RANK(rank=7)
    assert message == "there is no rank 7"
    assert (message.id, message.parameters) == ("test.no_rank", {"rank": 7})


def test_a_parameter_that_is_a_message_is_translated():
    message = FOR(what=NO_RANK(rank=7), place="ring")
    assert translated(message, ENGLISH) == "there is no rank 7 in ring"
    assert translated(message, CHINESE) == "在 ring 中没有 rank 7"


def test_plain_text_has_no_translation():
    assert translated("as it is", CHINESE) == "as it is"
    assert translated(Message("as it is"), CHINESE) == "as it is"


def test_joined_sentences_have_the_separators_of_each_language():
    joined = join([NO_RANK(rank=1), NO_RANK(rank=2)])
    assert joined == "there is no rank 1; there is no rank 2"
    assert translated(joined, CHINESE) == "没有 rank 1；没有 rank 2"


def test_a_list_has_the_separators_of_each_language_and_ends_after_the_longest():
    assert listed(["0", "1", "2"]) == "0, 1, 2"
    assert translated(listed(["0", "1", "2"]), "zh") == "0、1、2"
    assert listed(map(str, range(9)), longest=2) == "0, 1, ..."
    assert translated(listed(map(str, range(9)), longest=2), "zh") == "0、1……"
    assert not listed([])


def test_braces_in_parameters_and_joined_text_are_preserved():
    joined = join(["{x}", NO_RANK(rank="{y}")])
    assert joined == "{x}; there is no rank {y}"
    assert translated(joined, CHINESE) == "{x}；没有 rank {y}"


def test_a_missing_parameter_is_a_defect():
    with pytest.raises(KeyError, match="rank"):
        NO_RANK(size=3)


def test_a_message_survives_pickling_with_parameters_of_any_type():
    message = FOR(what=NO_RANK(rank=7), place={"a": object})
    copy = pickle.loads(pickle.dumps(message))
    assert copy == message
    assert translated(copy, CHINESE) == translated(message, CHINESE)


def test_an_error_has_its_id_its_parameters_and_both_texts():
    error = UsageError(NO_RANK(rank=7))
    assert (error.id, error.parameters["rank"]) == ("test.no_rank", 7)
    assert (str(error), error.text(), error.text("zh")) == ("there is no rank 7", "there is no rank 7", "没有 rank 7")
    copy = pickle.loads(pickle.dumps(error))
    assert copy.text("zh") == "没有 rank 7"


def test_an_error_of_plain_text_has_no_id():
    assert UsageError("as it is").id == ""
    assert UsageError("as it is").text("zh") == "as it is"


def test_a_schedule_error_is_translated_with_its_location():
    error = DeadlockError(NO_RANK(rank=7), algorithm="mine", size=3, rank=1, expected=NO_RANK(rank=2), hint="wait")
    assert error.text("zh") == "mine（3 个 rank），rank 1：没有 rank 7\n  应为：没有 rank 2\n  建议：wait"
    assert pickle.loads(pickle.dumps(error)).text("zh") == error.text("zh")
    assert error.id == "test.no_rank"
