"""Runs a command with a time limit; when the limit is over, says where each of its processes hangs.

Every Python process of the command registers itself in a folder (in_watched_process/sitecustomize.py). ``diagnosis``
has all of them write the stacks of their threads, and what their calls on GPUs wait for: the number and the text of
the call, and the rank and the step for which its kernel waits. It ends the waiting kernels, so it is for processes
that are about to be killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

HOOK = Path(__file__).parent / "in_watched_process"
VARIABLE = "UNISONO_WATCHED"
STACKS_S, CALLS_S = 0.5, 1.5  # the time that the processes have to write
SHOWN = 6000  # characters of a process
INTERRUPTED_S = 10.0  # the time that an interrupted command has to end


@contextlib.contextmanager
def watched(environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yield an environment whose Python processes can be diagnosed; inside of a watched process, the same one."""
    if VARIABLE in environment:
        yield environment
        return
    with tempfile.TemporaryDirectory(prefix="unisono-watch-", ignore_cleanup_errors=True) as folder:
        paths = [str(HOOK), *filter(None, [environment.get("PYTHONPATH")])]
        yield {**environment, VARIABLE: folder, "PYTHONPATH": os.pathsep.join(paths)}


def diagnosis(environment: dict[str, str] | None = None, only: Iterable[int] | None = None) -> str:
    """Return where the processes of a watched environment are; ``only`` these, if they are given."""
    folder = (os.environ if environment is None else environment).get(VARIABLE)
    if folder is None:
        return "(the processes are not watched: run the command through tools/gpu_device.py)"
    wanted = None if only is None else set(only)
    found = sorted(int(path.stem) for path in Path(folder).glob("*.stacks") if path.stem.isdecimal())
    alive = [pid for pid in found if pid != os.getpid() and (wanted is None or pid in wanted) and _is_python(pid)]
    _signal(alive, signal.SIGUSR1)
    time.sleep(STACKS_S)
    _signal([pid for pid in alive if Path(folder, f"{pid}.calls").exists()], signal.SIGUSR2)
    time.sleep(CALLS_S)
    texts = [f"==== where the {len(alive)} processes are ===="]
    for pid in alive:
        texts.append(
            f"---- process {pid}: {_end(Path(folder, f'{pid}.stacks'))}\n{_end(Path(folder, f'{pid}.calls'))}"
        )
    return "\n".join(texts)


def _is_python(pid: int) -> bool:
    """Tell whether a process is alive and catches the signals: others would die of them."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        caught = int(next(line for line in lines if line.startswith("SigCgt:")).split()[1], 16)
        return bool(caught >> (signal.SIGUSR1 - 1) & 1)
    return False


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _end(path: Path) -> str:
    """Return what a process has written: its beginning, and the last characters."""
    text = path.read_text(errors="replace").strip() if path.exists() else ""
    return text if len(text) <= SHOWN else f"{text[:200]}\n...\n{text[-SHOWN:]}"


def run(command: list[str], limit_s: float, out: IO[bytes], environment: dict[str, str], folder: Path) -> int | None:
    """Run a command in a new session, and return its exit code, or None if it was ended at its limit.

    Its output, and the diagnosis, go to ``out``.
    """
    with watched(environment) as variables:
        process = subprocess.Popen(
            command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            text = f"\n==== not over after {limit_s:.0f} s ====\n{diagnosis(variables)}\n"
            out.write(text.encode())
            out.flush()
            return None
        finally:
            _end_session(process)


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """End a command, with the daemons that it ends itself when it is interrupted, and then what is left of it."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(INTERRUPTED_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
