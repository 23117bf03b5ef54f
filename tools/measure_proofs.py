"""Measure how long a proof of each all-reduce takes, at 64 and 512 ranks: the table of docs/verifier.md."""

from __future__ import annotations

import timing
from unisono.algorithms import algorithms_of
from unisono.collectives import all_reduce
from unisono.schedule import freeze
from unisono.verifier import prove
from unisono.verifier.cache import content_digest

REPEATS = 3


if __name__ == "__main__":
    print("| all-reduce | 64 ranks | 512 ranks | 512 ranks, found in the cache |")
    print("|---|--:|--:|--:|")
    for algorithm in algorithms_of(all_reduce):
        small, large = algorithm.schedule(64), algorithm.schedule(512)
        cells = [
            f"{timing.fastest(lambda s=small: prove(s), REPEATS):.3f} s",
            f"{timing.fastest(lambda s=large: prove(s), REPEATS):.2f} s",
            f"{timing.fastest(lambda s=large: content_digest(freeze(s), 1), REPEATS):.2f} s",
        ]
        print(f"| {algorithm.name} | " + " | ".join(cells) + " |", flush=True)
