"""Ranks as threads of this process, each with the memory that a rank has on a GPU."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence

import numpy as np

from gpu.host_kernel import HostKernel, Mailbox, State, structures

ENTRY_VALUE = (1 << 48) - 1


class HostRank:
    """The memory of one rank: flags, mailbox, buffers, and the arguments of its launches."""

    def __init__(self, rank: int, size: int, most: int, blocks: int) -> None:
        self.rank, self.size, self.most = rank, size, most
        kinds = structures(most)
        self.memory = ctypes.create_string_buffer(ctypes.sizeof(State) + blocks * ctypes.sizeof(kinds.record))
        self.state = State.from_buffer(self.memory)
        self.records = (kinds.record * blocks).from_buffer(self.memory, ctypes.sizeof(State))
        self.mailbox = Mailbox()
        self.launch = kinds.launch()
        self.program = np.zeros(0, np.uint32)
        self.buffers: dict[str, np.ndarray] = {}

    def set_buffers(self, source: np.ndarray, output: np.ndarray, scratch: np.ndarray) -> None:
        self.buffers = {"input": source, "output": output, "scratch": scratch}

    def address(self, name: str) -> int:
        return self.buffers[name].ctypes.data


class HostRanks:
    """All ranks of a communicator."""

    def __init__(self, kernel: HostKernel, size: int, blocks: int) -> None:
        self.kernel, self.size, self.blocks = kernel, size, blocks
        self.ranks = [HostRank(rank, size, kernel.most, blocks) for rank in range(size)]

    def prepare(
        self, programs: Sequence[np.ndarray], fingerprints: Sequence[int] | None = None, timeout_s: float = 30.0
    ) -> None:
        """Fill in the arguments of a launch on every rank; its buffers must be set."""
        for mine, program in zip(self.ranks, programs, strict=True):
            launch = mine.launch
            mine.program = program
            launch.program = program.ctypes.data
            launch.state = ctypes.addressof(mine.state)
            launch.mailbox = ctypes.addressof(mine.mailbox)
            launch.input, launch.output, launch.scratch = (
                mine.address(name) for name in ("input", "output", "scratch")
            )
            launch.timeout_ns = int(timeout_s * 1e9)
            launch.rank, launch.size = mine.rank, self.size
            for theirs in self.ranks:
                peer = launch.peers[theirs.rank]
                peer.state, peer.scratch = ctypes.addressof(theirs.state), theirs.address("scratch")
                peer.input, peer.output = launch.input, launch.output
                peer.fingerprint = fingerprints[mine.rank] if fingerprints is not None else 0x1234_5678_9ABC

    def run(self, only: Sequence[int] | None = None) -> None:
        """Run the launches of the ranks, or of some of them, in parallel."""
        threads = [
            threading.Thread(target=self.kernel.run, args=(mine.launch, self.blocks))
            for mine in self.ranks
            if only is None or mine.rank in only
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
            assert not thread.is_alive(), "a rank hangs"
