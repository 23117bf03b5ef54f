"""Jobs over TLS on test hosts: calls, a killed rank and a cut link."""

from __future__ import annotations

import time

import pytest

from certificates import Authority, needs_openssl
from host_calls import keep_calling, sleep_then_call, sum_of_ones, transport, wait_in_barrier
from host_jobs import HostJob, check_errors

pytestmark = [needs_openssl, pytest.mark.long]
PROCESS_S, HOST_S = 1.0, 6.0


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """Return the options of `unisono run` for TLS."""
    certificate, key, authority = Authority(tmp_path_factory.mktemp("tls"), "ours").issue("host").paths
    return ["--tls-certificate", certificate, "--tls-key", key, "--tls-authority", authority]


def test_calls_over_tls_and_a_killed_rank(hosts, options):
    with HostJob(hosts, "aab", options=options) as job:
        assert all(text.startswith("tcp with TLS (OpenSSL 3.") for text in job.call(transport))
        job.call(sum_of_ones, [300_000] * 3, [5] * 3)
        job.start_all(keep_calling)
        time.sleep(0.3)
        since_s = job.signal(2, "KILL")
        check_errors(job, [0, 1], "PeerLost", since_s, PROCESS_S, "rank 2", "host b", about=2)
        job.close()


@pytest.mark.parametrize("idle", [True, False], ids=["idle", "data flows"])
def test_a_cut_link_is_reported_on_both_sides(hosts, options, idle):
    with HostJob(hosts, "ab", options=options) as job:
        job.call(wait_in_barrier)
        if idle:
            job.start(0, wait_in_barrier)
        else:
            job.start_all(keep_calling, 1_000_000)
        time.sleep(0.5)
        since_s = time.monotonic()
        hosts["b"].cut()
        if idle:
            job.start(1, sleep_then_call, 0.0)  # two calls: what the first one needs may have arrived before the cut
        check_errors(job, [0], "PeerLost", since_s, HOST_S, "rank 1", "host b", about=1)
        check_errors(job, [1], "PeerLost", since_s, HOST_S, "rank 0", "host a", about=0)
        job.close()
