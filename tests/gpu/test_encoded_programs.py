"""Device programs with a codec: messages are staged, encoded, and all ranks get the player's bits."""

from __future__ import annotations

import pytest
from emulated import check_against_player
from emulator import KERNEL, STREAM

from unisono.algorithms import find
from unisono.codecs import Codec
from unisono.codecs.formats import FORMATS
from unisono.errors import GoalError
from unisono.gpu.lowering import lower_for_device
from unisono.gpu.program import ROUND, SCRATCH
from unisono.verifier import proved
from unisono.verifier.rounding import proved_with_codec

CASES = [
    ("direct", 3), ("ring", 5), ("tree", 6), ("rabenseifner", 8), ("naive", 3), ("double_tree", 7),
    ("all_gather/ring", 3), ("all_gather/naive", 5), ("reduce_scatter/naive", 3), ("reduce_scatter/ring", 5),
    ("broadcast/chain", 5), ("reduce/tree", 6), ("all_to_all/naive", 3), ("scatter/tree", 7), ("gather/tree", 6),
]  # fmt: skip
TILE = 256  # bytes: two codec blocks


@pytest.mark.parametrize(("name", "size"), CASES)
def test_encoded_messages_give_the_bits_of_the_player(name, size):
    algorithm = find(name)
    schedule = algorithm.schedule(size, 1 if algorithm.collective.rooted else None)
    for number, codec in enumerate(FORMATS):
        total = 67 * size + (0 if name.startswith("all_to_all") else number)
        options = {"scratch": 6000} if number % 2 else {}
        try:
            check_against_player(
                schedule, total, codec=Codec(codec), seed=number, tile=TILE, mode=(KERNEL, STREAM)[number % 2],
                in_place=number == 2, op="avg" if number == 3 and algorithm.collective.reduces else None, **options,
            )  # fmt: skip
        except GoalError:  # the ranks would not agree: refused
            assert name == "naive"


def test_only_encoded_slots_are_read_from_other_ranks():
    made = proved_with_codec(proved(find("ring").schedule(5)), False, warns=False)
    lowered = lower_for_device(made)
    moves = [(rank, move) for rank, steps in enumerate(lowered.programs) for step in steps for move in step.moves]
    for rank, move in moves:
        assert all(place.rank == rank for place in move.destinations)
        for place in move.sources:
            assert place.rank == rank or (place.encoded and place.buffer == SCRATCH)
        if any(place.encoded for place in move.destinations):
            assert move.flags & ROUND
    assert lowered.encoded_slots == (8,) * 5
