"""The list of hosts of ``unisono run --hosts``."""

from __future__ import annotations

import pytest

from unisono.errors import UsageError
from unisono.launch.host_list import parse_hosts


def test_ranks_are_numbered_host_by_host():
    hosts = parse_hosts("a:4,me@b:3,c")
    assert [(host.name, host.address, host.ranks) for host in hosts] == [
        ("a", "a", range(4)), ("me@b", "b", range(4, 7)), ("c", "c", range(7, 8)),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "a:", "a:0", "a:4,", "a:x", "a:4;b:4", "a b:2", "a:-1"])
def test_a_malformed_list_is_an_error_that_shows_the_entry(text):
    with pytest.raises(UsageError) as raised:
        parse_hosts(text)
    assert raised.value.message.id == "launch.bad_hosts"


def test_a_host_appears_once():
    with pytest.raises(UsageError) as raised:
        parse_hosts("a:1,b:1,a:1")
    assert raised.value.message.id == "launch.host_twice"
