"""The door at which the ranks of a job knock: a Unix socket, and the secret that one must know to come in."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from unisono.bootstrap.environment import Place
from unisono.bootstrap.private_directory import (
    directory_of_rank_0,
    job_directory,
    read_secret,
    remove_quietly,
    write_secret,
)


class Address(NamedTuple):
    """Where to knock, and what to say.

    A rank asks for the secret once it is connected: before, there may be the secret of a job that was killed.
    """

    socket: str
    secret: Callable[[], str]


class Door(ABC):
    """Where the ranks of a job meet."""

    @abstractmethod
    def opened(self) -> AbstractContextManager[Address]:
        """Rank 0: give the address, and remove what was made for it afterwards.

        DirectoryTaken if another process is rank 0 here.
        """

    @abstractmethod
    def found(self) -> AbstractContextManager[Address]:
        """The others: give the address; FileNotFoundError if it is not there yet."""


class DirectoryDoor(Door):
    """A door in a directory that only its owner may enter. ``number`` counts the meetings of a job."""

    def __init__(self, place: Place, number: int) -> None:
        self.place, self.name = place, f"door-{number}"

    @contextmanager
    def opened(self) -> Iterator[Address]:
        """Rank 0: give the address, and remove what was made for it afterwards."""
        launched = self.place.launcher == "unisono"  # then the secret is there, and stays
        with directory_of_rank_0(self.place) as directory:
            remove_quietly(directory, self.name)
            secret = read_secret(directory) if launched else write_secret(directory, secrets.token_hex(32))
            try:
                yield Address(self._path(directory), lambda: secret)
            finally:
                remove_quietly(directory, self.name)
                if not launched:
                    remove_quietly(directory, "secret")

    @contextmanager
    def found(self) -> Iterator[Address]:
        """The others: give the address; FileNotFoundError if it is not there yet."""
        with job_directory(self.place) as directory:
            yield Address(self._path(directory), lambda: read_secret(directory))

    def _path(self, directory: int) -> str:
        # Through the directory's descriptor: the path of a socket may have no more than 107 letters.
        return f"/proc/self/fd/{directory}/{self.name}"


class NamedDoor(Door):
    """A door without a file, known by a name that nobody can guess: there is nothing that could be left behind.

    The ranks learn the name and the secret in another way. Other users can see the name and connect, which does not
    help them: reception.py closes such a connection before it reads a byte (docs/adr/0022).
    """

    def __init__(self, name: str, secret: str) -> None:
        # \0: a socket of Linux that is not in the file system
        self.address = Address(f"\0unisono-{name}", lambda: secret)

    @contextmanager
    def opened(self) -> Iterator[Address]:
        """Rank 0: give the address."""
        yield self.address

    @contextmanager
    def found(self) -> Iterator[Address]:
        """The others: give the address."""
        yield self.address
