"""Ranks of torch.distributed for the tests, without the seconds of an import of torch per rank.

The process of pytest imports torch once and forks the ranks of every test. It must only import torch, not compute:
computing starts threads, which a forked child does not have.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # optimizers import it, in seconds: once here rather than in every rank
import torch.distributed as dist

import unisono.torch_backend.process_group  # noqa: F401 (likewise)
from unisono.launch.unix_process_group import die_with_parent

LIMIT_S = 60.0  # of a test; the ranks are killed then
CALL_LIMIT_S = 30.0  # of a call: shorter, so that a rank can report where it waits


def run_ranks(
    function: Callable[..., Any], size: int, *arguments: Any, backend: str = "unisono", init: bool = True,
    limit_s: float = LIMIT_S,
) -> list[Any]:  # fmt: skip
    """Call the function on every rank of a new process group; return the results by rank.

    A rank that raises fails the test with its traceback. ``init=False``: the function makes the group itself, from
    the variables that torchrun would set.
    """
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        job = _Job(size, backend, init, str(Path(folder) / "store"), free_port(), os.getpid())
        processes, lines = [], []
        for rank in range(size):
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_rank, args=(job, rank, theirs, function, arguments))
            process.start()
            theirs.close()
            processes.append(process)
            lines.append(ours)
        try:
            answers = _answers(lines, time.monotonic() + limit_s)
            endings = [
                None if answer else _ending(process) for answer, process in zip(answers, processes, strict=True)
            ]
        finally:
            for process, line in zip(processes, lines, strict=True):
                process.kill()  # a rank that has answered is no longer needed
                process.join()
                process.close()
                line.close()
    _raise_if_any_failed(answers, endings, backend)
    return [pickle.loads(value) for _, value in answers]


def same_as_gloo(
    function: Callable[..., Any], size: int, *arguments: Any, limit_s: float = LIMIT_S, bits: int = 20
) -> list[Any]:
    """Run a function on Unisono and on Gloo; fail unless every rank returns the same. Return the results of Unisono.

    The rounding of sums over more than two ranks depends on their order; ``bits`` bits must agree.
    """
    ours = run_ranks(function, size, *arguments, limit_s=limit_s)
    theirs = run_ranks(function, size, *arguments, backend="gloo", limit_s=limit_s)
    assert ours[0] is not None, "the ranks must return something that can be compared"
    assert_close(ours, theirs, bits, "the results differ from those of Gloo")
    return ours


def assert_close(found: Any, expected: Any, bits: int, problem: str) -> None:
    """Compare tensors, or structures of tensors, to ``bits`` binary places of a number near one."""
    limit = 2.0**-bits
    torch.testing.assert_close(found, expected, rtol=limit, atol=limit, msg=lambda text: f"{problem}: {text}")


def free_port() -> int:
    """Return a port on which no process listens."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class _Job:
    def __init__(self, size: int, backend: str, init: bool, store: str, port: int, parent: int) -> None:
        self.size, self.backend, self.init, self.store, self.port, self.parent = (
            size, backend, init, store, port, parent,
        )  # fmt: skip


def _rank(job: _Job, rank: int, line: Connection, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    die_with_parent(job.parent)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(job.size),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(job.port),
    }  # fmt: skip
    try:
        if job.init:
            store = dist.FileStore(job.store, job.size)
            limit = timedelta(seconds=CALL_LIMIT_S)
            dist.init_process_group(job.backend, store=store, rank=rank, world_size=job.size, timeout=limit)
            assert dist.get_backend() == job.backend
        result = function(*arguments)
        if dist.is_initialized() and job.backend != "gloo":  # Gloo's threads may abort the process here
            dist.destroy_process_group()
        # Not line.send: torch has taught it to send tensors as names of shared memory, which ends with this process.
        answer = (True, pickle.dumps(result))
    except BaseException:
        answer = (False, traceback.format_exc().encode())
    with suppress(BrokenPipeError):
        line.send(answer)
    if job.backend == "gloo":
        signal.pause()  # until this process is killed: others may still need the data that it sent


def _answers(lines: Sequence[Connection], deadline: float) -> list[tuple[bool, bytes] | None]:
    """Return the answer of every rank; None for a rank that ended or did not answer in time.

    When one has failed, the others get a few seconds to report their errors.
    """
    answers: dict[int, tuple[bool, bytes] | None] = {}
    while len(answers) < len(lines):
        left = deadline - time.monotonic()
        ready = wait([line for rank, line in enumerate(lines) if rank not in answers], max(0, left))
        if not ready:
            break
        for line in ready:
            try:
                answer = line.recv()
            except EOFError:
                answer = None
            answers[lines.index(line)] = answer
            if answer is None or not answer[0]:
                deadline = min(deadline, time.monotonic() + 3)
    return [answers.get(rank) for rank in range(len(lines))]


def _ending(process: Any) -> str:
    """Describe how a rank ended that did not answer."""
    process.join(0.5)  # it may be exiting
    return "did not answer in time" if process.exitcode is None else f"ended with exit code {process.exitcode}"


def _raise_if_any_failed(
    answers: Sequence[tuple[bool, bytes] | None], endings: Sequence[str | None], backend: str
) -> None:
    failed = [rank for rank, answer in enumerate(answers) if answer is None or not answer[0]]
    if not failed:
        return
    texts = []
    for rank in failed:
        answer = answers[rank]
        what = answer[1].decode() if answer else endings[rank]
        texts.append(f"rank {rank} of {len(answers)} with {backend}: {what}")
    raise AssertionError("\n".join(texts))
