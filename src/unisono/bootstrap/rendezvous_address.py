"""The address at which the ranks of a job knock: a Unix socket, and the secret that one must know to come in."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.private_directory import (
    directory_of_rank_0,
    job_directory,
    read_secret,
    remove_quietly,
    write_secret,
)


class SocketAddress(NamedTuple):
    """Where to knock, and what to say.

    A rank asks for the secret once it is connected: before, there may be the secret of a job that was killed.
    """

    socket: str
    secret: Callable[[], str]


class Address(ABC):
    """Where the ranks of a job meet."""

    @abstractmethod
    def reserve(self) -> AbstractContextManager[SocketAddress]:
        """Rank 0: give the socket_address, and remove what was made for it afterwards.

        DirectoryTaken if another process is rank 0 here.
        """

    @abstractmethod
    def resolve(self) -> AbstractContextManager[SocketAddress]:
        """The others: give the socket_address; FileNotFoundError if it is not there yet."""


class DirectoryAddress(Address):
    """A address in a directory that only its owner may enter. ``number`` counts the meetings of a job."""

    def __init__(self, identity: RankIdentity, number: int) -> None:
        self.identity, self.name = identity, f"door-{number}"

    @contextmanager
    def reserve(self) -> Iterator[SocketAddress]:
        """Rank 0: give the socket_address, and remove what was made for it afterwards."""
        launched = self.identity.launcher == "unisono"  # then the secret is there, and stays
        with directory_of_rank_0(self.identity) as directory:
            remove_quietly(directory, self.name)
            secret = read_secret(directory) if launched else write_secret(directory, secrets.token_hex(32))
            try:
                yield SocketAddress(self._path(directory), lambda: secret)
            finally:
                remove_quietly(directory, self.name)
                if not launched:
                    remove_quietly(directory, "secret")

    @contextmanager
    def resolve(self) -> Iterator[SocketAddress]:
        """The others: give the socket_address; FileNotFoundError if it is not there yet."""
        with job_directory(self.identity) as directory:
            yield SocketAddress(self._path(directory), lambda: read_secret(directory))

    def _path(self, directory: int) -> str:
        # Through the directory's descriptor: the path of a socket may have no more than 107 letters.
        return f"/proc/self/fd/{directory}/{self.name}"


class AbstractAddress(Address):
    """A address without a file, known by a name that nobody can guess: there is nothing that could be left behind.

    The ranks learn the name and the secret in another way. Other users can see the name and connect, which does not
    help them: rendezvous_server.py closes such a connection before it reads a byte (docs/adr/0022).
    """

    def __init__(self, name: str, secret: str) -> None:
        # \0: a socket of Linux that is not in the file system
        self.socket_address = SocketAddress(f"\0unisono-{name}", lambda: secret)

    @contextmanager
    def reserve(self) -> Iterator[SocketAddress]:
        """Rank 0: give the socket_address."""
        yield self.socket_address

    @contextmanager
    def resolve(self) -> Iterator[SocketAddress]:
        """The others: give the socket_address."""
        yield self.socket_address
