"""Every built-in algorithm is proved for every size from 1 to 33 and every root."""

from __future__ import annotations

import pytest

from builders import NAMES
from unisono import find, prove


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_algorithm_is_proved_for_every_size_and_root(name):
    algorithm = find(name)
    for size in range(1, 34):
        for root in range(size) if algorithm.collective.rooted else [None]:
            proof = prove(algorithm.schedule(size, root), depth=1)
            assert proof.rounds >= proof.least_rounds
            assert max(proof.sent, proof.received) >= proof.least_bytes
