"""How the ranks of a job find each other on one machine: rank 0 opens a door, the others knock.

The door is a Unix socket (doors.py says where). A rank must belong to the same user and know the secret of the job
(handshake.py). When all have come (reception.py), rank 0 sends each of them a **letter**: the descriptor of the
shared memory and the process numbers of all. Then all confirm that they have set it up. If anything goes wrong on the
way, rank 0 tells the other ranks, and all of them raise the same error.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from unisono.bootstrap.environment import Place
from unisono.bootstrap.framing import Line
from unisono.bootstrap.handshake import Hello, error_of, message_of, preamble
from unisono.bootstrap.job_identity import own_looks
from unisono.bootstrap.locality import process_namespace
from unisono.bootstrap.private_directory import DirectoryTaken
from unisono.bootstrap.rendezvous_address import Door
from unisono.bootstrap.rendezvous_server import BACKLOG, LOOK_EVERY_S, Host, Reception, advice_on_names
from unisono.errors import CollectiveTimeout, CommError, PeerLost, UnisonoError, UsageError

__all__ = ["Host", "Meeting", "is_open", "meet"]

KNOCK_EVERY_S = 0.01
LOOK_EVERY = round(LOOK_EVERY_S / KNOCK_EVERY_S)  # knocks
GRACE_S = 2.0  # for rank 0 to say what has gone wrong, after its own time has ended

Decide = Callable[[list[dict[str, Any]]], tuple[int, dict[str, Any]]]


@dataclass
class Meeting:
    """What everyone knows after all have met."""

    rank: int
    file: int  # descriptor of the shared memory
    processes: list[int]
    config: dict[str, Any]  # what rank 0 decided for all
    lines: dict[int, Line] = field(default_factory=dict)  # to the ranks; on the others, to rank 0
    timeout_s: float = 0.0
    ends_s: float = 0.0  # when rank 0 waits no longer for the others to confirm

    def confirm(self, problem: BaseException | None) -> None:
        """Tell the others whether this rank is ready, and wait for them; raise if one is not."""
        try:
            if 0 in self.lines:
                self._confirm_to_rank_0(problem)
            else:
                self._confirm_to_all(problem)
        finally:
            self.leave()

    def leave(self) -> None:
        """Close the connections."""
        for line in self.lines.values():
            line.close()
        self.lines = {}

    def _confirm_to_rank_0(self, problem: BaseException | None) -> None:
        line = self.lines[0]
        with suppress(OSError):  # it may have closed the connection, and said why
            line.send({} if problem is None else message_of(problem, self.rank))
        verdict = _hear(line, self.ends_s + GRACE_S, self.timeout_s)
        if verdict is None:
            raise _rank_0_lost(line, "all ranks were ready")
        if "problem" in verdict and problem is None:
            raise error_of(verdict)

    def _confirm_to_all(self, problem: BaseException | None) -> None:
        found = problem
        for rank, line in self.lines.items():
            found = found or self._confirmation(rank, line)
        for line in self.lines.values():
            with suppress(OSError):  # the engine finds that this rank has ended, and says which
                line.send({} if found is None else message_of(found, 0))
        if found is not None and problem is None:
            raise found

    def _confirmation(self, rank: int, line: Line) -> UnisonoError | None:
        """Return what is wrong on a rank."""
        who = f"rank {rank} (process {line.process})"
        try:
            message = line.wait_for_message(self.ends_s)
        except TimeoutError:
            return CollectiveTimeout(
                f"connect: {who} has not set up its shared memory within {self.timeout_s:g} s", rank=rank
            )
        except (OSError, ValueError) as error:
            return CommError(f"connect: {who}: {error}", rank=rank)
        if message is None:
            return PeerLost(f"connect: {who} has gone away before all ranks were ready", rank=rank)
        return error_of(message) if "problem" in message else None


def meet(
    place: Place, door: Door, mine: dict[str, Any], decide: Decide, timeout_s: float, host: Host | None = None
) -> Meeting:
    """Wait until all ranks of the job are there.

    ``mine`` is what this rank tells rank 0, and ``decide`` is called there with what all have told; it returns the
    descriptor of the shared memory and the config for all.
    """
    if place.size == 1:
        file, config = decide([mine])
        return Meeting(0, file, [os.getpid()], config)
    looks = own_looks() if place.by_hand else {}
    own = Hello(place.rank, place.size, mine, timeout_s, timeout_s, process_namespace(), looks)
    try:
        if place.rank == 0:
            return _host(place, door, own, decide, host or Host())
        return _visit(place, door, own, host or Host())
    except OSError as error:
        if isinstance(error, UnisonoError):
            raise
        raise _no_socket(place, error) from error


def _no_socket(place: Place, error: OSError) -> UnisonoError:
    """Return our error for one of the system."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return CommError(
            f"connect: rank {place.rank} has no file descriptor left ({error.strerror}); raise the limit (ulimit -n)",
            rank=place.rank,
        )
    return CommError(f"connect: rank {place.rank}: {error}", rank=place.rank)


