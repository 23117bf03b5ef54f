"""How the ranks of a job find each other on one machine: rank 0 opens a door, the others knock.

The door is a Unix socket (doors.py says where). Whoever knocks must belong to the same user and know the secret of
the job. When all are there, everyone gets the descriptor of the shared memory and the
process numbers of all; then the door is removed.
"""

from __future__ import annotations

import hmac
import json
import os
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Any

from unisono.comm.doors import Door
from unisono.comm.environment import Place
from unisono.errors import CollectiveTimeout, CommError, MismatchError, PeerLost

PROTOCOL = 1
KNOCK_EVERY_S = 0.01
LOOK_EVERY_S = 0.2
LOOK_EVERY = round(LOOK_EVERY_S / KNOCK_EVERY_S)  # knocks
LONGEST_MESSAGE = 1 << 20


@dataclass
class Meeting:
    """What everyone knows after all have met."""

    file: int  # descriptor of the shared memory
    processes: list[int]
    terms: dict[str, Any]  # what rank 0 decided for all
    lines: dict[int, socket.socket] = field(default_factory=dict)  # to the ranks; on the others, to rank 0

    def confirm(self, problem: str | None) -> None:
        """Tell the others whether this rank is ready, and wait for them; raise if one is not."""
        try:
            if 0 in self.lines:
                _send(self.lines[0], {"problem": problem})
                found = _receive(self.lines[0], 0)["problem"]
            else:
                found = problem
                for rank, line in self.lines.items():
                    found = _receive(line, rank)["problem"] or found
                for line in self.lines.values():
                    _send(line, {"problem": found})
        finally:
            for line in self.lines.values():
                line.close()
            self.lines = {}
        if found and not problem:
            raise CommError(found)


class Host:
    """What somebody may want to do while rank 0 waits at the door, or the others wait before it."""

    more_time = "give connect() a longer connect_timeout"  # what to do where ranks are late

    def opened(self) -> None:
        """Be told that the others can come now."""

    def look(self) -> None:
        """Be asked now and then; may raise, and so end the meeting."""

    def all_here(self) -> None:
        """Be told that all have come, before they are told it themselves."""


def meet(
    place: Place, door: Door, mine: dict[str, Any], decide: Any, timeout_s: float, host: Host | None = None
) -> Meeting:
    """Wait until all ranks of the job are there.

    ``mine`` is what this rank tells rank 0, and ``decide`` is called there with what all have told; it returns the
    descriptor of the shared memory and the terms for all.
    """
    deadline = time.monotonic() + timeout_s
    if place.size == 1:
        file, terms = decide([mine])
        return Meeting(file, [os.getpid()], terms)
    if place.rank == 0:
        return _host(place, door, mine, decide, deadline, timeout_s, host or Host())
    return _visit(place, door, mine, deadline, timeout_s, host or Host())


def _host(
    place: Place, door: Door, mine: dict[str, Any], decide: Any, deadline: float, timeout_s: float, host: Host
) -> Meeting:
    lines: dict[int, socket.socket] = {}
    told: dict[int, dict[str, Any]] = {0: mine}
    processes = {0: os.getpid()}
    try:
        with door.opened() as address, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(address.socket)
            listener.listen(place.size)
            host.opened()
            while len(told) < place.size:
                line = _admit(listener, deadline, place, told, timeout_s, host)
                _welcome(line, place, address.secret, lines, told, processes)
        host.all_here()
        file, terms = decide([told[rank] for rank in range(place.size)])
        everyone = [processes[rank] for rank in range(place.size)]
        letter = json.dumps({"processes": everyone, "terms": terms}).encode()
        for line in lines.values():
            line.settimeout(timeout_s)
            socket.send_fds(line, [struct.pack("=I", len(letter)) + letter], [file])
        return Meeting(file, everyone, terms, lines)
    except BaseException:
        for line in lines.values():
            line.close()
        raise


def _admit(
    listener: socket.socket, deadline: float, place: Place, told: dict[int, Any], timeout_s: float, host: Host
) -> socket.socket:
    while (left := deadline - time.monotonic()) > 0:
        listener.settimeout(min(left, LOOK_EVERY_S))
        try:
            line, _ = listener.accept()
        except TimeoutError:
            host.look()
        else:
            return line
    missing = ", ".join(str(rank) for rank in range(place.size) if rank not in told)
    raise CollectiveTimeout(
        f"connect: after {timeout_s:g} s these ranks of {place.size} have not arrived: {missing}; see whether "
        f"they were started, or {host.more_time}"
    )


