from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unisono.schedule import partition


@given(st.integers(0, 10_000), st.integers(1, 200))
def test_pieces_cover_everything_in_order_and_differ_by_at_most_one(length, parts):
    pieces = partition(length, parts)
    assert len(pieces) == parts
    assert [piece.start for piece in pieces] == [0, *(piece.stop for piece in pieces[:-1])]
    assert pieces[-1].stop == length
    lengths = [piece.stop - piece.start for piece in pieces]
    assert sorted(lengths, reverse=True) == lengths
    assert max(lengths) - min(lengths) <= 1
