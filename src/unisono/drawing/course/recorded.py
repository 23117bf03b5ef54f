"""A recorded training step, as captions need it: moments by their meaning, and bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context
from typing import Any

from unisono.drawing.script_pages import RECORDED

PARAMETERS, GRADIENTS, OPTIMIZER, GATHERED, ACTIVATIONS = range(5)


@dataclass(frozen=True)
class Recording:
    """The step of a strategy: ``data`` is the content of its file."""

    data: dict[str, Any]

    @classmethod
    def of(cls, strategy: str) -> Recording:
        """Read the recording of a strategy."""
        return cls(json.loads((RECORDED / f"{strategy}.json").read_text(encoding="utf-8")))

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return int(self.data["ranks"])

    @property
    def last(self) -> int:
        """The last moment."""
        return len(self.data["moments"]) - 1

    def at(self, what: str) -> int:
        """Return the first moment at which something happens: "loss", "ready", "update", ..."""
        return next(at for at, moment in enumerate(self.data["moments"]) if moment["what"] == what)

    def start(self, number: int) -> int:
        """Return the moment at which a collective starts."""
        return next(at for at, moment in enumerate(self.data["moments"]) if moment["collective"] == number)

    def calls(self, collective: str, phase: str | None = None) -> list[int]:
        """Return the numbers of the calls of a collective, of one phase or of all."""
        return [
            number
            for number, each in enumerate(self.data["collectives"])
            if each["collective"] == collective and phase in (None, each["phase"])
        ]

    def call(self, number: int) -> dict[str, Any]:
        """Return a collective: its bytes, its layers and so on."""
        found: dict[str, Any] = self.data["collectives"][number]
        return found

    def held(self, moment: int, *kinds: int, rank: int = 0) -> int:
        """Return the bytes that a rank holds at a moment, of some kinds."""
        return sum(layer[kind] for layer in self.data["moments"][moment]["held"][rank] for kind in kinds)

    @property
    def peak(self) -> int:
        """The most bytes that rank 0 has allocated at any moment, with memory that is empty then."""
        return max(
            self.held(at, *range(5)) + int(self.data["moments"][at]["empty"][0]) for at in range(self.last + 1)
        )

    def sent(self) -> int:
        """Return the bytes that a rank sends in the step."""
        return sum(int(each["sent_bytes"]) for each in self.data["collectives"])


def size_text(nbytes: float) -> str:
    """Return bytes as the page writes them: 16.3 KiB; JavaScript rounds a half up."""
    if nbytes < 1024:
        return f"{nbytes:g} B"
    return f"{float(Context(prec=3, rounding=ROUND_HALF_UP).create_decimal_from_float(nbytes / 1024)):g} KiB"
