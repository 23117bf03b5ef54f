"""Write compiled programs to a file, for the tests of the engine without Python (engine/tests).

    python tools/dump_program.py FILE all_reduce/ring -n 2,3 --count 1000

A file is a sequence of *cases*: the data that every rank of a call needs and, without --no-data, the input of each
rank and its expected result, as `play` computes it. Every number has 8 bytes, in little-endian order; every text or
table is its length, then its bytes. engine/tests/cases.cpp reads the file in the same order.
"""

from __future__ import annotations

import argparse
import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unisono.algorithms import BUILT_IN, find
from unisono.algorithms.declaration import Algorithm
from unisono.bootstrap.job_config import DEPTH, STAGING_BYTES, TRANSFER_BYTES
from unisono.codecs import round_in_place
from unisono.comm.arrays import ELEMENT_BYTES
from unisono.comm.codec_agreement import codec_block_of, codec_for, rounding_mode_of
from unisono.comm.nontemporal import writes_past_caches
from unisono.comm.programs import compiled
from unisono.compiler import Lengths, lay_out_call
from unisono.player import play
from unisono.schedule import Schedule
from unisono.verifier.rounding import rounding_of


class Case(NamedTuple):
    """One call, on all of its ranks."""

    algorithm: Algorithm
    size: int
    count: int  # elements of the vector
    dtype: str = "float32"
    op: str = "sum"
    staging_bytes: int = STAGING_BYTES
    codec: str | None = None

    @property
    def root(self) -> int | None:
        """The last rank: rank 0 would hide mistakes."""
        return self.size - 1 if self.algorithm.collective.rooted else None

    @property
    def length(self) -> int:
        """The count, rounded up to equal blocks where the collective has blocks; nothing in a barrier."""
        if not self.algorithm.collective.carries_data:
            return 0
        return self.count if self.algorithm.collective.single_array else -(-self.count // self.size) * self.size


class Arrays(NamedTuple):
    """The arrays of one rank. Where ``shared``, one array is both: it begins as the input."""

    shared: bool
    source: bytes
    result: bytes  # the expected result


def number(value: int) -> bytes:
    """Return a number in the format of the file."""
    return struct.pack("<Q", value)


def blob(data: bytes) -> bytes:
    """Return a text or table in the format of the file."""
    return number(len(data)) + data


def rounded(values: np.ndarray, codec: str) -> np.ndarray:
    """Return the numbers of a sent chunk after encoding and decoding."""
    values = values.copy()
    round_in_place(values, codec)
    return values


def arrays_of(case: Case, schedule: Schedule) -> list[Arrays]:
    """Play the call on random numbers."""
    collective = case.algorithm.collective
    if not collective.carries_data:
        play(schedule)
        return [Arrays(True, b"", b"")] * case.size
    random = np.random.default_rng(case.count)
    inputs: list[np.ndarray | None] = []
    for rank in range(case.size):
        held = collective.held_before(rank, case.size, case.size, case.root or 0)
        values = random.integers(-100, 100, case.length * len(held) // case.size)
        inputs.append(values.astype(case.dtype) if held else None)
    if case.codec is None:
        outputs = play(schedule, inputs, case.op).outputs
    else:
        round_sent, last = partial(rounded, codec=case.codec), rounding_of(schedule).last
        outputs = play(schedule, inputs, case.op, round_sent=round_sent, needs_final_rounding=last).outputs
    if not collective.single_array:
        return [
            Arrays(False, *(b"" if array is None else array.tobytes() for array in pair))
            for pair in zip(inputs, outputs, strict=True)
        ]
    # Ranks without an input or a result also pass the array; without a result it stays unchanged.
    nothing = np.zeros(case.length, case.dtype)
    made = []
    for given, found in zip(inputs, outputs, strict=True):
        before = nothing if given is None else given
        made.append(Arrays(True, before.tobytes(), (before if found is None else found).tobytes()))
    return made


def pieces(case: Case, with_data: bool) -> Iterator[bytes]:
    """Yield a case in the format of the file."""
    schedule = case.algorithm.schedule(case.size, case.root)
    collective, element = case.algorithm.collective, ELEMENT_BYTES[case.dtype]
    equal = (case.length,) if collective.single_array else (case.length // case.size,) * case.size
    lengths = Lengths(equal, equal)
    text = f"{collective}({case.length} {case.dtype}, {case.size} ranks, algorithm={case.algorithm.name})"
    for value in (case.size, DEPTH, case.staging_bytes, TRANSFER_BYTES):
        yield number(value)
    for words in (text, case.dtype, case.op if collective.reduces else "", case.codec or "none"):
        yield blob(words.encode())
    arrays = arrays_of(case, schedule) if with_data else [Arrays(True, b"", b"")] * case.size
    for rank in range(case.size):
        codec = codec_for(collective, case.codec, case.dtype)
        lowered = compiled(schedule, rank, rounding_mode_of(codec)).lowered
        tables = lowered.packed()
        for name in ("instructions", "operands", "parts", "channels"):
            yield blob(tables[name])
        for name in ("results", "rounded_last", "silent_receivers"):
            yield blob(b"".join(struct.pack("=I", value) for value in tables[name]))
        yield number(tables["largest_message"])
        numbers = lay_out_call(
            lowered,
            schedule,
            collective,
            rank,
            lengths,
            element,
            case.staging_bytes,
            codec_block=codec_block_of(codec),
        )
        yield blob(numbers.extents)
        for value in (numbers.segment_bytes, numbers.passes, numbers.work_bytes):
            yield number(value)
        held = collective.held_after(rank, case.size, case.size, case.root or 0)
        yield number(writes_past_caches(collective, case.length * len(held) // case.size * element, case.size))
        mine = arrays[rank]
        yield number(mine.shared)
        yield blob(mine.source)
        yield blob(mine.result)


def write_cases(path: Path, cases: list[Case], with_data: bool = True) -> None:
    """Write the file."""
    with path.open("wb") as file:
        for case in cases:
            file.writelines(pieces(case, with_data))


def cases_of(algorithms: list[Algorithm], sizes: list[int], counts: list[int], **more: object) -> list[Case]:
    """Return all combinations that the algorithms support."""
    return [
        Case(algorithm, size, count, **more)  # type: ignore[arg-type]
        for size in sizes for algorithm in algorithms if algorithm.can_serve(size)
        for count in (counts if algorithm.collective.carries_data else counts[:1])
    ]  # fmt: skip


def main() -> None:
    """Write the cases that the command line describes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("algorithms", nargs="+", help="such as all_reduce/ring; all: every built-in algorithm")
    parser.add_argument("-n", "--sizes", default="2", help="numbers of ranks, separated by commas")
    parser.add_argument("--count", default="1000", help="numbers of elements, separated by commas")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--op", default="sum")
    parser.add_argument("--codec")
    parser.add_argument("--staging-bytes", type=int, default=STAGING_BYTES)
    parser.add_argument("--no-data", action="store_true", help="programs and lengths only")
    args = parser.parse_args()
    algorithms = list(BUILT_IN) if args.algorithms == ["all"] else [find(name) for name in args.algorithms]
    sizes, counts = ([int(value) for value in text.split(",")] for text in (args.sizes, args.count))
    made = cases_of(
        algorithms, sizes, counts, dtype=args.dtype, op=args.op, staging_bytes=args.staging_bytes, codec=args.codec
    )
    write_cases(args.file, made, not args.no_data)
    print(f"{len(made)} cases")


if __name__ == "__main__":
    main()
