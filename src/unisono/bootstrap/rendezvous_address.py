"""The address at which the ranks of a job connect to rank 0: a Unix socket, and the secret that a rank must know."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.private_directory import (
    SECRET,
    directory_of_rank_0,
    job_directory,
    read_secret,
    remove_quietly,
    write_secret,
)


class SocketAddress(NamedTuple):
    """The name of a socket, and the secret to send.

    A rank reads the secret once it is connected: before, the file may hold the secret of a job that was killed.
    """

    socket: str
    secret: Callable[[], str]


class Address(ABC):
    """The address of a rendezvous."""

    @abstractmethod
    def reserve(self) -> AbstractContextManager[SocketAddress]:
        """On rank 0: yield the socket address, and remove its files afterwards.

        Raise DirectoryTaken if another process is rank 0 at this address.
        """

    @abstractmethod
    def resolve(self) -> AbstractContextManager[SocketAddress]:
        """On the other ranks: yield the socket address; FileNotFoundError if it does not exist yet."""


class DirectoryAddress(Address):
    """A socket in the private directory of a job. ``number`` counts the rendezvous of the job."""

    def __init__(self, identity: RankIdentity, number: int) -> None:
        self.identity, self.name = identity, f"rendezvous-{number}"

    @contextmanager
    def reserve(self) -> Iterator[SocketAddress]:
        """On rank 0: yield the socket address, and remove its files afterwards."""
        has_secret = self.identity.launcher == "unisono"  # the launcher has written the secret, and removes it
        with directory_of_rank_0(self.identity) as directory:
            remove_quietly(directory, self.name)
            secret = read_secret(directory) if has_secret else write_secret(directory, secrets.token_hex(32))
            try:
                yield SocketAddress(self._path(directory), lambda: secret)
            finally:
                remove_quietly(directory, self.name)
                if not has_secret:
                    remove_quietly(directory, SECRET)

    @contextmanager
    def resolve(self) -> Iterator[SocketAddress]:
        """On the other ranks: yield the socket address; FileNotFoundError if it does not exist yet."""
        with job_directory(self.identity) as directory:
            yield SocketAddress(self._path(directory), lambda: read_secret(directory))

    def _path(self, directory: int) -> str:
        # Through the descriptor of the directory: the path of a socket is limited to 107 bytes.
        return f"/proc/self/fd/{directory}/{self.name}"


class AbstractAddress(Address):
    """An abstract socket of Linux: it has a name that cannot be guessed, and no file that could be left behind.

    The ranks receive the name and the secret in another way. Other users can see the name and connect, which does not
    help them: rendezvous_server.py closes such a connection before it reads a byte (docs/adr/0022).
    """

    def __init__(self, name: str, secret: str) -> None:
        self.socket_address = SocketAddress(f"\0unisono-{name}", lambda: secret)  # \0: outside of the file system

    @contextmanager
    def reserve(self) -> Iterator[SocketAddress]:
        """On rank 0: yield the socket address."""
        yield self.socket_address

    @contextmanager
    def resolve(self) -> Iterator[SocketAddress]:
        """On the other ranks: yield the socket address."""
        yield self.socket_address
