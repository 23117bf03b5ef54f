"""Faults during the rendezvous: every fault at every step, with both kinds of addresses.

The short version puts many harmless processes into one rendezvous. The long version (marked `long`) gives each fault
its own rendezvous. Both count the faults that they inject.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from rendezvous_faults import (
    FORK,
    LIMIT_S,
    NONSENSE,
    OTHER_USER,
    Started,
    confused,
    crowd,
    half_close,
    play_rank_0,
    play_strangers,
    rank_of,
    read_hello,
    read_payload,
    same_hello,
    send,
    send_payload,
    site,
    stay,
    strangers,
)

pytestmark = [pytest.mark.slow, pytest.mark.campaign]

ADDRESSES = ("directory", "named")
TIMEOUT_S = 20.0  # the timeout of ranks that are to connect
SHORT_S = 4.0  # the timeout of ranks that must time out, after they have reached the step in question
SOON_S = 8.0  # the time within which they report that, on a busy machine
needs_root = pytest.mark.skipif(
    os.getuid() != 0, reason="SKIPPED, NOT TESTED: connections of another user (only root can become another user)"
)


def names_of(faults):
    with site("named") as where:
        return sorted(faults(where, "secret"))


STRANGERS, CONFUSED = names_of(strangers), names_of(confused)


@pytest.fixture
def started():
    """Return a function that starts processes, which end with the test."""
    found = []

    def start(function, *args):
        found.append(Started(function, *args))
        return found[-1]

    yield start
    for process in found:
        process.end()


def connect_three(started, where, timeout_s=TIMEOUT_S):
    """Connect three ranks, one of them late; return their results."""
    ranks = [started(rank_of, where, rank, timeout_s, 1.0 if rank == 2 else 0.0) for rank in range(3)]
    ends_s = time.monotonic() + LIMIT_S
    return [rank.result(ends_s) for rank in ranks]


def check_connected(found):
    assert [one.value for one in found] == [3.0] * 3, found
    assert max(one.seconds for one in found) < SOON_S, found


# ---- strangers: the ranks connect nevertheless -------------------------------------------------------------------


@pytest.mark.parametrize("address", ADDRESSES)
def test_processes_without_the_secret_disturb_no_rank(started, address, record_property):
    record_property("faults", len(STRANGERS))
    with site(address) as where:
        started(play_strangers, where, os.getuid(), STRANGERS, False)
        check_connected(connect_three(started, where))


@needs_root
def test_processes_of_another_user_disturb_no_rank(started, record_property):
    record_property("faults", len(STRANGERS) + len(CONFUSED))
    with site("named") as where:
        started(play_strangers, where, OTHER_USER, STRANGERS, False)
        started(play_strangers, where, OTHER_USER, CONFUSED, True)  # even if they knew the secret
        check_connected(connect_three(started, where))


@pytest.mark.parametrize("address", ADDRESSES)
def test_processes_with_the_secret_but_malformed_messages_disturb_no_rank(started, address, record_property):
    record_property("faults", len(CONFUSED))
    with site(address) as where:
        started(play_strangers, where, os.getuid(), CONFUSED, True)
        check_connected(connect_three(started, where))


@pytest.mark.parametrize("user", [os.getuid(), pytest.param(OTHER_USER, marks=needs_root)])
def test_many_repeated_connections_do_not_prevent_the_rendezvous(started, user):
    with site("named") as where:
        for _ in range(3):
            started(crowd, where, user, 150)
        check_connected(connect_three(started, where))


@pytest.mark.long
@pytest.mark.parametrize(
    ("address", "user"),
    [("directory", os.getuid()), ("named", os.getuid()), pytest.param("named", OTHER_USER, marks=needs_root)],
)
@pytest.mark.parametrize("fault", [*((name, False) for name in STRANGERS), *((name, True) for name in CONFUSED)])
def test_one_stranger_disturbs_no_rank(started, address, user, fault, record_property):
    record_property("faults", 1)
    with site(address) as where:
        started(play_strangers, where, user, [fault[0]], fault[1])
        check_connected(connect_three(started, where))


# ---- a rank that fails: all others name it ----------------------------------------------------------------------

# The actions of rank 1, and the expected error of the others: its class, a part of its text, the rank that it names.
FAILURES = {
    "another version": (
        {"protocol": 9}, [stay], ("MismatchError", "uses another version of Unisono than rank 0", None)
    ),
    "another size": (
        {"changed": {"size": 4}}, [stay],
        ("MismatchError", "rank 1 was started with size 4, rank 0 with size 3", None),
    ),
    "a rank that is none": ({"rank": 3}, [stay], ("MismatchError", "rank 3 connected twice, or is not in", None)),
    "a negative rank": ({"rank": -1}, [stay], ("MismatchError", "rank -1 connected twice, or is not in", None)),
    "a rank that is there": ({"rank": 2}, [stay], ("MismatchError", "rank 2 connected twice, or is not in", None)),
    "another PID namespace": (
        {"changed": {"process_namespace": "pid:[1]"}}, [stay],
        ("UsageError", "rank 1 is in another PID namespace (container) than rank 0: pid:[1]", None),
    ),
    "an end after the hello": ({}, [], ("PeerLost", "ended before all ranks were", 1)),
    "an end of sending after the hello": ({}, [half_close, stay], ("PeerLost", "ended before all ranks were", 1)),
    "data before it is asked for": (
        {}, [lambda peer: send(peer, b"x"), stay], ("CommError", "sent data before it was asked to", 1)
    ),
    "an impatient rank": (
        {"changed": {"left_s": 1.5, "timeout_s": 3.0}}, [stay],  # meanwhile, the hello of rank 2 arrives
        ("CollectiveTimeout", "after 3 s; these ranks of 4 have not connected: 3", None),
    ),
    "an end after the payload": ({}, [read_payload], ("PeerLost", "ended before all ranks were ready", 1)),
    "a stop after the payload": (
        {}, [read_payload, stay], ("CollectiveTimeout", "has not mapped the shared memory", 1)
    ),
    "an end of sending after the payload": (
        {}, [read_payload, half_close, stay], ("PeerLost", "ended before all ranks were ready", 1)
    ),
    "a problem after the payload": (
        {}, [read_payload, lambda peer: peer.send({"problem": "no room", "kind": "CommError", "rank": 1}), stay],
        ("CommError", "no room", 1),
    ),
    "a problem of an unknown kind": (
        {}, [read_payload, lambda peer: peer.send({"problem": "no room", "kind": [], "rank": "x"}), stay],
        ("CommError", "no room", None),
    ),
    "half a message after the payload": (
        {}, [read_payload, lambda peer: send(peer, b"\4\0\0\0{"), stay],
        ("CollectiveTimeout", "has not mapped the shared memory", 1),
    ),
    **{
        f"{name} after the payload": (
            {}, [read_payload, lambda peer, data=data: send(peer, data), stay], ("CommError", "connect: rank 1", 1)
        )
        for name, data in NONSENSE.items()
        if data[4:5] != b"{"
    },
}  # fmt: skip
MISSING_A_RANK = ("an impatient rank", "data before it is asked for", "an end after the hello")


def timeout_for(expected):
    """Return the timeout of ranks that are to raise such an error: on a busy machine, others must not time out."""
    return SHORT_S if expected[0] == "CollectiveTimeout" else TIMEOUT_S


def fail_in(started, where, failure):
    """Start a rendezvous in which rank 1 fails; return the other ranks and the expected error."""
    hello, after, expected = FAILURES[failure]
    come = FORK.Event()
    if failure in MISSING_A_RANK:
        where = replace(where, size=where.size + 1)  # so that the others still wait when it happens
    hello = {"rank": 1, "changed": {}, "protocol": None, **hello}
    timeout_s = timeout_for(expected)
    ranks = [started(rank_of, where, 0, timeout_s), started(rank_of, where, 2, timeout_s, 0.0, come)]
    started(same_hello, where, hello["rank"], hello["changed"], after, hello["protocol"], come)
    return ranks, expected


def check_failed(found, expected, failure):
    kind, words, about = expected
    assert found.kind == kind, (failure, found)
    assert words in found.text, (failure, found)
    assert found.about == about, (failure, found)
    assert found.seconds < SHORT_S + SOON_S, (failure, found)


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("part", range(3))
def test_when_a_rank_fails_at_any_step_every_other_rank_names_it_and_the_reason(
    started, address, part, record_property
):
    jobs = []
    sites = [(failure, site(address)) for failure in sorted(FAILURES)[part::3]]
    try:
        for failure, made in sites:
            jobs.append((failure, *fail_in(started, made.__enter__(), failure)))
        ends_s = time.monotonic() + LIMIT_S
        for failure, (first, other), expected in jobs:
            check_failed(first.result(ends_s), expected, failure)
            check_failed(other.result(ends_s), expected, failure)
        record_property("faults", len(jobs))
    finally:
        for _, made in sites:
            made.__exit__(None, None, None)


def test_a_rank_that_never_connects_is_named_by_all_others(started):
    for address in ADDRESSES:
        with site(address) as where:
            ranks = [started(rank_of, where, rank, SHORT_S, 0.2 * rank) for rank in (0, 2)]
            ends_s = time.monotonic() + LIMIT_S
            for rank in ranks:
                found = rank.result(ends_s)
                check_failed(
                    found, ("CollectiveTimeout", "these ranks of 3 have not connected: 1", None), "never comes"
                )


# ---- a rank 0 that fails ----------------------------------------------------------------------------------------

FAILURES_OF_RANK_0 = {
    "an end after the connection": ([], ("PeerLost", "ended before all ranks were connected")),
    "a stop after the connection": ([stay], ("CollectiveTimeout", f"has not answered within {SHORT_S:.0f} s")),
    "an end of sending": ([half_close, stay], ("CollectiveTimeout", f"has not answered within {SHORT_S:.0f} s")),
    "an end after the hello": ([read_hello], ("PeerLost", "ended before all ranks were connected")),
    "half a payload": (
        [read_hello, lambda peer: send(peer, b"\4\0\0\0{"), stay],
        ("CollectiveTimeout", f"has not answered within {SHORT_S:.0f} s"),
    ),
    "a payload without processes": (
        [read_hello, lambda peer: send_payload(peer, processes=None), stay],
        ("CommError", "sent a payload with config;"),
    ),
    "a payload with too few processes": (
        [read_hello, lambda peer: send_payload(peer, processes=[1]), stay], ("CommError", "sent a payload with")
    ),
    "a payload whose config is a list": (
        [read_hello, lambda peer: send_payload(peer, config=[]), stay], ("CommError", "sent a payload with")
    ),
    "a payload without a descriptor": (
        [read_hello, lambda peer: peer.send({"processes": [1, 2], "config": {}}), stay],
        ("CommError", "rank 1 has no file descriptor left"),
    ),
    "a problem": (
        [read_hello, lambda peer: peer.send({"problem": "no", "kind": "PeerLost", "rank": 0}), stay],
        ("PeerLost", "no"),
    ),
    "a problem of an unknown kind": (
        [read_hello, lambda peer: peer.send({"problem": "no", "kind": "SystemExit", "rank": 0}), stay],
        ("CommError", "no"),
    ),
    **{
        f"{name} as a payload": (
            [read_hello, lambda peer, data=data: send(peer, data), stay], ("CommError", "connect: rank 0 (process")
        )
        for name, data in NONSENSE.items()
        if data[4:5] != b"{"
    },
}  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_when_rank_0_fails_at_any_step_the_others_report_it(started, address, record_property):
    record_property("faults", len(FAILURES_OF_RANK_0))
    sites = [(failure, site(address, 2)) for failure in sorted(FAILURES_OF_RANK_0)]
    jobs = []
    try:
        for failure, made in sites:
            where = made.__enter__()
            steps, expected = FAILURES_OF_RANK_0[failure]
            started(play_rank_0, where, steps)
            jobs.append((failure, started(rank_of, where, 1, timeout_for(expected))))
        ends_s = time.monotonic() + LIMIT_S
        for failure, rank in jobs:
            about = 1 if failure == "a payload without a descriptor" else 0
            check_failed(rank.result(ends_s), (*FAILURES_OF_RANK_0[failure][1], about), failure)
    finally:
        for _, made in sites:
            made.__exit__(None, None, None)


def test_the_number_of_faults_is_that_in_the_documentation():
    strangers_short = 2 * len(STRANGERS) + (len(STRANGERS) + len(CONFUSED)) + 2 * len(CONFUSED) + 2
    failures = 2 * len(FAILURES) + 2 + 2 * len(FAILURES_OF_RANK_0)
    long = 3 * (len(STRANGERS) + len(CONFUSED))
    assert (strangers_short + failures, long) == (259, 165)