def _host(place: Place, door: Door, own: Hello, decide: Decide, host: Host) -> Meeting:
    ends_s = time.monotonic() + GRACE_S
    while True:
        try:
            return _receive(place, door, own, decide, host)
        except DirectoryTaken:
            _ask_other_rank_0(door, own)
        if time.monotonic() > ends_s:
            raise UsageError(
                f"connect: another process is rank 0 of a job with the name {place.job!r} and does not answer; "
                f"{advice_on_names(place)}"
            )
        time.sleep(KNOCK_EVERY_S)


def _receive(place: Place, door: Door, own: Hello, decide: Decide, host: Host) -> Meeting:
    reception = Reception(place, own, host)
    with door.opened() as address, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(address.socket)
        listener.listen(BACKLOG)
        host.opened()
        reception.receive_all(listener, address.secret())
    file = None
    try:
        host.all_here()
        guests = [reception.guests[rank] for rank in range(1, place.size)]
        file, config = decide([own.mine, *(guest.hello.mine for guest in guests)])
        processes = [os.getpid(), *(guest.line.process for guest in guests)]
        lines = {guest.hello.rank: guest.line for guest in guests}
        for rank, line in lines.items():
            _send_letter(rank, line, {"processes": processes, "config": config}, file)
        return Meeting(0, file, processes, config, lines, own.timeout_s, time.monotonic() + own.timeout_s)
    except BaseException as error:
        failed = isinstance(error, UsageError)  # here; the calls of the other ranks were right
        reception.tell_all(CommError(f"connect: rank 0 has failed: {error}", rank=0) if failed else error)
        if file is not None:
            os.close(file)
        raise


def _send_letter(rank: int, line: Line, letter: dict[str, Any], file: int) -> None:
    try:
        line.send(letter, [file])
    except (BrokenPipeError, ConnectionResetError):
        raise PeerLost(
            f"connect: rank {rank} (process {line.process}) has gone away before all ranks were ready", rank=rank
        ) from None


def _ask_other_rank_0(door: Door, own: Hello) -> None:
    """Raise what the process that is rank 0 already has to say; return if it says nothing."""
    if (found := _try_door(door)) is None:
        return
    line, secret = found
    answer = None
    with closing(line), suppress(OSError, ValueError):
        _introduce(line, secret, own)
        answer = line.wait_for_message(time.monotonic() + GRACE_S)
    if answer is not None:
        raise error_of(answer)


