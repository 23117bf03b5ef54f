"""The contents of slots as symbols: sums of inputs, each distinct sum with its own number.

*Symbol*: a number. 0 stands for nothing; the inputs come first; then one for each sum that was ever made. Two
slots hold the same symbol if and only if they were added up from the same inputs in the same order (up to
a+b = b+a, which computers respect): so comparing results, bits included, is comparing numbers. A sum that continues
an accumulation (schedule/accumulation.py) differs from the same sum alone: it is rounded at other points. A symbol
that a codec has rounded (rounding.py) is a new one, written R(a0+a1), or R3(a0+a1) where rank 3 has rounded it
stochastically.
"""

from __future__ import annotations

from unisono.collectives import Value
from unisono.message import Message, listed
from unisono.notation import abbreviated, part_name
from unisono.verifier import messages

NOTHING = 0


class Symbols:
    """The table of all symbols of one execution."""

    def __init__(self, size: int, chunks: int) -> None:
        self.chunks = chunks
        # ranks[s]: bit set of the ranks summed in symbol s; origin[s]: which chunk of theirs.
        self.ranks = [0]
        self.origin = [-1]
        for rank in range(size):
            self.ranks += [1 << rank] * chunks
            self.origin += range(chunks)
        self.first_sum = len(self.ranks)
        self.parts: list[tuple[int, int]] = []  # of each sum, from first_sum on
        self.sums: dict[
            tuple[int, int], int
        ] = {}  # by parts, the smaller number first; those of an accumulation are negative
        # By what was rounded, and nothing, or -1 - the rank that did it.
        self.rounded: dict[tuple[int, int], int] = {}
        self.is_rounded: set[int] = set()

    def inputs(self, rank: int) -> range:
        """Return the symbols of a rank's input chunks."""
        return range(1 + rank * self.chunks, 1 + (rank + 1) * self.chunks)

    def add(self, left: int, right: int, continues: bool = False) -> int:
        """Return the symbol of a sum; the caller has checked that the sum is valid.

        ``continues``: ``left`` is a sum that was not rounded yet.
        """
        parts = (left, right) if left < right else (right, left)
        key = (-left, right) if continues else parts
        symbol = self.sums.get(key)
        if symbol is None:
            symbol = self.sums[key] = len(self.ranks)
            self.ranks.append(self.ranks[left] | self.ranks[right])
            self.origin.append(self.origin[left])
            self.parts.append(parts)
        return symbol

    def round(self, symbol: int, by: int | None = None) -> int:
        """Return the symbol of a rounded number; a number that is already rounded stays the same.

        ``by``: the rank that rounds, where each rank rounds differently.
        """
        if symbol in self.is_rounded:
            return symbol
        parts = (symbol, NOTHING if by is None else -1 - by)
        found = self.rounded.get(parts)
        if found is None:
            found = self.rounded[parts] = len(self.ranks)
            self.is_rounded.add(found)
            self.ranks.append(self.ranks[symbol])
            self.origin.append(self.origin[symbol])
            self.parts.append(parts)
        return found

    def roundings(self) -> list[int]:
        """Return the number of roundings in the expression of each symbol."""
        counts = [0] * self.first_sum
        for left, right in self.parts:  # parts are older than what is made of them
            counts.append(counts[left] + (1 if right <= NOTHING else counts[right]))
        return counts

    def value(self, symbol: int) -> Value:
        """Return the meaning of a symbol, without the order of addition."""
        return Value(self.origin[symbol], self.ranks[symbol])

    def expression(self, symbol: int, longest: int = 100_000) -> str:
        """Write the sum with all its brackets: ``(a0+a1)+a2``, where a2 is chunk a of rank 2 (notation.py)."""
        pieces: list[str] = []
        stack: list[int | str] = [symbol]
        length = 0
        while stack:  # not recursive: a chain of a thousand ranks is a thousand brackets deep
            top = stack.pop()
            if isinstance(top, str) or top < self.first_sum:
                text = top if isinstance(top, str) else self._leaf(top)
                pieces.append(text)
                length += len(text)
                if length > longest:
                    return "".join(pieces) + "..."
                continue
            left, right = self.parts[top - self.first_sum]
            outer = top == symbol
            if right <= NOTHING:
                name = "R" if right == NOTHING else f"R{-1 - right}"
                stack += [left, name] if left >= self.first_sum else [")", left, f"{name}("]
                continue
            # The part that begins with the lower rank goes first: it reads more easily.
            if self._lowest(right) < self._lowest(left):
                left, right = right, left
            stack += [right, "+", left] if outer else [")", right, "+", left, "("]
        return "".join(pieces)

    def _lowest(self, symbol: int) -> int:
        ranks = self.ranks[symbol]
        return ranks & -ranks

    def _leaf(self, symbol: int) -> str:
        if symbol == NOTHING:
            return "nothing"
        return part_name(self.origin[symbol], self.ranks[symbol].bit_length() - 1)


def ranks_in(bits: int) -> list[int]:
    """Return the ranks in a bit set."""
    return [rank for rank in range(bits.bit_length()) if bits >> rank & 1]


def listing(ranks: list[int], longest: int = 16) -> Message:
    """Write rank numbers as a list, the first few of many."""
    return listed(map(str, ranks), longest)


def describe(value: Value) -> Message:
    """Describe the content of a slot."""
    if not value.ranks:
        return messages.NOTHING()
    ranks = ranks_in(value.ranks)
    if len(ranks) == 1:
        return messages.CHUNK_OF_RANK(name=part_name(value.origin, ranks[0]), chunk=value.origin, rank=ranks[0])
    name = abbreviated(value.origin, ranks)
    return messages.CHUNK_OF_RANKS(name=name, chunk=value.origin, count=len(ranks), ranks=listing(ranks))
