"""The text: "The Orchestra Without a Conductor", written for this project, and under its license.

A step of the training reads one *global batch*: rows that begin at random positions of the text. The ranks share it
equally, so that training on more ranks gives the same model.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

PATH = Path(__file__).with_name("text.txt")


class Text:
    """A text as numbers, one for every character that occurs in it."""

    def __init__(self, path: Path = PATH) -> None:
        text = path.read_text(encoding="utf-8")
        self.characters = sorted(set(text))
        self.number = {character: number for number, character in enumerate(self.characters)}
        self.ids = torch.tensor([self.number[character] for character in text])

    def batch(self, step: int, rows: int, length: int) -> tuple[Tensor, Tensor]:
        """Return the global batch of a step, the same on every rank: characters, and the character after each."""
        chance = torch.Generator().manual_seed(step)
        starts = torch.randint(len(self.ids) - length, (rows, 1), generator=chance)
        positions = starts + torch.arange(length)
        return self.ids[positions], self.ids[positions + 1]

    def encode(self, text: str) -> list[int]:
        """Return the numbers of the characters."""
        return [self.number[character] for character in text]

    def decode(self, ids: list[int]) -> str:
        """Return the characters of the numbers."""
        return "".join(self.characters[number] for number in ids)
