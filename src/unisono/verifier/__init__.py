"""Executes a schedule on symbols and proves it."""

from unisono.verifier.cache import cache_directory, proof_of, proved
from unisono.verifier.proof import Proof, prove, trees
from unisono.verifier.proved import ProvedSchedule, Rounding
from unisono.verifier.rounding import count_roundings

__all__ = [
    "Proof", "ProvedSchedule", "Rounding", "cache_directory", "count_roundings", "proof_of", "prove", "proved",
    "trees",
]  # fmt: skip
