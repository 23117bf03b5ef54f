"""The codecs of the GPU, compiled for the host: the same source, with one thread in each block."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import unisono.gpu
from unisono.codecs import Codec

KERNELS = Path(unisono.gpu.__file__).parent / "kernel"
SELECTION_BYTES = 3 * 2048 * 8 + 8 + 5 * 4 + 4  # Selection of topk.cu


@functools.cache
def host_build(source: str, *macros: str) -> ctypes.CDLL:
    """Return a file of kernels as a library of ordinary functions."""
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/kernels.so"
        options = ["-std=c++17", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
        defined = [f"-D{macro}" for macro in ("UNISONO_HOST", *macros)]
        command = ["c++", *options, *defined, "-shared", "-fPIC", "-o", library, "-x", "c++", KERNELS / source]
        subprocess.run(command, check=True)
        return ctypes.CDLL(library)


def call(function: ctypes._CFuncPtr, *arguments: np.ndarray | int | float | None, blocks: int = 3) -> None:
    """Run a kernel on arrays and numbers; whole numbers have 64 bits."""
    types = {int: ctypes.c_uint64, float: ctypes.c_float}
    given = [
        ctypes.c_void_p(None if each is None else each.ctypes.data)
        if each is None or isinstance(each, np.ndarray)
        else types[type(each)](each)
        for each in arguments
    ]
    function(*given, ctypes.c_uint32(blocks))


def coding_of(codec: Codec) -> ctypes.CDLL:
    return host_build("coding.cu", f"UNISONO_WIRE=wire_{codec.name}", f"UNISONO_STOCHASTIC={codec.stochastic:d}")


def encode(values: np.ndarray, codec: Codec, first: int = 0) -> np.ndarray:
    wire = guarded(codec.wire_bytes(values.size))
    call(coding_of(codec).encode, values, wire, values.size, codec.seed, first)
    return checked(wire, codec.wire_bytes(values.size))


def encode_rounding_source(values: np.ndarray, codec: Codec) -> tuple[np.ndarray, np.ndarray]:
    """Return the wire and the rounded array."""
    wire, source = guarded(codec.wire_bytes(values.size)), values.copy()
    call(coding_of(codec).encode_rounding_source, source, wire, values.size, codec.seed, 0)
    return checked(wire, codec.wire_bytes(values.size)), source


def round_only(values: np.ndarray, codec: Codec) -> np.ndarray:
    source = values.copy()
    call(coding_of(codec).encode_rounding_source, source, None, values.size, codec.seed, 0)
    return source


def decode(wire: np.ndarray, codec: Codec, n: int) -> np.ndarray:
    out = guarded(4 * n)
    call(coding_of(codec).decode, wire, out, n)
    return checked(out, 4 * n).view(np.float32)


def guarded(count: int) -> np.ndarray:
    """Return memory with 64 bytes after it, which `checked` compares."""
    return np.full(count + 64, 0xA5, np.uint8)


def checked(memory: np.ndarray, count: int) -> np.ndarray:
    assert (memory[count:] == 0xA5).all(), "the kernel wrote past the end"
    return memory[:count].copy()


def encode_topk(values: np.ndarray, k: int, blocks: int = 3) -> np.ndarray:
    """Return the wire of the k largest elements."""
    n, kernels = values.size, host_build("topk.cu")
    wire_bytes = 4 * (-(-n // 65536) + k)
    wire, selection, tallies = guarded(wire_bytes), np.zeros(SELECTION_BYTES, np.uint8), guarded(16 * -(-n // 8192))
    for step in range(3):
        call(kernels.count_magnitudes, values, n, k, selection, step, blocks=blocks)
    call(kernels.count_kept, values, wire, n, selection, tallies, blocks=blocks)
    call(kernels.write_kept, values, wire, n, k, selection, tallies, blocks=blocks)
    checked(tallies, 16 * -(-n // 8192))
    return checked(wire, wire_bytes)


def add_topk(pieces: np.ndarray, n: int, k: int, count: int, divisor: float = 1.0) -> tuple[np.ndarray, bool]:
    """Return the sum of the pieces, and whether all of them are valid."""
    kernels = host_build("topk.cu")
    starts, fault, out = guarded(8 * count * (-(-n // 65536) + 1)), np.zeros(1, np.uint32), guarded(4 * n)
    call(kernels.start_pieces, pieces, n, k, count, starts, fault)
    call(kernels.add_pieces, pieces, out, n, k, count, starts, divisor, fault)
    checked(starts, 8 * count * (-(-n // 65536) + 1))
    return checked(out, 4 * n).view(np.float32), not fault[0]
