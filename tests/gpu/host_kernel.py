"""The interpreter kernel, compiled for the host: one thread per block, real flags in ordinary memory."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from unisono.gpu.nvrtc import KERNEL, kernel_macros

CACHE = Path(tempfile.gettempdir()) / f"unisono-host-kernels-{os.getuid()}"
FLAGS = ("-std=c++20", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-fPIC", "-shared", "-DUNISONO_HOST")
COMPILER = shutil.which("g++")


def library_path(
    dtype: str = "float32", reduction: str | None = "sum", wire: str | None = None, most: int = 16
) -> Path:
    """Return a shared object with the kernel for a type, reduction and wire format; build it if there is none."""
    macros = kernel_macros(dtype, reduction, wire, most)
    return built(KERNEL / "interpreter.cu", "-O2", *(f"-D{macro}" for macro in macros))


def built(source: Path, *options: str) -> Path:
    """Return a source compiled into a shared object, which is kept until a source of the kernel changes."""
    texts = b"".join(path.read_bytes() for path in (source, *sorted(KERNEL.glob("*.cu*"))))
    found = CACHE / f"{source.stem}-{hashlib.sha256(texts + repr((FLAGS, options)).encode()).hexdigest()[:24]}.so"
    if not found.exists():
        assert COMPILER is not None, "g++ is needed to build the kernel for the host"
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            part = Path(folder) / "kernel.so"
            command = [COMPILER, *FLAGS, *options, f"-I{KERNEL}", "-x", "c++", str(source), "-o", str(part)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            part.rename(found)
    return found


class Peer(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("state", "input", "output", "fingerprint", "scratch")]


class Mailbox(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint32) for name in ("fault", "peer", "step", "pass_", "started", "completed", "kind", "pad")
    ]


class State(ctypes.Structure):
    _fields_ = [("abort", ctypes.c_uint32), ("fault_claimed", ctypes.c_uint32), ("abort_in_host", ctypes.c_uint64),
                ("calls", ctypes.c_uint32), ("pad", ctypes.c_uint32 * 27)]  # fmt: skip


@dataclass(frozen=True)
class Structures:
    """The structures whose length depends on the largest number of ranks."""

    launch: type[ctypes.Structure]
    record: type[ctypes.Structure]


@cache
def structures(most: int) -> Structures:
    class Launch(ctypes.Structure):
        _fields_ = [
            *[
                (name, ctypes.c_uint64)
                for name in ("program", "state", "mailbox", "input", "output", "scratch", "timeout_ns")
            ],
            *[
                (name, ctypes.c_uint32)
                for name in ("rank", "size", "record", "mode", "first_step", "steps", "pass_", "parity")
            ],
            ("peers", Peer * most),
        ]

    class Record(ctypes.Structure):
        _fields_ = [
            ("entry", ctypes.c_uint64 * 3 * most * 2),
            *[(name, ctypes.c_uint32 * most) for name in ("signal", "calls", "sent", "received")],
        ]

    return Structures(Launch, Record)


class HostKernel:
    """A compiled kernel; ``run`` executes all blocks of one launch in the calling thread."""

    def __init__(
        self, dtype: str = "float32", reduction: str | None = "sum", wire: str | None = None, most: int = 16
    ) -> None:
        self.most = most
        library = ctypes.CDLL(str(library_path(dtype, reduction, wire, most)))
        self._run = library.unisono_host_run  # ctypes releases the lock of the interpreter, so ranks run in parallel
        self._run.argtypes = (ctypes.c_void_p, ctypes.c_uint)
        self._run.restype = None

    def run(self, launch: ctypes.Structure, blocks: int) -> None:
        self._run(ctypes.byref(launch), blocks)


# -- programs, packed by hand --

INPUT, OUTPUT, SCRATCH = range(3)
REDUCE, DIVIDE, ROUND, APART = 1, 2, 4, 8
ENCODED = 1


@dataclass(frozen=True)
class Ref:
    rank: int
    buffer: int
    offset: int = 0
    flags: int = 0


@dataclass(frozen=True)
class Move:
    sources: tuple[Ref, ...]
    destinations: tuple[Ref, ...]
    length: int
    flags: int = 0


@dataclass(frozen=True)
class Step:
    waits: tuple[tuple[int, int], ...] = ()  # (peer, count)
    moves: tuple[Move, ...] = ()
    signals: tuple[tuple[int, int], ...] = ()


def _two_words(number: int) -> list[int]:
    return [number & 0xFFFFFFFF, number >> 32]


def packed(rank: int, size: int, steps: list[Step], segment: int = 1 << 40, passes: int = 1) -> np.ndarray:
    """Return the words of a program; its contacts are all other ranks."""
    body: list[int] = []
    sent, received = [0] * size, [0] * size
    for step in steps:
        words: list[int] = [peer << 16 | count for peer, count in step.waits]
        for move in step.moves:
            words += [len(move.sources) | len(move.destinations) << 8 | move.flags << 16, 0, *_two_words(move.length)]
            words += [0, 0]
            for ref in (*move.sources, *move.destinations):
                words += [ref.rank | ref.buffer << 16 | ref.flags << 24, 0, *_two_words(ref.offset)]
        words += [peer << 16 | count for peer, count in step.signals]
        body += [len(step.waits), len(step.moves), len(step.signals), len(words) + 4, *words]
        for peer, count in step.signals:
            sent[peer] = count
        for peer, count in step.waits:
            received[peer] = count
    trailer = [count for pair in zip(sent, received, strict=True) for count in pair]
    total = 8 + len(body) + len(trailer)
    contacts = ((1 << size) - 1) & ~(1 << rank)
    header = [total, len(steps), passes, 0, *_two_words(segment), *_two_words(contacts)]
    return np.array(header + body + trailer, np.uint32)
