"""Faults of a rendezvous over TCP: every rank raises an error that names the cause, and strangers do no harm."""

from __future__ import annotations

import os
import secrets
import socket
import time

import pytest

from network_ranks import TOKEN, Job, Rank, Seen, be_rank, free_port, run_ranks
from rendezvous_faults import LIMIT_S, NONSENSE, Started, frame
from unisono.bootstrap import messages, network_messages
from unisono.bootstrap.network_handshake import (
    ANSWER,
    FROM_RANK,
    FROM_RANK_0,
    GO_ON,
    GREETING,
    PROOF_BYTES,
    digest,
    is_proved,
    make_answer,
    make_greeting,
    prove,
    read_greeting,
)
from unisono.errors import CommError

FAST_S = 10.0  # on a busy machine; far below the timeouts of the ranks


def check_failure(seen: list[Seen], kind: str, template, *, parts: tuple[str, ...] = ()) -> None:
    """Check that all ranks have raised the same error, soon, and left nothing behind."""
    for each in seen:
        assert (each.kind, each.id) == (kind, template.id), each.text
        assert each.seconds < FAST_S
        assert each.descriptors == 0
        for part in parts:
            assert part in each.text


# ---- faults of ranks -----------------------------------------------------------------------------------------------


def test_a_wrong_token_is_named_on_the_rank_that_has_it_and_on_rank_0():
    job = Job("abb", timeout_s=2.0)
    seen = run_ranks(job, Rank(0), Rank(1), Rank(2, plan={"token": "another token, 16+"}))
    assert seen[2].id == network_messages.WRONG_TOKEN.id
    assert "rank 2 on b was refused by rank 0 at 127.0.0.1" in seen[2].text
    assert seen[2].seconds < FAST_S
    for each in seen[:2]:
        assert each.id == network_messages.FAR_RANKS_MISSING.id
        assert "have not connected to rank 0 at 127.0.0.1" in each.text
        assert ": 2; connected: 0 on a, 1 on b (127.0.0.1:" in each.text
        assert "was refused as rank 2: its token differs)" in each.text
        assert each.descriptors == 0


def test_ranks_that_are_missing_are_named_with_those_that_are_connected():
    job = Job("aabbbb", timeout_s=1.5)
    seen = run_ranks(job, Rank(0), Rank(1), Rank(3))
    parts = ("after 1.5 s; these ranks of 6", ": 2, 4-5; connected: 0-1 on a, 3 on b; hint: check that they were")
    check_failure(seen, "CollectiveTimeout", network_messages.FAR_RANKS_MISSING, parts=parts)


def test_the_shortest_timeout_ends_the_rendezvous_for_all():
    seen = run_ranks(Job("abb"), Rank(0), Rank(1, timeout_s=1.0))
    check_failure(seen, "CollectiveTimeout", network_messages.FAR_RANKS_MISSING, parts=("timed out after 1 s",))


def test_a_rank_that_cannot_reach_rank_0_says_why():
    job = Job("ab", timeout_s=0.5)
    (seen,) = run_ranks(job, Rank(1))
    parts = ("rank 1 on b timed out after 0.5 s", f"127.0.0.1:{job.port}: Connection refused")
    check_failure([seen], "CollectiveTimeout", network_messages.RANK_0_UNREACHABLE, parts=parts)


def test_a_name_that_never_resolves_is_named():
    def never(host: str, port: int):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    (seen,) = run_ranks(Job("ab", timeout_s=0.5), Rank(1, plan={"host": "nosuch"}, resolve=never))
    parts = ("rank 0 at nosuch:", "the name does not resolve (Name or service not known)")
    check_failure([seen], "CollectiveTimeout", network_messages.RANK_0_UNREACHABLE, parts=parts)


def test_ranks_that_disagree_on_the_size_raise_an_error():
    seen = run_ranks(Job("abb"), Rank(0), Rank(1), Rank(2, size=5))
    text = "connect: rank 2 was started with size 5, rank 0 with size 3"
    check_failure(seen, "MismatchError", messages.OTHER_SIZE, parts=(text,))


def test_a_rank_that_starts_after_the_failure_is_told_too():
    seen = run_ranks(Job("abb"), Rank(0), Rank(1, delay_s=0.8), Rank(2, size=5))
    check_failure(seen, "MismatchError", messages.OTHER_SIZE)


def test_two_processes_with_the_same_rank_are_named():
    seen = run_ranks(Job("abb"), Rank(0), Rank(1), Rank(1))
    parts = ("two processes are rank 1: process", "on b and process")
    check_failure(seen, "MismatchError", network_messages.FAR_RANK_TWICE, parts=parts)


