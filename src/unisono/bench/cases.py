"""The cases that are measured: a collective, a number of bytes, a type and a reduction."""

from __future__ import annotations

import re
from dataclasses import dataclass

from unisono.algorithms.user_files import absolute
from unisono.bench import messages
from unisono.collectives import Collective
from unisono.errors import UsageError
from unisono.message import listed
from unisono.reductions import REDUCTIONS

# The types; a contender that lacks one reports it as unsupported.
ITEM_BYTES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int32": 4, "int64": 8}
OPS = ("sum", "prod", "max", "min", "avg")
UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
LARGEST_BYTES = 1 << 40
AMOUNT = re.compile(r"([0-9]{1,13})\s*([KMG]iB|[KMG]|B|)")  # 1M is 1 MiB, as in nccl-tests


@dataclass(frozen=True)
class Case:
    """A collective on ``count`` elements.

    The count is that of the *vector*, the larger of the input and the output of a rank: the whole array for
    all_reduce, broadcast and reduce; all blocks together for all_gather, reduce_scatter, all_to_all, gather and
    scatter. nccl-tests prints the same size.
    """

    collective: Collective
    count: int
    dtype: str
    op: str = "sum"
    algorithm: str | None = None  # of Unisono; other libraries select their own
    device: str = "cpu"  # or "cuda": tensors in the memory of a GPU

    @property
    def bytes(self) -> int:
        """Return the bytes of the vector."""
        return self.count * ITEM_BYTES[self.dtype]

    def as_command(self) -> dict[str, object]:
        """Return the command that the ranks are sent."""
        # The ranks have another working directory.
        algorithm = None if self.algorithm is None else absolute(self.algorithm)
        return {
            "collective": self.collective.name, "count": self.count, "dtype": self.dtype, "op": self.op,
            "torch_op": REDUCTIONS[self.op].torch, "mpi_op": REDUCTIONS[self.op].mpi, "algorithm": algorithm,
            "device": self.device,
        }  # fmt: skip


def make_cases(
    collective: Collective, sizes_bytes: list[int], dtype: str, op: str, size: int, algorithm: str | None = None,
    device: str = "cpu",
) -> list[Case]:  # fmt: skip
    """Return a case for each size, rounded to whole elements, and to equal blocks where every rank has one.

    Sizes that give the same number of elements are measured once.
    """
    if not collective.carries_data:
        raise UsageError(messages.NO_DATA(collective=collective))
    if dtype not in ITEM_BYTES:
        raise UsageError(messages.NO_TYPE(dtype=dtype, known=listed(ITEM_BYTES)))
    if op not in OPS:
        raise UsageError(messages.NO_REDUCTION(op=op, known=listed(OPS)))
    if op == "avg" and dtype.startswith("int"):
        raise UsageError(messages.NO_INTEGER_AVERAGE(dtype=dtype))
    unit = size if collective.blocked else 1
    counts = [max(1, each // (ITEM_BYTES[dtype] * unit)) * unit for each in sizes_bytes]
    return [Case(collective, count, dtype, op, algorithm, device) for count in dict.fromkeys(counts)]


def parse_sizes(text: str) -> list[int]:
    """Read ``1MiB``, ``1KiB,1MiB,64MiB`` or ``8:256MiB`` (doubling); return the numbers of bytes in rising order."""
    sizes: set[int] = set()
    for part in text.split(","):
        first, colon, last = part.partition(":")
        smallest = parse_bytes(first, text)
        largest = parse_bytes(last, text) if colon else smallest
        if smallest > largest:
            raise UsageError(messages.RANGE_BACKWARDS(text=text, first=first, last=last))
        while smallest <= largest:
            sizes.add(smallest)
            smallest *= 2
    return sorted(sizes)


def parse_bytes(text: str, whole: str | None = None) -> int:
    """Read ``8``, ``1KiB``, ``64MiB`` or ``2GiB``."""
    match = AMOUNT.fullmatch(text.strip())
    amount = int(match[1]) * UNITS[match[2]] if match else 0
    if not 1 <= amount <= LARGEST_BYTES:
        raise UsageError(messages.NOT_BYTES(whole=whole or text, text=text))
    return amount


def format_bytes(amount: int) -> str:
    """Write 1048576 as 1 MiB; an amount that is no multiple of a unit stays in bytes."""
    for unit in ("GiB", "MiB", "KiB"):
        if amount % UNITS[unit] == 0:
            return f"{amount // UNITS[unit]} {unit}"
    return f"{amount} B"
