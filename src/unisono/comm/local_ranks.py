"""``unisono.spawn(fn, 4)``: run a function on local ranks, from a notebook, a test or a script."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import secrets
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from unisono.comm.environment import Place
from unisono.comm.joining import connect
from unisono.errors import CommError, PeerLost, UsageError

GRACE_S = 2.0  # for the other ranks to end by themselves when one has failed


@dataclass
class Outcome:
    """What became of a rank."""

    value: Any = None
    error: BaseException | None = None
    story: str = ""  # the traceback


def spawn(
    function: Callable[..., Any], size: int, *args: Any, timeout: float = 300.0, start: str = "fork", **kwargs: Any
) -> list[Any]:
    """Run ``function(comm, *args, **kwargs)`` on ``size`` new ranks and return what it returned on each of them.

    If it raises on a rank, the others are stopped and the first exception is raised here. ``timeout`` is that of the
    communicator. ``start`` is how processes are made: "fork" is quick and takes any function, also of a notebook;
    "spawn" begins with a fresh interpreter, which programs with threads need (torch, once it has computed something).
    """
    outcomes = outcomes_of(function, size, *args, timeout=timeout, start=start, **kwargs)
    failed = {rank: outcome for rank, outcome in enumerate(outcomes) if outcome.error is not None}
    if not failed:
        return [outcome.value for outcome in outcomes]
    # Where a rank failed by itself and others because of it, the first is what one wants to see.
    rank = min(failed, key=lambda rank: isinstance(failed[rank].error, CommError) and bool(failed[rank].story))
    error, story = failed[rank].error, failed[rank].story
    assert error is not None
    error.add_note(f"on rank {rank} of {size}" + (f":\n{story}" if story else ""))
    raise error


def outcomes_of(
    function: Callable[..., Any], size: int, *args: Any, timeout: float = 300.0, start: str = "fork",
    patience_s: float = GRACE_S, **kwargs: Any,
) -> list[Outcome]:  # fmt: skip
    """Do as ``spawn`` does, and return what became of every rank; raise nothing.

    When a rank has failed, the others have ``patience_s`` seconds left.
    """
    if type(size) is not int or size < 1:
        raise UsageError(f"spawn: size={size!r}; expected a number of ranks, 1 or more")
    if start not in ("fork", "spawn"):
        raise UsageError(f"spawn: start={start!r}; expected 'fork' or 'spawn'")
    directory = tempfile.mkdtemp(prefix="unisono-")  # mode 0700
    context: Any = multiprocessing.get_context(start)
    ranks: list[Any] = []
    lines: dict[Connection, int] = {}
    try:
        secret = Path(directory) / "secret"
        secret.touch(mode=0o600)
        secret.write_text(secrets.token_hex(32))
        for rank in range(size):
            ours, theirs = context.Pipe(duplex=False)
            place = Place(rank, size, rank, size, "unisono", directory)
            process = context.Process(
                target=_run_rank, args=(theirs, place, os.getpid(), timeout, function, args, kwargs), daemon=True,
                name=f"rank {rank}",
            )  # fmt: skip
            process.start()
            theirs.close()
            ranks.append(process)
            lines[ours] = rank
        return _collect(ranks, lines, patience_s)
    finally:
        for process in ranks:
            if process.is_alive():
                process.kill()
            process.join()
            process.close()
        for line in lines:
            line.close()
        shutil.rmtree(directory, ignore_errors=True)


def _collect(ranks: list[Any], lines: dict[Connection, int], patience_s: float) -> list[Outcome]:
    """Wait for all ranks, or for the first that fails and a little longer for the others."""
    outcomes: dict[int, Outcome] = {}
    open_lines = dict(lines)
    deadline = None
    while open_lines:
        ready = wait(list(open_lines), None if deadline is None else max(0.0, deadline - time.monotonic()))
        if not ready:
            break
        for line in ready:
            assert isinstance(line, Connection)
            rank = open_lines.pop(line)
            outcomes[rank] = _outcome(line, rank, ranks[rank])
            if outcomes[rank].error is not None and deadline is None:
                deadline = time.monotonic() + patience_s
    stopped = PeerLost("this rank was stopped: it had not ended when another had failed")
    return [outcomes.get(rank, Outcome(error=stopped, story="(stopped)")) for rank in range(len(ranks))]


def _outcome(line: Connection, rank: int, process: Any) -> Outcome:
    try:
        found: Outcome = pickle.loads(line.recv_bytes())
        return found
    except EOFError:
        process.join()
        code = process.exitcode
        how = f"by {signal.Signals(-code).name}" if code and code < 0 else f"with exit code {code}"
        return Outcome(error=PeerLost(f"rank {rank} ended {how} before it returned", rank=rank))


def _run_rank(
    line: Connection, place: Place, parent: int, timeout: float, function: Callable[..., Any], args: Any, kwargs: Any
) -> None:
    from unisono.comm.orphans import die_with_parent

    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C is for the parent, which stops us
    outcome = Outcome()
    try:
        with connect(timeout=timeout, place=place) as comm:
            outcome.value = function(comm, *args, **kwargs)
    except BaseException as error:
        outcome = Outcome(error=error, story=traceback.format_exc())
    try:
        letter = pickle.dumps(outcome)
    except Exception as error:
        found = outcome.error if outcome.error is not None else outcome.value
        letter = pickle.dumps(
            Outcome(
                error=UsageError(f"spawn: rank {place.rank} gave {found!r}, which cannot be sent back: {error}"),
                story=outcome.story,
            )
        )
    line.send_bytes(letter)
    line.close()
    sys.stdout.flush()
