"""Random calls on CUDA tensors whose results equal those of the CPU engine, bit for bit.

Every rank draws the same calls from a seed: a group of ranks, a collective, an algorithm, a type, a reduction, a
root, a length or unequal lengths, and a position in memory that need not be aligned. Each call runs on CPU tensors
and on CUDA tensors. NaNs are equal to each other: a GPU makes one NaN, a CPU may make others.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
import time
import zlib
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gpu_jobs import Rows, select_device
from unisono.algorithms.catalogue import algorithms_serving
from unisono.collectives import COLLECTIVES, Collective, find
from unisono.comm.communicator import Communicator
from unisono.reductions import ELEMENT_BYTES, FLOATING, INTEGER, REDUCTIONS, kind_of

LENGTHS = (0, 1, 2, 7, 64, 1000, 4099, 40_000, 300_001)
GROUPS = {
    "all": lambda rank, size: 0,
    "parity": lambda rank, size: rank % 2,
    "halves": lambda rank, size: 2 * rank // size,
}
WITH_DATA = [collective for collective in COLLECTIVES if collective.carries_data]
SHOWN = 10  # failures that are printed


def pairs_of(seed: int, kernels: int) -> list[tuple[str, str]]:
    """Return types with a reduction each. A pair needs a kernel, which takes time to compile: only some are drawn."""
    every = [
        (dtype, op)
        for dtype in ELEMENT_BYTES
        for op, reduction in REDUCTIONS.items()
        if kind_of(dtype) in reduction.kinds
    ]
    drawn = random.Random(seed).sample(every, min(kernels, len(every)) - 1)
    return [("float32", "sum"), *drawn]


def draw(source: random.Random, size: int, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Return a random call on ``size`` ranks."""
    collective = source.choice(WITH_DATA)
    dtype, op = source.choice(pairs)
    call: dict[str, Any] = {
        "collective": collective.name, "algorithm": source.choice(algorithms_serving(collective, size)).name,
        "dtype": dtype, "op": op if collective.reduces else None,
        "root": source.randrange(size) if collective.rooted else None, "length": source.choice(LENGTHS),
        "offset": source.choice((0, 0, 1, 3)), "async_op": source.random() < 0.3, "stream": source.random() < 0.2,
    }  # fmt: skip
    if collective.name in SIZES_OF and source.random() < 0.3:
        most = source.choice((1, 50, 5000))
        rows = size if collective.name == "all_to_all" else 1
        if collective.name == "all_to_all":
            call["algorithm"] = None  # some need equal lengths; it adds nothing up, so that any gives the same bits
        call["sizes"] = [[source.randrange(most + 1) for _ in range(size)] for _ in range(rows)]
    return call


# The parameters that state unequal lengths.
SIZES_OF = {
    "all_gather": ("out_sizes",), "gather": ("out_sizes",), "reduce_scatter": ("in_sizes",), "scatter": ("in_sizes",),
    "all_to_all": ("in_sizes", "out_sizes"),
}  # fmt: skip


def values(count: int, dtype: str, seed: list[int]) -> Tensor:
    """Return random values of a type, special ones included."""
    source = np.random.default_rng(seed)
    kind = getattr(torch, dtype)
    if count == 0:
        return torch.empty(0, dtype=kind)
    if dtype == "bool":
        return torch.from_numpy(source.integers(0, 2, count).astype(bool))
    if kind_of(dtype) == INTEGER:
        return torch.from_numpy(source.integers(0, 256, count * ELEMENT_BYTES[dtype], dtype=np.uint8)).view(kind)
    found = source.standard_normal(count) * 10.0 ** source.integers(-3, 3, count)
    special = source.random(count) < 0.03
    found[special] = source.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30], int(special.sum()))
    if kind_of(dtype) == FLOATING:
        return torch.from_numpy(found).to(kind)
    return torch.complex(torch.from_numpy(found), torch.from_numpy(source.standard_normal(count))).to(kind)


def lengths_of(call: dict[str, Any], rank: int, size: int) -> tuple[int, int, dict[str, list[int]]]:
    """Return the elements of the input and of the output of a rank, and the arguments that state unequal lengths."""
    name, length = call["collective"], call["length"]
    given = got = length
    if "sizes" in call:
        rows = call["sizes"]
        mine = rows[rank] if name == "all_to_all" else rows[0]
        whole, own = sum(mine), mine[rank]
        if name == "all_to_all":
            received = [row[rank] for row in rows]
            return whole, sum(received), {"in_sizes": mine, "out_sizes": received}
        (parameter,) = SIZES_OF[name]
        return (own, whole, {parameter: mine}) if parameter == "out_sizes" else (whole, own, {parameter: mine})
    if name in ("all_gather", "gather"):
        got = length * size
    elif name in ("reduce_scatter", "scatter"):
        given = length * size
    elif name == "all_to_all":
        given = got = length * size
    return given, got, {}


