"""The files of TLS and the options that name them: files that cannot be used are named, and UCX is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from certificates import needs_openssl
from unisono import _engine
from unisono.bootstrap import network_messages
from unisono.bootstrap.environment import JobNetwork, RankIdentity, environment_of_rank, job_network
from unisono.bootstrap.network_options import NetworkOptions, plan_network
from unisono.bootstrap.tls import Tls
from unisono.bootstrap.tls_connection import TlsCredentials
from unisono.errors import UsageError

pytestmark = needs_openssl
TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda tls, other: replace(tls, key="/no/such.key"), "/no/such.key: No such file or directory"),
        (lambda tls, other: replace(tls, key=other.key), "key values mismatch"),
        (lambda tls, other: replace(tls, certificate=tls.key), "no certificate in PEM format"),
        (lambda tls, other: replace(tls, authority=tls.key), "no certificate or crl found"),
    ],
)
def test_files_that_cannot_be_used_are_named(tls, other_tls, change, part):
    with pytest.raises(UsageError) as caught:
        TlsCredentials(change(tls, other_tls))
    assert caught.value.id == network_messages.TLS_FILE.id
    assert part in str(caught.value)


def test_a_key_with_a_password_is_refused_without_a_question(authority):
    with pytest.raises(UsageError) as caught:
        TlsCredentials(authority.issue("locked", password="1234"))
    assert caught.value.id == network_messages.TLS_FILE.id


def test_the_engine_names_a_file_that_it_cannot_use(tls, other_tls, authority):
    locked = authority.issue("locked", password="1234")
    for paths in ((*tls.paths[:2], "/no/such.pem"), ("/no/such.pem", *tls.paths[1:]), locked.paths):
        courier = _engine.Courier(0, 2, "127.0.0.1", 0, 0)
        with pytest.raises(RuntimeError, match=r"no/such\.pem|locked\.key"):
            courier.use_tls(*paths, 1 << 30)
        courier.close()
    courier = _engine.Courier(0, 2, "127.0.0.1", 0, 0)
    with pytest.raises(RuntimeError, match="key values mismatch"):
        courier.use_tls(tls.paths[0], other_tls.paths[1], tls.paths[2], 1 << 30)
    courier.close()


IDENTITY = RankIdentity(1, 4, 1, 2, "torchrun", "a job")
FILES = Tls("c.pem", "c.key", "a.pem")


@pytest.mark.parametrize("transport", ["ucx", "ucx:/a/libucp.so.0"])
def test_ucx_with_tls_is_refused(transport):
    options = NetworkOptions(rendezvous="a:1", token=TOKEN, transport=transport, tls=FILES)
    with pytest.raises(UsageError, match='hint: use transport="tcp"') as caught:
        plan_network(IDENTITY, options, JobNetwork())
    assert caught.value.id == network_messages.TLS_OVER_UCX.id


def test_another_object_than_tls_is_refused():
    with pytest.raises(UsageError) as caught:
        plan_network(IDENTITY, NetworkOptions(rendezvous="a:1", token=TOKEN, tls="host.pem"), JobNetwork())
    assert caught.value.id == network_messages.BAD_TLS.id


def test_the_launcher_passes_the_files_to_its_ranks_and_an_argument_comes_before_them():
    network = JobNetwork(address="a:1", token=TOKEN, tls=FILES)
    environment = environment_of_rank(1, 4, "/job", {"UNISONO_TLS_KEY": "of another job"}, network=network)
    stated = job_network("unisono", environment)
    assert stated.tls == FILES
    assert plan_network(IDENTITY, NetworkOptions(), stated).tls == FILES
    own = Tls("d.pem", "d.key", "a.pem")
    assert plan_network(IDENTITY, NetworkOptions(tls=own), stated).tls == own
    without = environment_of_rank(1, 4, "/job", environment, network=network._replace(tls=None))
    assert job_network("unisono", without).tls is None
