"""Runs a function of a tool on ranks that share a GPU, in a separate process with a time limit.

A job is a process that starts ranks, so that a job that hangs or crashes costs its time limit and nothing else.
Rank 0 appends rows to a file, one line of JSON each, as soon as they are measured: a job that is killed has left
those that it had finished.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gpu_watch

START = "import gpu_jobs; gpu_jobs.run_job()"
TAIL = 4000  # characters of the output of a job that failed
KERNEL, STREAM = "kernel", "stream"


class Rows:
    """The rows of a job; only rank 0 writes them."""

    def __init__(self, path: str, rank: int, **common: Any) -> None:
        self.path, self.rank, self.common = path, rank, common

    def add(self, **row: Any) -> None:
        """Append a row."""
        if self.rank == 0:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps({**self.common, **row}) + "\n")


def run(
    function: str, size: int, settings: dict[str, Any], *, mps: bool, limit_s: float, timeout_s: float = 30.0
) -> tuple[list[dict[str, Any]], str | None]:
    """Run ``module:function(comm, rows_file, settings)`` on ranks; return their rows, and the problem or None.

    ``timeout_s`` is that of the communicator.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="unisono-job-") as folder:
        rows, output = Path(folder, "rows"), Path(folder, "output")
        task = {
            "function": function, "size": size, "rows": str(rows), "settings": settings, "mps": mps,
            "timeout_s": timeout_s,
        }  # fmt: skip
        path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": folder, "GLOO_SOCKET_IFNAME": "lo"}
        with output.open("wb") as out, gpu_watch.watched(environment) as variables:
            job = subprocess.Popen(
                [sys.executable, "-c", START, json.dumps(task)], env=variables, stdin=subprocess.DEVNULL,
                stdout=out, stderr=out,
            )  # fmt: skip
            code, where = _wait(job, limit_s, variables)
        found = [json.loads(line) for line in rows.read_text().splitlines()] if rows.exists() else []
        said = output.read_text(errors="replace").strip()
    problem = None
    failed = [row for row in found if row.get("part") == "problem"]
    if failed:
        problem = "; ".join(f"{row['name']} on {size} ranks: {row['text']}" for row in failed)
        print(f"{problem}\n{said[-TAIL:]}", file=sys.stderr, flush=True)
    if code != 0:
        ended = f"killed after {limit_s:.0f} s" if code is None else f"ended with code {code}"
        problem = f"{function} on {size} ranks {ended} ({len(found)} rows in {time.monotonic() - began:.0f} s)"
        print(f"{problem}:\n{said[-TAIL:]}\n{where}", file=sys.stderr, flush=True)
    return found, problem


def _wait(job: subprocess.Popen[bytes], limit_s: float, variables: dict[str, str]) -> tuple[int | None, str]:
    """Return the exit code of a job, or None and where it was when it was ended at its limit.

    Its ranks and its daemon end with it.
    """
    try:
        return job.wait(limit_s), ""
    except subprocess.TimeoutExpired:
        where = gpu_watch.diagnosis(variables)
        job.send_signal(signal.SIGINT)  # it prints where it was
        try:
            job.wait(15)  # it also quits its MPS daemon
        except subprocess.TimeoutExpired:
            job.kill()
            job.wait()
        return None, where
    except BaseException:
        job.kill()
        job.wait()
        raise


def run_job() -> None:
    """Start the ranks of a job: the program of its process."""
    import torch  # noqa: F401 (the ranks are forked: importing it once, here, saves seconds; it does not start CUDA)

    import unisono

    task = json.loads(sys.argv[1])
    module, _, name = task["function"].partition(":")
    function = getattr(importlib.import_module(module), name)
    unisono.spawn(
        function, task["size"], task["rows"], task["settings"], mps=task["mps"], timeout=task["timeout_s"],
        oversubscribe=True,
    )  # fmt: skip


def select_device(comm: Any, device: str) -> None:
    """Give this rank its GPU: ranks beyond the number of GPUs share them."""
    import torch

    torch.set_num_threads(1)
    if device == "cuda":
        torch.cuda.set_device(comm.rank % torch.cuda.device_count())


def machine(device: str) -> dict[str, Any]:
    """Return the machine on which a tool runs, and the date, without starting CUDA in this process."""
    import torch

    import unisono

    about: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "device": device, "unisono": unisono.__version__,
        "torch": torch.__version__, "python": platform.python_version(), "cores": os.cpu_count(),
        "commit": _output(["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]),
    }  # fmt: skip
    if device == "cuda":
        query = "name,driver_version,memory.total,clocks.max.sm"
        about["gpus"] = _output(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]).splitlines()
        about["cuda"] = torch.version.cuda
    return about


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""
