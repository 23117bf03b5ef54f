"""Plays a schedule with symbols and proves it."""

from unisono.verifier.cache import cache_directory, proof_of
from unisono.verifier.proof import Proof, prove, trees

__all__ = ["Proof", "cache_directory", "proof_of", "prove", "trees"]
