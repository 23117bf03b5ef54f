"""The hosts of ``unisono run --hosts``, and the ranks of each."""

from __future__ import annotations

import re
from dataclasses import dataclass

from unisono.errors import UsageError
from unisono.launch import messages

HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.%\w]+\]|[\w.@-]+)(?::(?P<count>\d{1,6}))?")


@dataclass(frozen=True)
class Host:
    """A host of a job, and its ranks, which are consecutive."""

    name: str  # as ssh takes it: perhaps with a user in front; an IPv6 address without brackets
    ranks: range

    @property
    def address(self) -> str:
        """The name without the user."""
        return self.name.rpartition("@")[2]


def parse_hosts(text: str) -> list[Host]:
    """Return the hosts of a list such as ``a:4,b:4``; a host without a number has one rank."""
    hosts: list[Host] = []
    for entry in text.split(","):
        match = HOST.fullmatch(entry.strip())
        count = 0 if match is None else int(match["count"] or 1)
        if match is None or count == 0:
            raise UsageError(messages.BAD_HOSTS(entry=entry, text=text))
        first = hosts[-1].ranks.stop if hosts else 0
        hosts.append(Host(match["name"].strip("[]"), range(first, first + count)))
    names = [host.name for host in hosts]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(messages.HOST_TWICE(host=name, text=text))
    return hosts
