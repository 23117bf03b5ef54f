from __future__ import annotations

import pytest

from unisono import combine, copy, recv, recv_reduce, send
from unisono.schedule.ops import format_chunks


def test_an_op_is_printed_as_a_sentence():
    assert str(send(4, dst=1)) == "send 4 to 1"
    assert str(recv(range(3), src=2)) == "recv 0-2 from 2"
    assert str(recv_reduce((0, 1, 5), src=2)) == "recv_reduce 0-1,5 from 2"
    assert str(copy(1, to=7)) == "copy 1 to 7"
    assert str(combine(1, into=7)) == "combine 1 into 7"


def test_the_other_side_is_given_by_name_only():
    with pytest.raises(TypeError):
        send(4, 1)


@pytest.mark.parametrize(
    ("chunks", "text"), [(3, "3"), ((5, 4), "5,4"), ((0, 1, 3, 4, 5), "0-1,3-5"), ((), "nothing")]
)
def test_chunks_are_printed_as_ranges(chunks, text):
    assert format_chunks(chunks) == text


def test_long_lists_of_chunks_are_abbreviated():
    """In an error; the text form is complete, because it is parsed again."""
    assert str(send(range(0, 10**9, 2), dst=1)).endswith("196,198,... to 1")
    assert str(send(range(10**30), dst=1)) == f"send 0-{10**30 - 1} to 1"
    assert send(range(0, 10**4, 2), dst=1).text().count(",") == 4999