def _visit(place: Place, door: Door, own: Hello, host: Host) -> Meeting:
    ends_s = time.monotonic() + own.timeout_s
    line, secret = _knock(place, door, ends_s, own.timeout_s, host)
    try:
        while (letter := _exchange(line, secret, own, ends_s)) is None:
            # Rank 0 is gone, or has dropped us in a crowd of other connections.
            found = _try_door(door)
            if found is None:
                raise _rank_0_lost(line, "all ranks had arrived")
            line.close()
            line, secret = found
        if "problem" in letter:
            raise error_of(letter)
        if not line.descriptors:  # the kernel leaves out what there is no room for
            error = _no_socket(place, OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
            with suppress(OSError):
                line.send(message_of(error, place.rank))
            raise error
        file, processes, config = line.descriptors[0], letter.get("processes"), letter.get("config")
        if not isinstance(config, dict) or not isinstance(processes, list) or len(processes) != place.size:
            raise CommError(f"connect: rank 0 (process {line.process}) has sent {sorted(letter)}", rank=0)
        ready_s = time.monotonic() + own.timeout_s
        return Meeting(place.rank, file, processes, config, {0: line}, own.timeout_s, ready_s)
    except BaseException:
        line.close()
        for descriptor in line.descriptors:
            os.close(descriptor)
        raise


def _exchange(line: Line, secret: str, own: Hello, ends_s: float) -> dict[str, Any] | None:
    """Say which rank this is and return the letter of rank 0, or None if it has closed the connection."""
    with suppress(BrokenPipeError, ConnectionResetError):  # rank 0 has closed it, and perhaps said why
        _introduce(line, secret, replace(own, left_s=max(0.0, ends_s - time.monotonic())))
    return _hear(line, ends_s + GRACE_S, own.timeout_s, descriptors=1)


def _introduce(line: Line, secret: str, hello: Hello) -> None:
    line.send_bytes(preamble(secret))
    line.send(hello.as_message())


def _hear(line: Line, ends_s: float, timeout_s: float, *, descriptors: int = 0) -> dict[str, Any] | None:
    """Return the next message of rank 0, or None if it has closed the connection."""
    try:
        return line.wait_for_message(ends_s, descriptors=descriptors)
    except TimeoutError:
        raise CollectiveTimeout(
            f"connect: rank 0 (process {line.process}) has not answered within {timeout_s:g} s", rank=0
        ) from None
    except (OSError, ValueError) as error:
        raise CommError(f"connect: rank 0 (process {line.process}): {error}", rank=0) from error


def _knock(place: Place, door: Door, ends_s: float, timeout_s: float, host: Host) -> tuple[Line, str]:
    """Try the door until somebody opens; return the connection and the secret to say."""
    attempts = 0
    while (found := _try_door(door)) is None:
        if time.monotonic() >= ends_s:
            raise CollectiveTimeout(
                f"connect: rank {place.rank} has waited {timeout_s:g} s for rank 0 of {place.size}; see whether it "
                "was started",
                rank=0,
            )
        attempts += 1
        if attempts % LOOK_EVERY == 0:
            host.look()
        time.sleep(KNOCK_EVERY_S)
    return found


def is_open(door: Door) -> int | None:
    """Return the process of this user that is rank 0 at a door now, if there is one."""
    try:
        found = _try_door(door)
    except CommError:  # another user's
        return None
    if found is None:
        return None
    found[0].close()
    return found[0].process


def _rank_0_lost(line: Line, before: str) -> PeerLost:
    return PeerLost(f"connect: rank 0 (process {line.process}) has gone away before {before}", rank=0)


def _try_door(door: Door) -> tuple[Line, str] | None:
    """Return a connection to rank 0 and the secret to say, or None if it cannot be had yet."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        with door.found() as address:
            connection.connect(address.socket)
            line = Line(connection)
            if line.user != os.getuid():  # it gets our secret only if it is one of us
                raise CommError(
                    f"connect: the socket of rank 0 belongs to user {line.user}, not to user {os.getuid()}: refused",
                    rank=0,
                )
            return line, address.secret()
    except (FileNotFoundError, ConnectionRefusedError, BlockingIOError):
        connection.close()  # nobody is there yet, or too many are
        return None
    except BaseException:
        connection.close()
        raise
