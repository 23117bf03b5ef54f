"""The methods of a communicator that make others: of a part of its ranks, of all, or of those that are left."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from unisono.bootstrap.growth import grow_link
from unisono.bootstrap.survivors import check_can_shrink, link_of_survivors
from unisono.comm import messages
from unisono.comm.dispatch import Dispatcher, check_timeout
from unisono.comm.machine import load_tuning
from unisono.errors import UsageError

if TYPE_CHECKING:
    from unisono.bootstrap.membership import Link
    from unisono.comm.communicator import Communicator


class GroupMethods:
    """What a communicator does with groups of its ranks."""

    dispatcher: Dispatcher

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher
        self._parts: weakref.WeakSet[Communicator] = weakref.WeakSet()  # what was split from this one
        self._successor: Callable[[], Communicator | None] = lambda: None  # what was made of it, and replaces it

    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """Return a communicator of all ranks that pass the same ``color``, in the order of ``key``, then of ranks.

        Every rank must call this. A rank whose color is None joins no group and gets None. The default of ``key`` is
        0. A communicator and those split from it are independent: either can be closed first. One without any
        reference is closed. UsageError is raised if ``color`` or ``key`` is not an integer, and a CommError if
        communication fails. For example, the even and the odd ranks::

            half = comm.split(comm.rank % 2)
            half.all_reduce(x)
        """
        return self._part(self.dispatcher.link.split(self, color, key))

    def duplicate(self) -> Communicator:
        """Return another communicator of the same ranks, whose calls have a separate order. All ranks call this."""
        link = self.dispatcher.link
        made = self._part(link.spare_duplicate() or link.split(self, 0, link.rank))
        assert made is not None
        return made

    def shrink(self, *, timeout: float | None = None) -> Communicator:
        """Return a communicator of the ranks that are left, after a call has failed. Every one of them calls this.

        The ranks are numbered from 0 in the old order; ``parent_ranks`` and ``job_ranks`` list their old numbers.
        Ranks that have ended are left out at once. A rank that does not call ``shrink`` within ``timeout`` seconds of
        another one (default: the timeout of the communicator) is excluded: its next call raises Excluded. A rank may
        be lost at any time, also in this call.

        Calls that are running fail, on this communicator and on those that were split from it; this one is closed.
        Also where nothing has failed yet, one rank can call this: the calls of the others then raise Aborted.
        UsageError is raised if ranks are on several hosts, or if ``timeout`` is not a positive number. For example::

            while True:
                try:
                    comm.all_reduce(x)
                    break
                except unisono.CommError:
                    comm = comm.shrink()
        """
        link = self.dispatcher.link
        check_timeout("shrink", timeout)
        check_can_shrink(link)
        for part in self._open_parts():
            part.dispatcher.link.endpoint.break_to_shrink()
        return self._replace(link_of_survivors(link, self.dispatcher.limit(timeout)))

    def grow(self, *, expected: int | None = None, timeout: float = 0.0) -> Communicator:
        """Admit processes that wait in ``unisono.join``, and return the communicator of all. Every rank calls this.

        The ranks keep their numbers, and those that join follow. By default, only processes that wait already are
        admitted; with ``expected``, the ranks wait for this number of processes, for at most ``timeout`` seconds
        (default 0). If no process joins, this communicator is returned; otherwise it is closed. The arguments of rank
        0 count. Make this call on the communicator of the whole job, and split it again afterwards.

        If a process that joins is lost meanwhile, a CommError is raised and this communicator can still be used. If
        one of the ranks of this communicator is lost, it is broken: call ``shrink``. UsageError is raised if ranks
        are on several hosts, or if the arguments cannot work.
        """
        link = self.dispatcher.link
        link.check_open("grow")
        if not (expected is None or (type(expected) is int and expected >= 0)):
            raise UsageError(messages.BAD_EXPECTED(expected=repr(expected)))
        if not (isinstance(timeout, int | float) and 0 <= timeout < float("inf")):
            raise UsageError(messages.BAD_GROW_TIMEOUT(timeout=repr(timeout)))
        made = grow_link(link, self, expected, timeout, load_tuning)
        return self._replace(made) if made is not None else self._same()

    @property
    def join_address(self) -> str:
        """The address for ``unisono.join``. A process of this user that knows it can join the job: keep it secret."""
        return self.dispatcher.link.config.join_address

    def abort(self, reason: str) -> None:
        """Break the communicator: every rank that waits in a call, or makes one, raises Aborted with ``reason``."""
        self.dispatcher.link.endpoint.abort(reason)

    @property
    def can_duplicate_locally(self) -> bool:
        """Whether the next ``duplicate`` needs no messages: then every rank may call it at any time."""
        return self.dispatcher.link.has_spare_duplicate

    @property
    def job_ranks(self) -> tuple[int, ...]:
        """The rank in the job of each rank; errors name ranks in this way."""
        return tuple(self.dispatcher.link.job_ranks)

    @property
    def parent_ranks(self) -> tuple[int, ...]:
        """The rank of each rank in the communicator that this one was made of, by ``split``, ``shrink`` or ``grow``.

        It is -1 for a rank that has joined.
        """
        return tuple(self.dispatcher.link.parent_ranks)

    def close(self) -> None:
        """Finish the calls that were started, and leave; the other ranks no longer wait for this one.

        Communicators that were split from this one stay open.
        """
        self.dispatcher.link.close()

    def _part(self, link: Link | None) -> Communicator | None:
        if link is None:
            return None
        made = self._of(link)
        self._parts.add(made)
        return made

    def _replace(self, link: Link) -> Communicator:
        """Return the communicator that replaces this one, which is closed."""
        made = self._of(link)
        self._successor = weakref.ref(made)
        self.close()
        return made

    def _open_parts(self) -> list[GroupMethods]:
        """Return the open ones of this communicator, those that replace it, and all that were split from them."""
        successor = self._successor()
        made = [*self._parts, *([] if successor is None else [successor])]
        parts = [each for part in made for each in part._open_parts()]
        return [*parts, self] if not self.dispatcher.link.closed else parts

    def _and_successors(self) -> list[GroupMethods]:
        successor = self._successor()
        return [self] if successor is None else [self, *successor._and_successors()]

    def _same(self) -> Communicator:
        raise NotImplementedError

    def _of(self, link: Link) -> Communicator:
        raise NotImplementedError
