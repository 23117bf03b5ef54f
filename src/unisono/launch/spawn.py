"""``unisono.spawn(fn, 4)``: run a function on local ranks, from a notebook, a test or a script."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import secrets
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.membership import STAGING_BYTES, connect_link
from unisono.bootstrap.rendezvous_address import AbstractAddress
from unisono.comm.communicator import Communicator
from unisono.comm.tables import load_table
from unisono.errors import CommError, PeerLost, UsageError
from unisono.launch.run import MOST_RANKS

GRACE_S = 2.0  # for the other ranks to end by themselves when one has failed
CONNECT_S = 60.0


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
    if type(size) is not int or not 1 <= size <= MOST_RANKS:
        raise UsageError(f"spawn: size={size!r}; expected a number of ranks, 1 to {MOST_RANKS}")
    if start not in ("fork", "spawn"):
        raise UsageError(f"spawn: start={start!r}; expected 'fork' or 'spawn'")
    context: Any = multiprocessing.get_context(start)
    # The ranks get the name and the secret from us directly: no file can be left behind, however we end.
    address = secrets.token_hex(16), secrets.token_hex(32)
    ranks: list[Any] = []
    lines: dict[Connection, int] = {}
    ends: dict[int, int] = {}
    try:
        for rank in range(size):
            ours, theirs = context.Pipe(duplex=False)
            identity = RankIdentity(rank, size, rank, size, "alone", "")
            process = context.Process(
                target=_run_rank, args=(theirs, identity, address, os.getpid(), timeout, function, args, kwargs),
                daemon=True, name=f"rank {rank}",
            )  # fmt: skip
            process.start()
            theirs.close()
            ranks.append(process)
            lines[ours] = rank
            ends[os.pidfd_open(process.pid)] = rank
        return _collect(ranks, lines, ends, patience_s)
    finally:
        for process in ranks:
            if process.is_alive():
                process.kill()
            process.join()
            process.close()
        for line in lines:
            line.close()
        for end in ends:
            os.close(end)


def _collect(
    ranks: list[Any], lines: dict[Connection, int], ends: dict[int, int], patience_s: float
) -> list[Outcome]:
    """Wait for all ranks, or for the first that fails and a little longer for the others.

    ``ends`` are descriptors of the processes. A rank may have ended although its line is open: a process that it has
    forked holds the other side, too.
    """
    outcomes: dict[int, Outcome] = {}
    line_of = {rank: line for line, rank in lines.items()}
    watched: dict[Any, int] = {**lines, **ends}
    deadline = None
    while len(outcomes) < len(ranks):
        ready = wait(list(watched), None if deadline is None else max(0.0, deadline - time.monotonic()))
        if not ready:
            break
        for rank in sorted({watched[one] for one in ready}):
            outcomes[rank] = _outcome(line_of[rank], rank, ranks[rank])
            watched = {one: other for one, other in watched.items() if other != rank}
            if outcomes[rank].error is not None and deadline is None:
                deadline = time.monotonic() + patience_s
    stopped = PeerLost("this rank was stopped: it had not ended when another had failed")
    return [outcomes.get(rank, Outcome(error=stopped, story="(stopped)")) for rank in range(len(ranks))]


def _outcome(line: Connection, rank: int, process: Any) -> Outcome:
    """Return what a rank has sent, or how it ended: one of both can be read."""
    if line.poll():
        with contextlib.suppress(EOFError):
            found: Outcome = pickle.loads(line.recv_bytes())
            return found
    process.join()
    code = process.exitcode
    how = f"by {signal.Signals(-code).name}" if code and code < 0 else f"with exit code {code}"
    return Outcome(error=PeerLost(f"rank {rank} ended {how} before it returned", rank=rank))


def _run_rank(
    line: Connection, identity: RankIdentity, address: tuple[str, str], parent: int, timeout: float,
    function: Callable[..., Any], args: Any, kwargs: Any,
) -> None:  # fmt: skip
    from unisono.launch.unix_process_group import die_with_parent

    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C is for the parent, which stops us
    rank_process = os.getpid()
    outcome = Outcome()
    try:
        with Communicator(
            connect_link(timeout, CONNECT_S, STAGING_BYTES, load_table, identity, AbstractAddress(*address))
        ) as comm:
            outcome.value = function(comm, *args, **kwargs)
    except BaseException as error:
        outcome = Outcome(error=error, story=traceback.format_exc())
    if os.getpid() != rank_process:
        _end_forked_child(outcome)
    try:
        letter = pickle.dumps(outcome)
    except Exception as error:
        found = outcome.error if outcome.error is not None else outcome.value
        letter = pickle.dumps(
            Outcome(
                error=UsageError(f"spawn: rank {identity.rank} gave {found!r}, which cannot be sent back: {error}"),
                story=outcome.story,
            )
        )
    line.send_bytes(letter)
    line.close()
    sys.stdout.flush()


def _end_forked_child(outcome: Outcome) -> NoReturn:
    """End a process that the function has forked, as Python would: it must not answer for the rank."""
    error, code = outcome.error, 0
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    elif error is not None:
        print(outcome.story, file=sys.stderr, end="")
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)
