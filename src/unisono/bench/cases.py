"""What is measured: a collective, bytes, a type, a reduction."""

from __future__ import annotations

import re
from dataclasses import dataclass

from unisono.collectives import Collective
from unisono.errors import UsageError
from unisono.reductions import REDUCTIONS

# What every contender knows, or says that it does not.
ITEM_BYTES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int32": 4, "int64": 8}
OPS = ("sum", "prod", "max", "min", "avg")
UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
LARGEST_BYTES = 1 << 40
AMOUNT = re.compile(r"([0-9]{1,13})\s*([KMG]iB|B|)")


@dataclass(frozen=True)
class Case:
    """A collective on ``count`` elements.

    The count is that of the *vector*, the larger one of what a rank gives and what it gets: the whole array for
    all_reduce, broadcast and reduce; all blocks together for all_gather, reduce_scatter, all_to_all, gather and
    scatter. That is the size that nccl-tests prints.
    """

    collective: Collective
    count: int
    dtype: str
    op: str = "sum"
    algorithm: str | None = None  # of Unisono; the others choose for themselves

    @property
    def bytes(self) -> int:
        """Return the bytes of the vector."""
        return self.count * ITEM_BYTES[self.dtype]

    def as_command(self) -> dict[str, object]:
        """Return what the ranks are told."""
        return {
            "collective": self.collective.name, "count": self.count, "dtype": self.dtype, "op": self.op,
            "torch_op": REDUCTIONS[self.op].torch, "mpi_op": REDUCTIONS[self.op].mpi, "algorithm": self.algorithm,
        }  # fmt: skip


def make_cases(
    collective: Collective, sizes_bytes: list[int], dtype: str, op: str, size: int, algorithm: str | None = None
) -> list[Case]:
    """Return a case for each size, in whole elements, and in equal blocks where every rank has one.

    Sizes that come to the same number of elements are measured once.
    """
    if not collective.carries_data:
        raise UsageError(f"{collective} moves no data, there is nothing to measure per byte")
    if dtype not in ITEM_BYTES:
        raise UsageError(f"there is no type {dtype!r}; expected one of {', '.join(ITEM_BYTES)}")
    if op not in OPS:
        raise UsageError(f"there is no reduction {op!r}; expected one of {', '.join(OPS)}")
    if op == "avg" and dtype.startswith("int"):
        raise UsageError(f"avg of {dtype} is not defined; expected a floating-point type")
    unit = size if collective.blocked else 1
    counts = [max(1, each // (ITEM_BYTES[dtype] * unit)) * unit for each in sizes_bytes]
    return [Case(collective, count, dtype, op, algorithm) for count in dict.fromkeys(counts)]


def parse_sizes(text: str) -> list[int]:
    """Read ``1MiB``, ``1KiB,1MiB,64MiB`` or ``8:256MiB`` (from, doubling, up to); return bytes in rising order."""
    found: set[int] = set()
    for part in text.split(","):
        first, colon, last = part.partition(":")
        smallest = parse_bytes(first, text)
        largest = parse_bytes(last, text) if colon else smallest
        if smallest > largest:
            raise UsageError(f"--bytes {text}: {first} is more than {last}; expected from:to, such as 8:256MiB")
        while smallest <= largest:
            found.add(smallest)
            smallest *= 2
    return sorted(found)


def parse_bytes(text: str, whole: str | None = None) -> int:
    """Read ``8``, ``1KiB``, ``64MiB`` or ``2GiB``."""
    match = AMOUNT.fullmatch(text.strip())
    amount = int(match[1]) * UNITS[match[2]] if match else 0
    if not 1 <= amount <= LARGEST_BYTES:
        raise UsageError(
            f"--bytes {whole or text}: {text!r} is not a number of bytes; expected e.g. 8, 1KiB, 64MiB, "
            "several with commas, or a range such as 8:256MiB"
        )
    return amount


def format_bytes(amount: int) -> str:
    """Write 1048576 as 1 MiB; what is no whole number of a unit stays in bytes."""
    for unit in ("GiB", "MiB", "KiB"):
        if amount % UNITS[unit] == 0:
            return f"{amount // UNITS[unit]} {unit}"
    return f"{amount} B"
