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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.error_report import name_ranks, user_traceback
from unisono.bootstrap.job_config import STAGING_BYTES
from unisono.bootstrap.membership import connect_link
from unisono.bootstrap.rendezvous_address import AbstractAddress
from unisono.comm.communicator import Communicator
from unisono.comm.machine import load_tuning
from unisono.errors import CommError, PeerLost, UsageError
from unisono.launch import messages
from unisono.launch.limits import check_size
from unisono.launch.mps import mps_variables
from unisono.launch.unix_process_group import die_with_parent

GRACE_S = 2.0  # the time that the other ranks have to end when one has failed
CONNECT_S = 60.0


@dataclass
class Outcome:
    """The result of a rank: a value, or an error with its traceback."""

    value: Any = None
    error: BaseException | None = None
    story: str = ""  # the traceback, with the message; empty if the rank could not send it
    frames: str = ""  # the traceback, without the message


def spawn(
    function: Callable[..., Any], size: int, *args: Any, timeout: float = 300.0, start: str = "fork",
    oversubscribe: bool = False, mps: bool = False, **kwargs: Any,
) -> list[Any]:  # fmt: skip
    """Run ``function(comm, *args, **kwargs)`` on ``size`` new ranks and return the values that they return, by rank.

    ``function`` gets the communicator of the ranks, then ``args`` and ``kwargs``. ``timeout`` is that of the
    communicator, in seconds (default 300). ``start`` is the way to create processes: "fork" (default) is fast and
    accepts any function, also one of a notebook; "spawn" starts a new interpreter, which a program with threads needs
    (torch, once it has computed something). ``oversubscribe`` lifts the limit of 64 ranks per core. ``mps`` lets
    ranks that share a GPU use it at the same time: it starts a private MPS daemon, which ends with the ranks
    (default: False).

    If the function raises on a rank, the others are stopped and the first exception is raised here. UsageError is
    raised if the arguments cannot work or a value cannot be pickled. For example::

        def total(comm, number):
            x = np.array([number * comm.rank])
            comm.all_reduce(x)
            return x[0]

        unisono.spawn(total, 4, 10)  # [60, 60, 60, 60]
    """
    try:
        outcomes = outcomes_of(
            function, size, *args, timeout=timeout, start=start, oversubscribe=oversubscribe, mps=mps, **kwargs
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt from None  # without the frames in which it arrived
    failed = {rank: outcome for rank, outcome in enumerate(outcomes) if outcome.error is not None}
    if not failed:
        return [outcome.value for outcome in outcomes]
    # Where a rank failed by itself and others because of it, the former is raised.
    first = min(failed, key=lambda rank: isinstance(failed[rank].error, CommError) and bool(failed[rank].story))
    error, frames = failed[first].error, failed[first].frames
    assert error is not None
    equal = [rank for rank, outcome in failed.items() if _are_equal(outcome.error, error)]
    place = messages.ON_RANKS(ranks=name_ranks(equal, size))
    error.add_note(f"{place}:\n{frames}".rstrip("\n") if frames else place)
    raise error


def _are_equal(first: BaseException | None, second: BaseException) -> bool:
    return type(first) is type(second) and str(first) == str(second)


def outcomes_of(
    function: Callable[..., Any], size: int, *args: Any, timeout: float = 300.0, start: str = "fork",
    patience_s: float = GRACE_S, oversubscribe: bool = False, mps: bool = False, **kwargs: Any,
) -> list[Outcome]:  # fmt: skip
    """Run a function as ``spawn`` does, and return the outcome of every rank instead of raising its error.

    When a rank has failed, the others have ``patience_s`` seconds left.
    """
    check_size(size, oversubscribe=oversubscribe, override="oversubscribe=True")
    if start not in ("fork", "spawn"):
        raise UsageError(messages.NO_SUCH_START(start=start))
    with mps_variables(wanted=mps) as variables:
        return _run_ranks(function, size, args, kwargs, timeout, start, patience_s, variables)


def _run_ranks(
    function: Callable[..., Any], size: int, args: Any, kwargs: Any, timeout: float, start: str, patience_s: float,
    variables: dict[str, str],
) -> list[Outcome]:  # fmt: skip
    """Run a function on new ranks, whose environment has these variables in addition."""
    context: Any = multiprocessing.get_context(start)
    # The ranks get the name and the secret directly from this process: no file can be left behind.
    name, secret = secrets.token_hex(16), secrets.token_hex(32)
    ranks: list[Any] = []
    pipes: dict[Connection, int] = {}
    pidfds: dict[int, int] = {}
    try:
        for rank in range(size):
            read_end, write_end = context.Pipe(duplex=False)
            identity = RankIdentity(rank, size, rank, size, "alone", "")
            process = context.Process(
                target=_run_rank,
                args=(write_end, identity, (name, secret), os.getpid(), timeout, variables, function, args, kwargs),
                daemon=True, name=f"rank {rank}",
            )  # fmt: skip
            with _interrupts_held_back():  # a rank must not be interrupted before it handles that itself
                process.start()
                ranks.append(process)
            write_end.close()
            pipes[read_end] = rank
            pidfds[os.pidfd_open(process.pid)] = rank
        return _collect(ranks, pipes, pidfds, patience_s)
    finally:
        with _interrupts_held_back():
            _end(ranks)
            for pipe in pipes:
                pipe.close()
            for pidfd in pidfds:
                os.close(pidfd)


def _end(ranks: list[Any]) -> None:
    """Kill the ranks that are still running, and wait for all of them."""
    for process in ranks:
        if process.is_alive():
            process.kill()
    for process in ranks:
        process.join()
        process.close()


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Block SIGINT, here and in processes started meanwhile; one that arrives is delivered afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _collect(
    ranks: list[Any], pipes: dict[Connection, int], pidfds: dict[int, int], patience_s: float
) -> list[Outcome]:
    """Wait for all ranks, or for the first that fails and a little longer for the others.

    A rank may have ended although its pipe is open: a process that it has forked holds the other end as well.
    """
    outcomes: dict[int, Outcome] = {}
    pipe_of = {rank: pipe for pipe, rank in pipes.items()}
    watched: dict[Any, int] = {**pipes, **pidfds}
    deadline_s = None
    while len(outcomes) < len(ranks):
        ready = wait(list(watched), None if deadline_s is None else max(0.0, deadline_s - time.monotonic()))
        if not ready:
            break
        for rank in sorted({watched[event] for event in ready}):
            outcomes[rank] = _outcome(pipe_of[rank], rank, ranks[rank])
            watched = {event: other for event, other in watched.items() if other != rank}
            if outcomes[rank].error is not None and deadline_s is None:
                deadline_s = time.monotonic() + patience_s
    stopped = PeerLost(messages.RANK_STOPPED())
    return [outcomes.get(rank, Outcome(error=stopped, story="(stopped)")) for rank in range(len(ranks))]


def _outcome(pipe: Connection, rank: int, process: Any) -> Outcome:
    """Return the outcome that a rank has sent or, if it has ended without sending one, how it ended."""
    if pipe.poll():
        with contextlib.suppress(EOFError):
            outcome: Outcome = pickle.loads(pipe.recv_bytes())
            return outcome
    process.join()
    code = process.exitcode
    if code and code < 0:
        message = messages.RANK_KILLED(rank=rank, signal=signal.Signals(-code).name)
    else:
        message = messages.RANK_EXITED(rank=rank, code=code)
    return Outcome(error=PeerLost(message, rank=rank))


def _run_rank(
    pipe: Connection, identity: RankIdentity, address: tuple[str, str], parent: int, timeout: float,
    variables: dict[str, str], function: Callable[..., Any], args: Any, kwargs: Any,
) -> None:  # fmt: skip
    os.environ.update(variables)  # CUDA reads them when the function first uses it
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the parent handles Ctrl-C, and stops its ranks
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    rank_process = os.getpid()
    outcome = Outcome()
    try:
        with Communicator(
            connect_link(timeout, CONNECT_S, STAGING_BYTES, load_tuning, identity, AbstractAddress(*address))
        ) as comm:
            outcome.value = function(comm, *args, **kwargs)
    except BaseException as error:
        outcome = Outcome(error=error, story=user_traceback(error), frames=user_traceback(error, message=False))
    if os.getpid() != rank_process:
        _end_forked_child(outcome)
    try:
        payload = pickle.dumps(outcome)
    except Exception as error:
        value = repr(outcome.error if outcome.error is not None else outcome.value)
        problem = UsageError(messages.CANNOT_PICKLE(rank=identity.rank, value=value, reason=error))
        payload = pickle.dumps(Outcome(error=problem, story=outcome.story, frames=outcome.frames))
    pipe.send_bytes(payload)
    pipe.close()
    sys.stdout.flush()


def _end_forked_child(outcome: Outcome) -> NoReturn:
    """End a process that the function has forked, as Python would: its outcome is not that of the rank."""
    error, code = outcome.error, 0
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    elif error is not None:
        print(outcome.story, file=sys.stderr, end="")
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)