class Caller:
    """Makes calls on a device, and returns what they have written."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.side = torch.cuda.Stream() if device == "cuda" else None

    def placed(self, data: Tensor, offset: int) -> Tensor:
        """Return a copy on the device that begins ``offset`` elements after an allocation."""
        room = torch.zeros(data.numel() + offset, dtype=data.dtype, device=self.device)
        room[offset:].copy_(data)
        return room[offset:]

    def run(self, comm: Communicator, call: dict[str, Any], data: Tensor, got: int) -> Tensor | None:
        """Make a call; return the output of this rank on the CPU, or None if it has none."""
        collective: Collective = find(call["collective"])
        at_root = not collective.rooted or comm.rank == call["root"]
        how: dict[str, Any] = {"algorithm": call["algorithm"], **call["unequal"]}
        if call["op"]:
            how["op"] = call["op"]
        if collective.rooted:
            how["root"] = call["root"]
        given = self.placed(data, call["offset"])
        out = self.placed(torch.zeros(got, dtype=data.dtype), call["offset"])
        if collective.single_array:
            arrays, result = [given], given
        elif collective.name == "gather":
            arrays, result = [out if at_root else None, given], out
        elif collective.name == "scatter":
            arrays, result = [out, given if at_root else None], out
        else:
            arrays, result = [out, given], out
        on_side = self.side is not None and call["stream"]
        if on_side:
            self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side) if on_side else contextlib.nullcontext():
            work = getattr(comm, collective.name)(*arrays, async_op=call["async_op"], **how)
            if work is not None:
                work.wait()
        if on_side:
            torch.cuda.current_stream().wait_stream(self.side)
        has_result = collective.name not in ("reduce", "gather") or at_root
        return result.cpu() if has_result else None


def differences(found: Tensor, expected: Tensor) -> int:
    """Return the number of elements whose bits differ; two NaNs do not."""
    if found.numel() == 0:
        return 0
    width = found.element_size()
    bits = [tensor.contiguous().view(torch.uint8).reshape(-1, width) for tensor in (found, expected)]
    differ = (bits[0] != bits[1]).any(1)
    if found.dtype.is_floating_point or found.dtype.is_complex:
        # The parts of a complex number are compared as a whole.
        wide = torch.complex128 if found.dtype.is_complex else torch.float64
        differ &= ~(found.to(wide).isnan() & expected.to(wide).isnan())
    return int(differ.sum())


def compare(comm: Communicator, rows_file: str, settings: dict[str, Any]) -> None:
    """Make random calls on both devices, and compare the results."""
    select_device(comm, settings["device"])
    rows = Rows(rows_file, comm.rank, mode=settings["mode"], ranks=comm.size)
    seed = settings["seed"]
    pairs = pairs_of(seed, settings["kernels"])
    if comm.rank == 0:
        print(f"seed {seed}; kernels for {', '.join(f'{dtype} {op}' for dtype, op in pairs)}", flush=True)
    groups = {name: comm.split(color(comm.rank, comm.size)) for name, color in GROUPS.items()}
    control = comm.duplicate()
    reference, measured = Caller("cpu"), Caller(settings["device"])
    ends_s = time.monotonic() + settings["limit_s"]
    failures = done = 0
    for number in range(settings["count"]):
        if number % 20 == 0 and _any(control, time.monotonic() > ends_s):
            break
        shared = random.Random(f"{seed} {number}")
        name = shared.choice(list(GROUPS))
        group = groups[name]
        assert group is not None
        color = GROUPS[name](comm.rank, comm.size)
        call = draw(random.Random(f"{seed} {number} {color}"), group.size, pairs)
        given, got, call["unequal"] = lengths_of(call, group.rank, group.size)
        data = values(given, call["dtype"], [seed, number, comm.rank])
        expected = reference.run(group, call, data, got)
        found = measured.run(group, call, data, got)
        wrong = 0 if expected is None or found is None else differences(found, expected)
        done += 1
        if wrong:
            failures += 1
            if failures <= SHOWN:
                text = {key: value for key, value in call.items() if key != "unequal"}
                print(
                    f"FAILED: seed {seed}, call {number}, rank {comm.rank} (group {name}, rank {group.rank}): "
                    f"{wrong} of {expected.numel()} elements differ: {json.dumps(text)}",
                    file=sys.stderr, flush=True,
                )  # fmt: skip
    total = np.array([failures])
    control.all_reduce(total)
    rows.add(
        name="random calls", done=done, wanted=settings["count"], failures=int(total[0]), seed=seed,
        note=f"{len(pairs)} pairs of type and reduction; bits of the CPU engine",
        digest=zlib.crc32(repr(pairs).encode()),
    )  # fmt: skip
    if total[0]:
        raise SystemExit(f"{total[0]} results differ")


def _any(control: Communicator, value: bool) -> bool:
    flags = np.array([value], np.int32)
    control.all_reduce(flags, op="max")
    return bool(flags[0])
