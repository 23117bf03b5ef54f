"""Ranks that stay: processes with a CUDA context and a process group, which run one function after the other.

Starting a process and its CUDA context takes seconds, so the ranks of all tests with the same number of ranks are the
same processes. Where there is no GPU, ``device="cpu"`` runs the functions on a pretended one (pretend_gpu.py).
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import gpu_watch

CALL_LIMIT_S = 60.0
LIMIT_S = 120.0  # of a function, with the compilation of kernels
VARIABLES: dict[str, str] = {}  # of the environment of all ranks: those of an MPS daemon


class RankPool:
    """The ranks."""

    def __init__(self, size: int, backend: str = "unisono", device: str = "cuda", bind: bool = False) -> None:
        """Start the ranks; ``bind``: pass ``device_id`` to init_process_group."""
        self.size, self.broken = size, False
        self._folder = tempfile.TemporaryDirectory()
        context = multiprocessing.get_context("spawn")
        store = str(Path(self._folder.name) / "store")
        self.processes, self._lines = [], []
        for rank in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(theirs, rank, size, store, backend, device, bind, VARIABLES)
            )
            process.start()
            theirs.close()
            self.processes.append(process)
            self._lines.append(ours)

    def run(self, function: Callable[..., Any], *arguments: Any, limit_s: float = LIMIT_S) -> list[Any]:
        """Call a function on every rank; return the results by rank. A rank that raises fails the test."""
        answers = self.try_run(function, *arguments, limit_s=limit_s)
        texts = [f"rank {rank}: {answer[1]}" for rank, answer in enumerate(answers) if not answer[0]]
        if texts:
            self.broken = True
            raise AssertionError("\n".join(texts))
        return [answer[1] for answer in answers]

    def try_run(self, function: Callable[..., Any], *arguments: Any, limit_s: float = LIMIT_S) -> list[Any]:
        """Return (True, result) or (False, traceback) of every rank."""
        for line in self._lines:
            line.send((function, arguments))
        deadline, answers = time.monotonic() + limit_s, {}
        while len(answers) < self.size:
            waiting = [line for rank, line in enumerate(self._lines) if rank not in answers]
            ready = wait(waiting, max(0.0, deadline - time.monotonic()))
            if not ready:
                break
            for line in ready:
                rank = self._lines.index(line)
                try:
                    good, value = line.recv()
                except (EOFError, ConnectionResetError):
                    self.processes[rank].join(5)
                    good, value = False, pickle.dumps(f"ended with exit code {self.processes[rank].exitcode}")
                answers[rank] = (good, pickle.loads(value))
        if len(answers) < self.size and not self.broken:
            print(gpu_watch.diagnosis(only=[process.pid for process in self.processes]), flush=True)
            self.broken = True
        late = (False, f"has not answered after {limit_s:g} s")
        return [answers.get(rank, late) for rank in range(self.size)]

    def close(self) -> None:
        """End the ranks."""
        for line in self._lines:
            with suppress(OSError):
                line.send(None)
        for process in self.processes:
            process.join(0.1 if self.broken else 20)
            process.kill()
            process.join()
            process.close()
        for line in self._lines:
            line.close()
        self._folder.cleanup()


def _serve(
    line: Any, rank: int, size: int, store: str, backend: str, device: str, bind: bool, variables: dict[str, str]
) -> None:
    os.environ |= variables
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size)}
    torch.set_num_threads(1)
    place = torch.device("cpu")
    if device == "cuda":
        place = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(place)
    else:
        import pretend_gpu

        pretend_gpu.install()
    HERE.append(place)
    dist.init_process_group(
        backend, store=dist.FileStore(store, size), rank=rank, world_size=size,
        timeout=timedelta(seconds=CALL_LIMIT_S), device_id=place if bind else None,
    )  # fmt: skip
    while (request := line.recv()) is not None:
        function, arguments = request
        try:
            torch.manual_seed(0)
            value = function(*arguments)
            if device == "cuda":
                torch.cuda.synchronize()
            answer = (True, pickle.dumps(value))
        except BaseException:
            answer = (False, pickle.dumps(traceback.format_exc()))
        line.send(answer)
    if dist.is_initialized():
        dist.destroy_process_group()


HERE: list[torch.device] = []  # the device of this rank


def here() -> torch.device:
    """Return the device of this rank."""
    return HERE[0]
