"""Jobs on several hosts over TLS: the same results, encrypted; processes without a right certificate are refused."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

import unisono
from certificates import needs_openssl
from network_ranks import Job, Rank, be_rank, call_on_ranks, die_in_a_call, outcome_of_call, pretend_host, run_ranks
from pretend_hosts import Security, run_on_hosts
from rendezvous_faults import LIMIT_S, Started
from unisono.bootstrap import network_messages
from unisono.bootstrap.network_handshake import FROM_RANK, GO_ON, is_proved, make_answer, make_greeting, prove
from unisono.bootstrap.network_membership import connect_link_over_network
from unisono.bootstrap.tls import Tls
from unisono.bootstrap.tls_connection import TlsCredentials
from unisono.comm.communicator import Communicator

pytestmark = needs_openssl
TOKEN = "0123456789abcdef"
CERTIFICATES = 5  # the index in what a courier is told


def connected(job, rank):
    host = pretend_host(job.hosts[rank])
    link = connect_link_over_network(job.identity(rank), job.plan(), 20.0, 30.0, 1 << 20, dict, host=host)
    return Communicator(link)


def on_ranks(job, function):
    return call_on_ranks(job, function, connected)


# ---- results -------------------------------------------------------------------------------------------------------


def sums(comm):
    """Return the bytes of sums of short and long vectors, a message, and the transport."""
    results = []
    for count in (1, 5000, 1_500_000):
        x = np.random.default_rng(comm.rank).random(count, dtype=np.float32)
        comm.all_reduce(x)
        results.append(x.tobytes())
    received = np.empty(300_000)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    work = comm.send(np.full(300_000, comm.rank * 1.0), dst=right, async_op=True)
    comm.recv(received, src=left)
    work.wait()
    results.append(received.tobytes())
    return results, comm.transport


def test_results_have_the_same_bits_as_without_tls(tls):
    plain = on_ranks(Job("aab"), sums)
    secure = on_ranks(Job("aab", tls=tls), sums)
    for rank in range(3):
        assert secure[rank][0] == plain[rank][0]
        assert plain[rank][1].startswith("tcp (")
        assert secure[rank][1].startswith("tcp with TLS (OpenSSL 3.")


def test_couriers_learn_the_certificates_of_all_ranks(authority, tls):
    second = authority.issue("second")
    seen = run_ranks(Job("abb", tls=tls), Rank(0), Rank(1, plan={"tls": second}), Rank(2))
    assert [each.text for each in seen] == ["", "", ""]
    expected = [TlsCredentials(each).certificate for each in (tls, second, tls)]
    assert [each.known[CERTIFICATES] for each in seen] == [expected] * 3
    assert [each.descriptors for each in seen] == [0, 0, 0]


def test_ranks_without_tls_know_no_certificates():
    assert [each.known[CERTIFICATES] for each in run_ranks(Job("ab"))] == [[b"", b""]] * 2


def sum_often(comm, repeats):
    for _ in range(repeats):
        x = np.arange(300_000, dtype=np.float32)
        comm.all_reduce(x)
        assert np.array_equal(x, np.arange(300_000, dtype=np.float32) * comm.size)
    return comm.rank


def test_connections_change_their_keys(tls):
    security = Security(tls, [TlsCredentials(tls).certificate] * 2, bytes_per_key=1 << 16)
    assert run_on_hosts(sum_often, "ab", 5, security=security) == [0, 1]


# ---- what travels --------------------------------------------------------------------------------------------------


class Relay:
    """Forwards connections to a port, and keeps all bytes."""

    def __init__(self, port):
        self.target, self.bytes, self.sockets, self.threads = port, bytearray(), [], []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start(self.accept)

    def start(self, function, *arguments):
        self.threads.append(threading.Thread(target=function, args=arguments, daemon=True))
        self.threads[-1].start()

    def accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return  # it is closed
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except ConnectionRefusedError:  # it does not listen yet
                near.close()
                continue
            self.sockets += [near, far]
            for pair in ((near, far), (far, near)):
                self.start(self.forward, *pair)

    def forward(self, source, target):
        try:
            while data := source.recv(1 << 16):
                self.bytes += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other end has closed it

    def close(self):
        for sock in (self.listener, *self.sockets):
            with suppress(OSError):  # the other end has closed it
                sock.shutdown(socket.SHUT_RDWR)  # wakes its thread
        for thread in self.threads:
            thread.join(LIMIT_S)
        for sock in (self.listener, *self.sockets):
            sock.close()


PATTERN = b"the secret payload"


def send_pattern(comm):
    data = np.frombuffer(PATTERN * 2000, dtype=np.uint8).copy()
    if comm.rank == 0:
        comm.send(data, dst=1)
    else:
        received = np.empty_like(data)
        comm.recv(received, src=0)
        assert received.tobytes() == data.tobytes()
    return True


@pytest.mark.parametrize("is_secure", [False, True])
def test_payloads_and_tickets_do_not_appear_on_the_wire(tls, is_secure):
    relays = []

    def port_of(port):
        relays.append(Relay(port))
        return relays[-1].port

    security = Security(tls, [TlsCredentials(tls).certificate] * 2) if is_secure else None
    try:
        assert run_on_hosts(send_pattern, "ab", security=security, port_of=port_of) == [True, True]
    finally:
        for relay in relays:
            relay.close()
    wire = b"".join(bytes(relay.bytes) for relay in relays)
    assert len(wire) > 2000 * len(PATTERN)
    assert (PATTERN in wire) is not is_secure
    assert (b"unisono-far" in wire) is not is_secure  # the greeting, which contains a ticket


def rendezvous_wire(job):
    """Return what a rendezvous sends."""
    relay = Relay(job.port)
    try:
        seen = run_ranks(job, Rank(0), Rank(1, plan={"port": relay.port}))
    finally:
        relay.close()
    assert [each.text for each in seen] == ["", ""]
    return bytes(relay.bytes)


def test_a_rendezvous_does_not_show_addresses_and_host_names(tls):
    assert b'"addresses"' in rendezvous_wire(Job("ab"))
    wire = rendezvous_wire(Job("ab", tls=tls))
    assert len(wire) > 1000
    assert b'"addresses"' not in wire
    assert b"unisono" not in wire


# ---- processes that are refused ------------------------------------------------------------------------------------


def test_a_rank_with_a_certificate_of_another_authority_is_refused_and_named(tls, other_tls):
    job = Job("abb", timeout_s=2.0, tls=tls)
    seen = run_ranks(job, Rank(0), Rank(1), Rank(2, plan={"tls": replace(other_tls, authority=tls.authority)}))
    assert (seen[2].kind, seen[2].id) == ("CommError", network_messages.NO_TLS_TO_RANK_0.id), seen[2].text
    assert "alert unknown ca" in seen[2].text
    assert "rank 2 on b and rank 0 at 127.0.0.1:" in seen[2].text
    for each in seen[:2]:
        assert each.id == network_messages.FAR_RANKS_MISSING.id
        assert "was refused: TLS: certificate verify failed" in each.text
        assert ": 2; connected: 0 on a, 1 on b (127.0.0.1:" in each.text


def test_a_rank_refuses_a_rank_0_with_a_certificate_of_another_authority(tls, other_tls):
    seen = run_ranks(Job("ab", timeout_s=2.0, tls=tls), Rank(0), Rank(1, plan={"tls": other_tls}))
    assert seen[1].id == network_messages.NO_TLS_TO_RANK_0.id
    assert "certificate verify failed (self-signed certificate in certificate chain)" in seen[1].text
    assert "was refused: TLS: " in seen[0].text


def test_a_rank_without_tls_is_refused_and_told(tls):
    seen = run_ranks(Job("ab", timeout_s=2.0, tls=tls), Rank(0), Rank(1, plan={"tls": None}))
    assert (seen[1].kind, seen[1].id) == ("UsageError", network_messages.RANK_0_USES_TLS.id), seen[1].text
    assert "was refused: it does not use TLS" in seen[0].text


def test_a_rank_with_tls_is_refused_by_a_rank_0_without(tls):
    seen = run_ranks(Job("ab", timeout_s=2.0), Rank(0), Rank(1, plan={"tls": tls}, timeout_s=1.0))
    assert seen[1].id == network_messages.RANK_0_UNREACHABLE.id
    assert "closed the connection" in seen[1].text
    assert "was refused: it uses TLS, and rank 0 does not" in seen[0].text


def test_an_expired_certificate_is_refused(authority, tls):
    expired = authority.issue_expired("expired")
    seen = run_ranks(Job("ab", timeout_s=2.0, tls=tls), Rank(0), Rank(1, plan={"tls": expired}))
    assert "alert certificate expired" in seen[1].text
    assert "certificate verify failed (certificate has expired)" in seen[0].text


def attempt(port, files, began=None):
    """Connect as a client with these files, and send bytes; return the error, or what was received."""
    ends_s = time.monotonic() + LIMIT_S
    while True:
        try:
            sock = socket.create_connection(("127.0.0.1", port), timeout=5.0)
            break
        except ConnectionRefusedError:
            assert time.monotonic() < ends_s
            time.sleep(0.01)
    with sock:
        try:
            if files is not None:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                if files.key:
                    context.load_cert_chain(files.certificate, files.key)
                sock = context.wrap_socket(sock)
            sock.sendall(b"unisono-far2" + bytes(100))
            return sock.recv(100)
        except OSError as error:
            return error


def strangers_of(tls, other_tls):
    """Return clients that must be refused: without a certificate, with one of another authority, without TLS."""
    return {"no certificate": Tls("", "", ""), "another authority": other_tls, "plain": None}


def test_strangers_at_the_rendezvous_do_not_disturb_it(tls, other_tls):
    job = Job("ab", tls=tls)
    beside = [(attempt, job.port, files) for files in strangers_of(tls, other_tls).values()]
    seen = run_ranks(job, Rank(0), Rank(1, delay_s=1.0), beside=beside)
    assert [each.text for each in seen] == ["", ""]


def call_among_strangers(comm):
    port = comm._link.resources.courier.engine.port
    results = [str(attempt(port, files)) for files in comm.strangers.values()] if comm.rank == 0 else []
    x = np.ones(100_000)
    comm.all_reduce(x)
    return results, float(x.sum())


def test_strangers_at_a_courier_are_refused_and_the_job_goes_on(tls, other_tls):
    def function(comm):
        comm.strangers = strangers_of(tls, other_tls)
        return call_among_strangers(comm)

    first, second = on_ranks(Job("ab", tls=tls), function)
    assert "alert certificate required" in first[0][0].lower().replace("_", " ")
    assert "alert unknown ca" in first[0][1].lower().replace("_", " ")
    assert first[0][2] == "b''" or "reset" in first[0][2]  # the end of the connection
    assert first[1] == second[1] == 200_000.0


def lose_a_peer(comm):
    try:
        comm.barrier(timeout=20.0)
    except unisono.PeerLost as error:
        return str(error)
    return None


def test_a_process_with_another_certificate_of_the_authority_is_not_the_peer(authority, tls):
    """A process between two ranks could pass on their tickets, but has no key for their certificates."""
    digest, other = TlsCredentials(tls).certificate, TlsCredentials(authority.issue("another")).certificate
    texts = run_on_hosts(lose_a_peer, "ab", security=Security(tls, [digest, other]))
    assert "does not have the certificate that it had at the rendezvous" in texts[0]
    assert texts[1] is not None  # rank 0 has closed the connection


def test_a_proof_is_bound_to_the_certificates_of_both_sides():
    greeting, answer = make_greeting(1, 2, "a job"), make_answer(GO_ON)
    proof = prove(TOKEN, FROM_RANK, greeting, answer, b"client, server")
    assert is_proved(proof, TOKEN, FROM_RANK, greeting, answer, b"client, server")
    assert not is_proved(proof, TOKEN, FROM_RANK, greeting, answer, b"client, another")
    assert not is_proved(proof, TOKEN, FROM_RANK, greeting, answer)


# ---- faults --------------------------------------------------------------------------------------------------------


def test_a_rank_that_is_killed_is_named(tls):
    job = Job("aba", tls=tls)
    started = [Started(outcome_of_call, connected, die_in_a_call, job, rank) for rank in range(3)]
    try:
        for rank in (0, 2):
            culprit, text, _ = started[rank].result(time.monotonic() + LIMIT_S)
            assert culprit == 1
            assert "host b" in text
    finally:
        for each in started:
            each.end()


def test_the_end_of_a_rank_during_the_rendezvous_is_reported_to_all(tls):
    def die(step):
        os._exit(1)

    job = Job("abb", tls=tls)
    dying = Started(be_rank, job, Rank(2, step=die))
    try:
        seen = run_ranks(job, Rank(0), Rank(1))
    finally:
        dying.end()
    assert {each.id for each in seen} == {network_messages.FAR_ENDED.id}
    assert {each.about for each in seen} == {2}
