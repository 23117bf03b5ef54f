"""Faults at a rendezvous: processes that break the protocol at one step, and the faults they cause.

Everything runs in forked processes, as a rank does. Every process has a time limit.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import secrets
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.framing import LENGTH, Connection
from unisono.bootstrap.handshake import Hello, preamble
from unisono.bootstrap.locality import process_namespace
from unisono.bootstrap.membership import connect_link
from unisono.bootstrap.private_directory import write_secret
from unisono.bootstrap.rendezvous_address import AbstractAddress, Address, DirectoryAddress
from unisono.comm.communicator import Communicator
from unisono.errors import UnisonoError
from unisono.launch.unix_process_group import die_with_parent

OTHER_USER = 65534
LIMIT_S = 30.0  # after which a process is killed, and the test fails
FORK = multiprocessing.get_context("fork")
Step = Callable[[Connection], None]


# ---- a rendezvous ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Site:
    """The address of one rendezvous."""

    address: Address
    size: int
    launcher: Any
    job: str

    def identity(self, rank: int) -> RankIdentity:
        return RankIdentity(rank, self.size, rank, self.size, self.launcher, self.job)


@contextmanager
def site(kind: str, size: int = 3) -> Iterator[Site]:
    """Make the address of `unisono run` ("directory") or that of the PyTorch backend ("named")."""
    if kind == "named":
        yield Site(AbstractAddress(secrets.token_hex(16), secrets.token_hex(32)), size, "alone", "")
        return
    with tempfile.TemporaryDirectory(prefix="m-") as folder:
        descriptor = os.open(folder, os.O_RDONLY)
        write_secret(descriptor, secrets.token_hex(32))
        os.close(descriptor)
        yield Site(DirectoryAddress(RankIdentity(0, size, 0, size, "unisono", folder), 1), size, "unisono", folder)


@dataclass(frozen=True)
class Found:
    """The result of a rank: its sum, or its error."""

    value: float | None = None
    kind: str = ""
    ours: bool = False  # the error is a UnisonoError
    text: str = ""
    about: int | None = None
    seconds: float = 0.0


class Started:
    """A process of the test."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self.answer, theirs = FORK.Pipe(duplex=False)
        self.process = FORK.Process(target=self._run, args=(theirs, function, args), daemon=True)
        self.process.start()
        theirs.close()

    @staticmethod
    def _run(answer: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        answer.send(function(*args))

    def result(self, ends_s: float) -> Any:
        assert self.answer.poll(max(0.0, ends_s - time.monotonic())), "a process has not ended in time"
        return self.answer.recv()

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.process.close()
        self.answer.close()


class AnnouncedAddress(Address):
    """An address that signals when a rank has connected to rank 0."""

    def __init__(self, address: Address, come: Any) -> None:
        self.address, self.come = address, come

    def reserve(self) -> Any:
        return self.address.reserve()

    @contextmanager
    def resolve(self) -> Iterator[Any]:
        with self.address.resolve() as socket_address:
            yield socket_address
        self.come.set()


def rank_of(where: Site, rank: int, timeout_s: float, delay_s: float = 0.0, come: Any = None) -> Found:
    """Connect as a rank and make an all-reduce; return the result. ``come`` is set once the rank is connected."""
    time.sleep(delay_s)
    began_s = time.monotonic()
    address = where.address if come is None else AnnouncedAddress(where.address, come)
    try:
        link = connect_link(10, timeout_s, 1 << 16, dict, where.identity(rank), address)
        with Communicator(link) as comm:
            x = np.ones(4)
            comm.all_reduce(x)
        return Found(float(x[0]), seconds=time.monotonic() - began_s)
    except BaseException as error:
        return Found(
            None, type(error).__name__, isinstance(error, UnisonoError), str(error), getattr(error, "rank", None),
            time.monotonic() - began_s,
        )  # fmt: skip


# ---- faults of a process that connects to rank 0 -----------------------------------------------------------------


def connected(where: Site) -> tuple[Connection, str]:
    """Return a connection to rank 0, and the secret."""
    ends_s = time.monotonic() + 10
    while time.monotonic() < ends_s:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with where.address.resolve() as socket_address:
                sock.connect(socket_address.socket)
                return Connection(sock), socket_address.secret()
        except (FileNotFoundError, ConnectionRefusedError, BlockingIOError):
            sock.close()
            time.sleep(0.005)
    raise TimeoutError


def frame(body: bytes) -> bytes:
    return LENGTH.pack(len(body)) + body


def send(connection: Connection, data: bytes) -> None:
    """Send all bytes, or as many as the other side accepts."""
    connection.socket.settimeout(2.0)
    with suppress(OSError):
        connection.socket.sendall(data)


def drip(connection: Connection, data: bytes) -> None:
    connection.socket.settimeout(2.0)
    with suppress(OSError):
        for byte in data:
            connection.socket.sendall(bytes([byte]))
            time.sleep(0.05)


def stay(connection: Connection) -> None:
    time.sleep(LIMIT_S)


def half_close(connection: Connection) -> None:
    connection.socket.shutdown(socket.SHUT_WR)


NONSENSE = {
    "a list": frame(b"[]"),
    "null": frame(b"null"),
    "a number": frame(b"9" * 900),
    "a number of 200,000 digits": frame(b"9" * 200_000),
    "deep nesting": frame(b"[" * 200_000),
    "deep objects": frame(b'{"a":' * 40_000),
    "no UTF-8": frame(b"\xff\xfe"),
    "half a surrogate": frame(b'{"secret": "\\ud800"}'),
    "a secret that is not ASCII": frame('{"secret": "é"}'.encode()),
    "a length of 4 GiB": LENGTH.pack(0xFFFFFFFF),
    "a long message": LENGTH.pack(1 << 19) + b" " * (1 << 19),
    "random bytes": bytes(range(7, 256, 3)),
    "the protocol of version 1": frame(b'{"protocol": 1, "secret": "x", "rank": 1, "size": 3, "mine": {}}'),
}


def hello_of(where: Site, rank: int, /, **changed: Any) -> bytes:
    hello = Hello(rank, where.size, {"cores": [0]}, 20.0, 20.0, process_namespace(), {})
    return frame(json.dumps({**hello.as_message(), **changed}).encode())


def without(where: Site, part: str) -> bytes:
    told = Hello(1, where.size, {"cores": [0]}, 20.0, 20.0, process_namespace(), {}).as_message()
    del told[part]
    return frame(json.dumps(told).encode())


def strangers(where: Site, secret: str) -> dict[str, list[Step]]:
    """Return the steps of processes without the secret; a step is called with the connection."""
    steps: dict[str, list[Step]] = {
        name: [lambda peer, data=data: send(peer, data)] for name, data in NONSENSE.items()
    }
    wrong = preamble("a guess") + hello_of(where, 1)
    return {
        **steps,
        "nothing": [stay],
        "an end at once": [],
        "half a preamble": [lambda peer: send(peer, preamble(secret)[:20]), stay],
        "half a preamble, then an end of sending": [
            lambda peer: send(peer, preamble(secret)[:20]),
            half_close,
            stay,
        ],
        "a wrong secret": [lambda peer: send(peer, wrong)],
        "a secret with one bit wrong": [
            lambda peer: send(peer, preamble(secret)[:-1] + bytes([preamble(secret)[-1] ^ 1]) + hello_of(where, 1))
        ],
        "a byte now and then": [lambda peer: drip(peer, wrong)],
    }


def confused(where: Site, secret: str) -> dict[str, list[Step]]:
    """Return the steps of processes with the secret whose further messages are not those of a rank."""
    hellos = {
        "a rank that is a text": hello_of(where, 1, rank="1"),
        "a rank that is true": hello_of(where, 1, rank=True),
        "a rank that is a fraction": hello_of(where, 1, rank=1.0),
        "a size that is a list": hello_of(where, 1, size=[3]),
        "a time that is no number": hello_of(where, 1, left_s=float("nan")),
        "an endless time": hello_of(where, 1, timeout_s=float("inf")),
        "a time that is a text": hello_of(where, 1, timeout_s="4"),
        "cores that are texts": hello_of(where, 1, resources={"cores": ["0"]}),
        "cores in cores": hello_of(where, 1, resources={"cores": [[0]]}),
        "other resources": hello_of(where, 1, resources={"colours": [0]}),
        "resources that are a list": hello_of(where, 1, resources=[0]),
        "a fingerprint that is a list": hello_of(where, 1, fingerprint=[]),
        "a fingerprint of numbers": hello_of(where, 1, fingerprint={"a": 1}),
        "a namespace that is a number": hello_of(where, 1, process_namespace=4),
        "an unknown part": hello_of(where, 1, more=1),
        "no rank": without(where, "rank"),
        "another rank 0": hello_of(where, 0),
        **NONSENSE,
    }
    said = {name: [lambda peer, data=data: send(peer, preamble(secret) + data)] for name, data in hellos.items()}
    start = preamble(secret) + hello_of(where, 1)
    return {
        **{f"the secret, then {name}": steps for name, steps in said.items()},
        "the secret, then nothing": [lambda peer: send(peer, preamble(secret)), stay],
        "the secret, then an end": [lambda peer: send(peer, preamble(secret))],
        "half a hello": [lambda peer: send(peer, start[:-30]), stay],
        "half a hello, then an end": [lambda peer: send(peer, start[:-30])],
        "half a hello, then an end of sending": [lambda peer: send(peer, start[:-30]), half_close, stay],
    }


def play_strangers(where: Site, user: int, named: list[str], secret_known: bool) -> int:
    """Connect once for each fault and play them concurrently, each in a process; return their number."""
    if user != os.getuid():
        os.setgid(user)
        os.setuid(user)
    children, parent = [], os.getpid()
    for name in named:
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                die_with_parent(parent)
                connection, secret = connected(where)
                for step in (confused if secret_known else strangers)(where, secret)[name]:
                    step(connection)
            os._exit(0)
        children.append(child)
    time.sleep(LIMIT_S)
    return len(children)


def crowd(where: Site, user: int, count: int) -> None:
    """Open connections for four seconds and keep the last ``count`` of them."""
    if user != os.getuid():
        os.setgid(user)
        os.setuid(user)
    ends_s = time.monotonic() + 4
    connections: list[Connection] = []
    while time.monotonic() < ends_s:
        with suppress(OSError, TimeoutError):
            connections.append(connected(where)[0])
        if len(connections) > count:
            connections.pop(0).close()


def same_hello(
    where: Site, rank: int, changed: dict[str, Any], after: list[Step], protocol: int | None, come: Any
) -> None:
    """Once another rank is connected, send the hello of a rank, which may be wrong, and then play further steps."""
    come.wait(10)
    connection, secret = connected(where)
    start = preamble(secret) if protocol is None else preamble(secret, protocol)
    send(connection, start + hello_of(where, rank, **changed))
    for step in after:
        step(connection)


def read_payload(connection: Connection) -> None:
    """Wait for the payload of rank 0."""
    connection.socket.setblocking(False)
    connection.wait_for_message(time.monotonic() + 10, descriptors=1)


# ---- a rank 0 that fails -----------------------------------------------------------------------------------------


def play_rank_0(where: Site, after: list[Step]) -> None:
    """Act as rank 0 up to the first connection, and then play further steps."""
    with where.address.reserve() as socket_address, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(socket_address.socket)
        listener.listen(8)
        connection = Connection(listener.accept()[0])
        connection.socket.settimeout(5.0)
        for step in after:
            step(connection)


def read_hello(connection: Connection) -> None:
    connection.socket.settimeout(5.0)
    connection.socket.recv(1 << 16)


def send_payload(connection: Connection, **changed: Any) -> None:
    """Send a payload that is right except for the changed parts, with the descriptor of an empty file."""
    told = {"processes": [os.getpid(), connection.process], "config": {}, **changed}
    with tempfile.TemporaryFile() as file:
        connection.send({name: value for name, value in told.items() if value is not None}, [file.fileno()])