def test_a_second_rank_0_cannot_take_the_address(monkeypatch):
    from unisono.bootstrap import network_server

    monkeypatch.setattr(network_server, "BIND_S", 0.2)  # inherited by the processes
    job = Job("ab")
    with socket.create_server(("127.0.0.1", job.port)):
        (seen,) = run_ranks(job, Rank(0))
    parts = (f"rank 0 cannot listen at 127.0.0.1:{job.port}: Address already in use",)
    check_failure([seen], "CommError", network_messages.CANNOT_LISTEN, parts=parts)


def test_another_version_of_unisono_is_named():
    seen = run_ranks(Job("ab"), Rank(0), Rank(1, version="0.0.9"))
    check_failure(seen, "MismatchError", network_messages.OTHER_UNISONO, parts=("rank 1 on b uses Unisono 0.0.9",))


def test_another_protocol_is_named_on_the_rank_that_has_it():
    job = Job("ab", timeout_s=2.0)
    seen = run_ranks(job, Rank(0), Rank(1, step=None, plan={}, resolve=with_protocol_9))
    assert (seen[1].kind, seen[1].id) == ("MismatchError", network_messages.OTHER_PROTOCOL.id)
    assert "was refused as rank 1: it uses another version of Unisono" in seen[0].text


def with_protocol_9(host: str, port: int):
    from unisono.bootstrap import network_client, network_handshake

    network_handshake.PROTOCOL = network_client.PROTOCOL = 9
    return [(socket.AF_INET, (host, port))]


def test_the_end_of_a_rank_is_reported_to_all():
    def die(step: str) -> None:
        os._exit(1)

    job = Job("aabb")
    dying = Started(be_rank, job, Rank(3, step=die))
    try:
        seen = run_ranks(job, Rank(0), Rank(1), Rank(2))
    finally:
        dying.end()
    check_failure(seen, "PeerLost", network_messages.FAR_ENDED, parts=("rank 3 (process", "on b) ended"))
    assert {each.about for each in seen} == {3}


@pytest.mark.parametrize("step", ["courier", "near", "confirm"])
@pytest.mark.parametrize("failing", [0, 1, 2, 3])
def test_an_error_on_any_rank_reaches_all_hosts_at_every_step(step, failing):
    def fail(name: str) -> None:
        if name == step:
            raise CommError(messages.ERROR_ON_RANK(rank=failing, reason="the disk is full"), rank=failing)

    job = Job("abab")
    seen = run_ranks(job, *(Rank(rank, step=fail if rank == failing else None) for rank in range(4)))
    check_failure(seen, "CommError", messages.ERROR_ON_RANK, parts=(f"rank {failing}: the disk is full",))
    assert {each.about for each in seen} == {failing}


def test_the_end_of_rank_0_is_reported_to_all():
    def die(step: str) -> None:
        os._exit(1)

    job = Job("abb")
    dying = Started(be_rank, job, Rank(0, step=die))
    try:
        seen = run_ranks(job, Rank(1), Rank(2))
    finally:
        dying.end()
    check_failure(seen, "PeerLost", network_messages.RANK_0_ENDED)


# ---- strangers -----------------------------------------------------------------------------------------------------


def dialed(job: Job) -> socket.socket:
    ends_s = time.monotonic() + LIMIT_S
    while time.monotonic() < ends_s:
        try:
            sock = socket.create_connection((job.address, job.port), timeout=2.0)
        except OSError:
            time.sleep(0.005)
            continue
        if sock.getsockname() != sock.getpeername():  # a connection of a socket to itself
            return sock
        sock.close()
    raise TimeoutError


def stay(sock: socket.socket) -> None:
    time.sleep(LIMIT_S)


def strange(job: Job, data: bytes) -> None:
    """Send bytes to rank 0 and stay."""
    sock = dialed(job)
    try:
        sock.sendall(data)
    finally:
        stay(sock)


def drip(job: Job, data: bytes) -> None:
    sock = dialed(job)
    for byte in data:
        sock.sendall(bytes([byte]))
        time.sleep(0.02)
    stay(sock)


GARBAGE = {
    **NONSENSE,
    "nothing": b"",
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 10,
    "half a greeting": make_greeting(1, 2, "a job")[:50],
    "a greeting, then nothing": make_greeting(1, 2, "a job"),
    "a greeting of another job": make_greeting(1, 2, "another job"),
    "a greeting with a false proof": make_greeting(1, 2, "a job") + secrets.token_bytes(PROOF_BYTES),
    "a greeting with no proof but a hello": make_greeting(1, 2, "a job") + frame(b'{"version": "0.1.0"}'),
    "a greeting with zeros": make_greeting(1, 2, "a job") + bytes(PROOF_BYTES),
    "a megabyte": secrets.token_bytes(1 << 20),
}


def test_garbage_and_silence_of_strangers_neither_end_nor_delay_the_rendezvous():
    job = Job("ab")
    strangers = [(strange, job, data) for data in GARBAGE.values()]
    strangers += [(drip, job, data) for data in (make_greeting(1, 2, "a job"), bytes(200))]
    seen = run_ranks(job, Rank(0), Rank(1, delay_s=1.0), beside=strangers)
    assert [each.text for each in seen] == ["", ""]
    assert seen[1].seconds < FAST_S


