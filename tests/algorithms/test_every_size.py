"""Every built-in algorithm is proved for every size from 1 to 33; up to 17, and in `make stress`, for every root."""

from __future__ import annotations

import pytest

from builders import NAMES
from unisono import find, prove


def check_proof(algorithm, size, root):
    proof = prove(algorithm.schedule(size, root), depth=1)
    assert proof.rounds >= proof.least_rounds
    assert max(proof.sent, proof.received) >= proof.least_bytes


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_algorithm_is_proved_for_every_size(name):
    algorithm = find(name)
    for size in range(1, 34):
        roots = range(size) if size <= 17 else (0, 1, size // 2, size - 1)
        for root in roots if algorithm.collective.rooted else [None]:
            check_proof(algorithm, size, root)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in NAMES if find(name).collective.rooted])
def test_the_algorithm_is_proved_for_every_root_of_larger_sizes(name):
    for size in range(18, 34):
        for root in range(size):
            check_proof(find(name), size, root)
