"""Plays a schedule with symbols and proves it."""

from unisono.verifier.proof import Proof, prove

__all__ = ["Proof", "prove"]
