"""Kills of ranks that share a GPU: the survivors raise PeerLost in time, and nothing is left behind.

A pool of workers, each with CUDA started, plays many short jobs: in every round they connect as the ranks of a new
job and run collectives, until one of them is killed at a random time. The survivors must raise PeerLost that names
its rank, their GPU must still work, and the memory of the GPU must return to what it was. A spare worker takes the
place of the victim; so a round costs no start of CUDA.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any

import torch

import gpu_watch
from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.job_config import STAGING_BYTES
from unisono.bootstrap.membership import connect_link
from unisono.bootstrap.rendezvous_address import AbstractAddress
from unisono.comm.communicator import Communicator
from unisono.comm.machine import load_tuning
from unisono.errors import PeerLost
from unisono.launch.mps import mps_variables
from unisono.launch.unix_process_group import die_with_parent

LENGTHS = (256, 65_536, 4 << 20)  # elements
DETECTION_S = 2.0
ROUND_S = 30.0  # a worker that has not answered by then hangs
START_S = 60.0
SETTLE_S = 3.0  # within which the memory of a killed rank must be free
# Loaded kernels, and memory that torch keeps, differ from worker to worker. A leak would add up over the rounds.
TOLERANCE_BYTES = 256 << 20


class Worker:
    """A process with CUDA started, and the pipe to it."""

    def __init__(self, context: Any, device: str, variables: dict[str, str]) -> None:
        self.pipe, end = context.Pipe()
        self.process = context.Process(target=work, args=(end, device, variables, os.getpid()), daemon=True)
        self.process.start()
        end.close()

    @property
    def pid(self) -> int:
        """Return the number of the process."""
        pid: int = self.process.pid
        return pid

    def ask(self, **task: Any) -> None:
        """Send a task."""
        self.pipe.send(task)

    def answer(self, limit_s: float) -> Any:
        """Return the next answer; None if there is none in time."""
        with contextlib.suppress(EOFError, ConnectionResetError):
            if self.pipe.poll(limit_s):
                return self.pipe.recv()
        return None

    def kill(self) -> float:
        """Kill the process; return the time."""
        now_s = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        return now_s

    def close(self) -> None:
        """End the process, and wait for it."""
        with contextlib.suppress(OSError):
            self.pipe.send({"do": "end"})
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()


def work(pipe: Any, device: str, variables: dict[str, str], parent: int) -> None:
    """Serve tasks: the program of a worker."""
    die_with_parent(parent)
    os.environ.update(variables)
    torch.set_num_threads(1)
    torch.ones(1, device=device).sum().item()  # starts CUDA
    pipe.send("started")
    while (task := pipe.recv())["do"] != "end":
        if task["do"] == "memory":
            pipe.send(used_memory(device))
        else:
            pipe.send(play_round(pipe, device, task))


def used_memory(device: str) -> int:
    """Return the bytes in use on the GPU, by all processes, after this one has released what it can."""
    if device == "cpu":
        return 0
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    return int(total - free)


def play_round(pipe: Any, device: str, task: dict[str, Any]) -> dict[str, Any]:
    """Connect, and call until an error: return which one, when, and whether the GPU still works."""
    rank, size = task["rank"], task["size"]
    identity = RankIdentity(rank, size, rank, size, "alone", "")
    address = AbstractAddress(task["job"], task["job"])  # a name and a secret, as spawn() passes them to its ranks
    result: dict[str, Any] = {}
    tensor: Any = None
    try:
        with Communicator(connect_link(20.0, 20.0, STAGING_BYTES, load_tuning, identity, address)) as comm:
            tensor = torch.zeros(task["length"], device=device)
            comm.all_reduce(tensor)
            if device == "cuda":
                torch.cuda.synchronize()
            pipe.send("ready")
            while task["sleeps"]:  # the victim of this round does not call: the others wait for it inside a call
                time.sleep(1)
            while True:
                comm.all_reduce(tensor)
                if device == "cuda" and task["synchronizes"]:
                    torch.cuda.synchronize()
    except BaseException as error:
        result = {"error": type(error).__name__, "text": str(error), "at_s": time.monotonic()}
        result["lost"] = getattr(error, "rank", None) if isinstance(error, PeerLost) else None
        if not isinstance(error, PeerLost):
            result["story"] = traceback.format_exc()
    tensor = None
    if device == "cuda":
        torch.cuda.empty_cache()
    try:
        result["works"] = torch.ones(1000, device=device).sum().item() == 1000
    except Exception as error:
        result["works"], result["text"] = False, f"{result.get('text')}; then {type(error).__name__}: {error}"
    return result


def campaign(device: str, size: int, count: int, seed: int, limit_s: float, mps: bool) -> Iterator[dict[str, Any]]:
    """Run rounds; yield the result of each: ``problem`` is None or a text. The last ones are about what is left."""
    before = _memory_of_all(device)
    with mps_variables(wanted=mps) as variables:
        yield from _rounds(device, size, count, random.Random(seed), limit_s, variables)
    ends_s = time.monotonic() + SETTLE_S
    while (excess := _memory_of_all(device) - before) > 0 and time.monotonic() < ends_s:
        time.sleep(0.2)
    text = f"{excess} MiB of the GPU are not free after the last rank has ended"
    yield {"number": -1, "problem": text if excess > 0 else None}


def _rounds(
    device: str, size: int, count: int, source: random.Random, limit_s: float, variables: dict[str, str]
) -> Iterator[dict[str, Any]]:
    context = multiprocessing.get_context("fork")
    ends_s = time.monotonic() + limit_s
    workers: list[Worker] = []
    every_pid: list[int] = []

    def fill() -> None:
        while len(workers) < size + 2:  # two spares, which start while a round runs
            workers.append(Worker(context, device, variables))
            every_pid.append(workers[-1].pid)

    started: set[int] = set()

    def wait_for_start(chosen: list[Worker]) -> str | None:
        for worker in chosen:
            if worker.pid not in started:
                if worker.answer(START_S) != "started":
                    return "a worker did not start CUDA"
                started.add(worker.pid)
        return None

    try:
        fill()
        baseline: int | None = None
        for number in range(count):
            if time.monotonic() > ends_s:
                break
            problem = wait_for_start(workers)
            if problem:
                yield {"number": number, "problem": problem}
                break
            before = _memory(workers[0])
            baseline = before if baseline is None else baseline
            result = _round(workers[:size], number, source)
            dead = workers[result.pop("victim")]
            dead.process.join(5)
            workers.remove(dead)
            dead.pipe.close()
            hanging = [worker for worker in workers if worker.pid in result["hanging"]]
            if hanging:
                print(gpu_watch.diagnosis(only=[worker.pid for worker in hanging]), file=sys.stderr, flush=True)
            for worker in hanging:
                worker.kill()
                worker.process.join(5)
                workers.remove(worker)
            fill()
            if result["problem"] is None and not hanging:
                wait_for_start(workers)
                result["problem"] = _settled(workers[0], baseline)
            yield result
    finally:
        for worker in workers:
            worker.close()
    left = [pid for pid in every_pid if os.path.exists(f"/proc/{pid}/exe")]
    yield {"number": -1, "problem": f"processes are left: {left}" if left else None}


def _memory_of_all(device: str) -> int:
    """Return the MiB in use on all GPUs, without starting CUDA in this process."""
    if device == "cpu":
        return 0
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout
    return sum(int(line) for line in found.split() if line.isdecimal())


def _memory(worker: Worker) -> int:
    worker.ask(do="memory")
    answer = worker.answer(ROUND_S)
    return answer if isinstance(answer, int) else 0


def _settled(worker: Worker, baseline: int) -> str | None:
    """Wait until the memory in use is that of the first round; return a problem if it is not."""
    ends_s = time.monotonic() + SETTLE_S
    while (excess := _memory(worker) - baseline) > TOLERANCE_BYTES:
        if time.monotonic() > ends_s:
            return f"{excess >> 20} MiB of the GPU are not free {SETTLE_S:.0f} s after the kill"
        time.sleep(0.1)
    return None


def _round(workers: list[Worker], number: int, source: random.Random) -> dict[str, Any]:
    """Play one round; return its victim, the longest time to the error, and the problem or None."""
    victim, sleeps = source.randrange(len(workers)), source.random() < 0.3
    length, synchronizes = source.choice(LENGTHS), source.random() < 0.7
    delay_s = source.random() * 0.2
    job = f"{os.getpid():08x}{number:08x}{source.getrandbits(64):016x}"
    for rank, worker in enumerate(workers):
        worker.ask(
            do="round", rank=rank, size=len(workers), job=job, length=length, sleeps=sleeps and rank == victim,
            synchronizes=synchronizes,
        )  # fmt: skip
    found: dict[str, Any] = {"number": number, "victim": victim, "problem": None, "sleeps": sleeps, "length": length}
    for rank, worker in enumerate(workers):
        answer = worker.answer(ROUND_S)
        if answer != "ready":
            found["problem"] = found["problem"] or f"rank {rank} was not ready: {answer}"
    time.sleep(delay_s)
    killed_s = workers[victim].kill()
    slowest_s, hanging = 0.0, []
    for rank, worker in enumerate(workers):
        if rank == victim:
            continue
        answer = worker.answer(ROUND_S)
        if not isinstance(answer, dict):
            hanging.append(worker.pid)
            found["problem"] = (
                found["problem"] or f"rank {rank} did not notice within {ROUND_S:.0f} s that rank {victim} was killed"
            )
            continue
        after_s = answer["at_s"] - killed_s
        slowest_s = max(slowest_s, after_s)
        if answer["error"] != "PeerLost" or answer["lost"] != victim:
            found["problem"] = f"rank {rank}: {answer['error']}: {answer['text']} (killed: {victim})"
            print(answer.get("story", ""), file=sys.stderr)
        elif not answer["works"]:
            found["problem"] = f"rank {rank}: the GPU does not work afterwards: {answer['text']}"
        elif after_s > DETECTION_S:
            found["problem"] = f"rank {rank} noticed after {after_s:.2f} s"
    return {**found, "after_s": slowest_s, "hanging": hanging}