def crowd(job: Job, seconds: float) -> None:
    """Open connections without a pause, and keep many of them."""
    ends_s, kept = time.monotonic() + seconds, []
    while time.monotonic() < ends_s:
        try:
            kept.append(dialed(job))
        except OSError:
            continue
        if len(kept) > 500:
            kept.pop(0).close()


def test_thousands_of_connections_do_not_keep_the_ranks_out():
    job = Job("ab")
    seen = run_ranks(job, Rank(0), Rank(1, delay_s=1.0), beside=[(crowd, job, 8.0)] * 2)
    assert [each.text for each in seen] == ["", ""]
    assert seen[0].descriptors == 0


def play_rank(job: Job, after: bytes) -> bytes:
    """Prove that this process belongs to the job, and send further bytes; return what rank 0 answers."""
    sock = dialed(job)
    greeting = make_greeting(1, 2, job.name)
    sock.sendall(greeting)
    answer = sock.recv(ANSWER.size, socket.MSG_WAITALL)
    sock.sendall(prove(job.token, FROM_RANK, greeting, answer))
    assert is_proved(sock.recv(PROOF_BYTES, socket.MSG_WAITALL), job.token, FROM_RANK_0, greeting, answer)
    sock.sendall(after)
    return sock.recv(1 << 16)


@pytest.mark.parametrize("name", NONSENSE)
def test_a_process_with_the_token_and_a_malformed_hello_is_refused(name):
    job = Job("ab", timeout_s=1.0)
    seen = run_ranks(job, Rank(0), beside=[(play_rank, job, NONSENSE[name])])
    assert seen[0].id == network_messages.FAR_RANKS_MISSING.id
    assert seen[0].descriptors == 0


def test_a_recorded_proof_is_of_no_use():
    job = Job("ab", timeout_s=2.0)
    greeting = make_greeting(1, 2, job.name)
    recorded = greeting + prove(TOKEN, FROM_RANK, greeting, make_answer(GO_ON))
    seen = run_ranks(job, Rank(0), beside=[(strange, job, recorded)])
    assert "its token differs" in seen[0].text


def test_a_proof_of_one_direction_is_not_one_of_the_other():
    greeting, answer = make_greeting(1, 2, "a job"), make_answer(GO_ON)
    proof = prove(TOKEN, FROM_RANK, greeting, answer)
    assert is_proved(proof, TOKEN, FROM_RANK, greeting, answer)
    assert not is_proved(proof, TOKEN, FROM_RANK_0, greeting, answer)
    assert not is_proved(proof, TOKEN + "x", FROM_RANK, greeting, answer)


@pytest.mark.parametrize("position", range(0, GREETING.size, 5))
def test_a_proof_covers_every_byte_of_the_greeting(position):
    greeting, answer = make_greeting(1, 2, "a job"), make_answer(GO_ON)
    altered = bytearray(greeting)
    altered[position] ^= 1
    proof = prove(TOKEN, FROM_RANK, greeting, answer)
    assert not is_proved(proof, TOKEN, FROM_RANK, bytes(altered), answer)


def test_a_greeting_contains_a_digest_of_the_job_and_no_token():
    greeting = make_greeting(3, 8, "a job")
    parts = read_greeting(greeting)
    assert parts is not None
    assert (parts.rank, parts.size, parts.job) == (3, 8, digest("a job"))
    assert TOKEN.encode() not in greeting


# ---- a false rank 0 ------------------------------------------------------------------------------------------------


def play_rank_0(port: int, answers: list[bytes]) -> None:
    """Listen instead of rank 0, and answer whatever arrives."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        while True:
            sock, _ = listener.accept()
            for answer in answers:
                sock.recv(1 << 16)
                sock.sendall(answer)


@pytest.mark.parametrize(
    ("answers", "kind", "template"),
    [
        ([make_answer(GO_ON), secrets.token_bytes(PROOF_BYTES)], "CommError", network_messages.FALSE_RANK_0),
        ([make_answer(GO_ON), bytes(PROOF_BYTES)], "UsageError", network_messages.WRONG_TOKEN),
        ([b"SSH-2.0-OpenSSH\r\n" * 9], "CollectiveTimeout", network_messages.RANK_0_UNREACHABLE),
        ([], "CollectiveTimeout", network_messages.RANK_0_UNREACHABLE),
    ],
)
def test_a_rank_sends_no_hello_to_a_process_without_the_token(answers, kind, template):
    job = Job("ab", free_port(), timeout_s=1.5)
    (seen,) = run_ranks(job, Rank(1), beside=[(play_rank_0, job.port, answers)])
    assert (seen.kind, seen.id) == (kind, template.id), seen.text
