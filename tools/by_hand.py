"""Collectives that are written by hand for one GPU (gpu_by_hand.cu), compiled with nvcc and called by ctypes."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np

from unisono.comm.communicator import Communicator

SOURCE = Path(__file__).with_name("gpu_by_hand.cu")
IN_PLACE = ("all_reduce",)  # as the communicator's method; all_gather and reduce_scatter have an input and an output
COMPILE_S = 120
LEAST_BLOCK_BYTES = 512 * 16  # one vector for each thread of a block


class NotByHand(Exception):
    """The kernels that are written by hand cannot be used here."""


def compile_library(folder: Path, capability: tuple[int, int]) -> Path:
    """Compile the kernels for a compute capability; return the library."""
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if nvcc is None:
        raise NotByHand("nvcc, which compiles tools/gpu_by_hand.cu, is not on the PATH")
    library = folder / "libbyhand.so"
    target = f"-arch=sm_{capability[0]}{capability[1]}"
    command = [nvcc, "-O3", "-std=c++17", target, "-shared", "-Xcompiler", "-fPIC", "-o", str(library), str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_S)
    if done.returncode:
        raise NotByHand(f"nvcc failed:\n{done.stdout}{done.stderr}")
    return library


class ByHand:
    """The kernels of one rank, connected to those of the others."""

    def __init__(self, library: Path, comm: Communicator, most_bytes: int) -> None:
        self.comm = comm
        self.calls = ctypes.CDLL(os.fspath(library))
        for name in ("open", "connect", "fill", "read", "broken", "run"):
            getattr(self.calls, f"by_hand_{name}").restype = ctypes.c_char_p
        handle = np.zeros(self.calls.by_hand_handle_bytes(), np.uint8)
        self._check(
            self.calls.by_hand_open(
                comm.rank, comm.size, ctypes.c_size_t(most_bytes), ctypes.c_void_p(_address(handle))
            )
        )
        handles = np.zeros(handle.size * comm.size, np.uint8)
        comm.all_gather(handles, handle)
        self._check(self.calls.by_hand_connect(ctypes.c_void_p(_address(handles))))
        comm.barrier()

    def run(self, collective: str, nbytes: int, blocks: int, stream: int) -> None:
        """Enqueue a collective."""
        self._check(
            self.calls.by_hand_run(
                collective.encode(), collective in IN_PLACE, ctypes.c_size_t(nbytes), blocks, ctypes.c_void_p(stream)
            )
        )

    def wrong(self, collective: str, nbytes: int, blocks: int, stream: int) -> bool:
        """Run a collective on rank + 1 in every element; return whether the last element is wrong."""
        size, rank = self.comm.size, self.comm.rank
        self._check(self.calls.by_hand_fill(ctypes.c_float(rank + 1), ctypes.c_size_t(nbytes)))
        self.comm.barrier()
        self.run(collective, nbytes, blocks, stream)
        found = ctypes.c_float()
        last = (nbytes // size if collective == "reduce_scatter" else nbytes) - 4
        self._check(self.calls.by_hand_read(collective in IN_PLACE, ctypes.c_size_t(last), ctypes.byref(found)))
        self._check(self.calls.by_hand_fill(ctypes.c_float(0), ctypes.c_size_t(nbytes)))
        broken = ctypes.c_uint()
        self._check(self.calls.by_hand_broken(ctypes.byref(broken)))
        expected = size if collective == "all_gather" else size * (size + 1) // 2
        self.comm.barrier()
        return bool(broken.value) or found.value != expected

    def close(self) -> None:
        """Release the memory; every rank calls this."""
        self.comm.barrier()
        self.calls.by_hand_disconnect()
        self.comm.barrier()
        self.calls.by_hand_close()

    @staticmethod
    def _check(error: bytes | None) -> None:
        if error is not None:
            raise NotByHand(error.decode())


def block_counts(nbytes: int, size: int, multiprocessors: int) -> list[int]:
    """Return the numbers of thread blocks to try: as many as fit with two blocks or one on a multiprocessor."""
    needed = max(1, -(-nbytes // (LEAST_BLOCK_BYTES * size)))
    return sorted({min(needed, per * multiprocessors // size, 256) for per in (1, 2)})


def _address(array: np.ndarray) -> int:
    address: int = array.ctypes.data
    return address