def _welcome(
    line: socket.socket, place: Place, secret: str, lines: dict[int, socket.socket], told: dict[int, dict[str, Any]],
    processes: dict[int, int],
) -> None:  # fmt: skip
    """Look at who knocks; strangers are sent away, and mistakes end the meeting."""
    process, user = _who(line)
    try:
        line.settimeout(5)
        hello = _receive(line, -1)
        known = user == os.getuid() and hmac.compare_digest(str(hello.get("secret")), secret)
    except (OSError, ValueError, CommError):
        known = False
    if not known:
        line.close()
        return
    problem = None
    rank = hello["rank"]
    if hello["protocol"] != PROTOCOL:
        problem = f"rank {rank} runs another version of Unisono than rank 0"
    elif hello["size"] != place.size:
        problem = f"rank {rank} was told that there are {hello['size']} ranks, rank 0 that there are {place.size}"
    elif rank in told or not 0 < rank < place.size:
        problem = f"there are two of rank {rank}, or it is none of 0 to {place.size - 1}"
    if problem:
        _send(line, {"problem": problem})
        line.close()
        raise MismatchError(f"connect: {problem}")
    lines[rank], told[rank], processes[rank] = line, hello["mine"], process


def _who(line: socket.socket) -> tuple[int, int]:
    """Return the process and the user at the other end, as the kernel knows them."""
    process, user, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return process, user


def _visit(place: Place, door: Door, mine: dict[str, Any], deadline: float, timeout_s: float, host: Host) -> Meeting:
    line, secret = _knock(place, door, deadline, timeout_s, host)
    try:
        hello = {"protocol": PROTOCOL, "secret": secret, "rank": place.rank, "size": place.size, "mine": mine}
        _send(line, hello)
        line.settimeout(max(0.001, deadline - time.monotonic()))
        letter, descriptors = _receive_letter(line, place)
    except TimeoutError:
        line.close()
        raise CollectiveTimeout(
            f"connect: rank {place.rank} has waited {timeout_s:g} s for all {place.size} ranks to arrive"
        ) from None
    except BaseException:
        line.close()
        raise
    if "problem" in letter:
        line.close()
        raise MismatchError(f"connect: {letter['problem']}")
    return Meeting(descriptors[0], letter["processes"], letter["terms"], {0: line})


def _knock(place: Place, door: Door, deadline: float, timeout_s: float, host: Host) -> tuple[socket.socket, str]:
    """Try the door until somebody opens; return the line and the secret to say."""
    attempts = 0
    while True:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with door.found() as address:
                line.connect(address.socket)
                if _who(line)[1] != os.getuid():  # it gets our secret only if it is one of us
                    raise CommError("connect: the door belongs to another user")
                return line, address.secret
        except (FileNotFoundError, ConnectionRefusedError, BlockingIOError):
            line.close()  # nobody is at home yet
        except BaseException:
            line.close()
            raise
        if time.monotonic() >= deadline:
            raise CollectiveTimeout(
                f"connect: rank {place.rank} has waited {timeout_s:g} s for rank 0 of {place.size}; see whether it "
                "was started"
            )
        attempts += 1
        if attempts % LOOK_EVERY == 0:
            host.look()
        time.sleep(KNOCK_EVERY_S)


def _receive_letter(line: socket.socket, place: Place) -> tuple[dict[str, Any], list[int]]:
    head, descriptors, _, _ = socket.recv_fds(line, 4, 1)
    if not head:
        raise PeerLost(f"connect: rank 0 of {place.size} has gone away before all ranks had arrived", rank=0)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return _read_body(line, head, 0), descriptors


def _send(line: socket.socket, message: dict[str, Any]) -> None:
    body = json.dumps(message).encode()
    line.sendall(struct.pack("=I", len(body)) + body)


def _receive(line: socket.socket, rank: int) -> dict[str, Any]:
    return _read_body(line, _read(line, 4, rank), rank)


def _read_body(line: socket.socket, head: bytes, rank: int) -> dict[str, Any]:
    head += _read(line, 4 - len(head), rank)
    (length,) = struct.unpack("=I", head)
    if length > LONGEST_MESSAGE:
        raise CommError("connect: a message that is none of ours")
    found: dict[str, Any] = json.loads(_read(line, length, rank))
    return found


def _read(line: socket.socket, length: int, rank: int) -> bytes:
    found = b""
    while len(found) < length:
        piece = line.recv(length - len(found))
        if not piece:
            raise PeerLost(f"connect: rank {rank} has gone away before all ranks were ready", rank=rank)
        found += piece
    return found
