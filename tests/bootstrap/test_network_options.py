"""The address and the token of a job on several hosts come from arguments, or from the launcher."""

from __future__ import annotations

import os

import pytest

from unisono.bootstrap import network_messages
from unisono.bootstrap.environment import JobNetwork, RankIdentity
from unisono.bootstrap.network_options import (
    DEFAULT_PORTS,
    NetworkOptions,
    join_port,
    meets_over_network,
    plan_network,
    split_address,
    transport_of,
)
from unisono.errors import UsageError

TOKEN = "0123456789abcdef"
IDENTITY = RankIdentity(1, 4, 1, 2, "torchrun", "a job")
SLURM = JobNetwork(host="node01", job="7 0")


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("a:1", "a", 1), ("node-1.cluster:23456", "node-1.cluster", 23456), ("10.0.0.1:65535", "10.0.0.1", 65535),
     ("[::1]:80", "::1", 80), ("[fe80::1%eth0]:80", "fe80::1%eth0", 80)],
)  # fmt: skip
def test_an_address_has_a_host_and_a_port(text, host, port):
    assert split_address(text) == (host, port)
    assert join_port(host, port) == text


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:0", "a:65536", "a:b", "::1:80", "a:1:2", "tcp://a:1", 7])
def test_other_texts_are_refused(text):
    with pytest.raises(UsageError) as caught:
        split_address(text)
    assert caught.value.id == network_messages.BAD_RENDEZVOUS.id


def test_an_argument_comes_before_the_launcher():
    launcher = JobNetwork(address="b:2", host="c", token="another token, of the launcher", job="7")
    plan = plan_network(IDENTITY, NetworkOptions(rendezvous="a:1", token=TOKEN), launcher)
    assert (plan.host, plan.port, plan.token, plan.job) == ("a", 1, TOKEN, "7")
    plan = plan_network(IDENTITY, NetworkOptions(), launcher)
    assert (plan.host, plan.port, plan.token) == ("b", 2, launcher.token)


def test_the_transport_is_that_of_the_argument_or_of_the_launcher_or_tcp():
    for argument, launched, expected in [
        (None, "", "tcp"), (None, "ucx", "ucx"), ("tcp", "ucx", "tcp"), ("ucx:/x.so", "", "ucx:/x.so"),
    ]:  # fmt: skip
        launcher = JobNetwork(address="b:2", token=TOKEN, transport=launched)
        assert plan_network(IDENTITY, NetworkOptions(transport=argument), launcher).transport == expected
    for argument, launched in [("", ""), ("rdma", ""), ("ucx:", ""), (7, ""), (None, "tcp,ucx")]:
        with pytest.raises(UsageError) as caught:
            transport_of(argument, JobNetwork(transport=launched))
        assert caught.value.id == network_messages.BAD_TRANSPORT.id


def test_the_port_follows_from_the_name_of_the_job_if_the_launcher_states_none():
    options = NetworkOptions(token=TOKEN)
    plan = plan_network(IDENTITY, options, SLURM)
    assert plan.host == "node01"
    assert plan.port in DEFAULT_PORTS
    assert plan_network(IDENTITY, options, SLURM).port == plan.port
    others = {plan_network(IDENTITY, options, SLURM._replace(job=f"{job} 0")).port for job in range(100)}
    assert len(others) > 90


def test_a_port_of_the_range_is_taken_if_there_is_one():
    ports = range(40000, 40003)
    plan = plan_network(IDENTITY, NetworkOptions(token=TOKEN, ports=ports), SLURM)
    assert plan.port in ports


@pytest.mark.parametrize("ports", [range(0), range(10), range(5, 70000), range(10, 20, 2), range(9, 1, -1), [1, 2]])
def test_ports_that_are_no_range_of_ports_are_refused(ports):
    with pytest.raises(UsageError) as caught:
        plan_network(IDENTITY, NetworkOptions(token=TOKEN, ports=ports), SLURM)
    assert caught.value.id == network_messages.BAD_PORTS.id


def test_without_an_address_the_error_says_how_to_state_one():
    identity = RankIdentity(1, 4, 1, 2, "openmpi", "a job")
    with pytest.raises(UsageError, match=r'connect\(rendezvous="HOST:PORT", token_file=PATH\)') as caught:
        plan_network(identity, NetworkOptions(token=TOKEN), JobNetwork(job="7"))
    assert caught.value.id == network_messages.NO_RENDEZVOUS.id


def test_without_a_token_the_rendezvous_is_refused():
    with pytest.raises(UsageError, match="token_file=PATH") as caught:
        plan_network(IDENTITY, NetworkOptions(), SLURM)
    assert caught.value.id == network_messages.NO_TOKEN.id


def test_a_short_token_is_refused():
    with pytest.raises(UsageError) as caught:
        plan_network(IDENTITY, NetworkOptions(token="secret"), SLURM)
    assert caught.value.id == network_messages.SHORT_TOKEN.id


def test_a_private_token_file_is_read(tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    assert plan_network(IDENTITY, NetworkOptions(token_file=path), SLURM).token == TOKEN
    with pytest.raises(UsageError) as caught:
        plan_network(IDENTITY, NetworkOptions(token=TOKEN, token_file=path), SLURM)
    assert caught.value.id == network_messages.TWO_TOKENS.id


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_a_token_file_that_others_can_read_is_refused(tmp_path, mode):
    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(mode)
    with pytest.raises(UsageError, match=f"mode {mode:04o}; hint: chmod 600") as caught:
        plan_network(IDENTITY, NetworkOptions(token_file=path), SLURM)
    assert caught.value.id == network_messages.TOKEN_FILE_NOT_PRIVATE.id


def test_a_token_file_that_cannot_be_read_is_named(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(UsageError, match=os.path.basename(path)) as caught:
            plan_network(IDENTITY, NetworkOptions(token_file=path), SLURM)
        assert caught.value.id == network_messages.BAD_TOKEN_FILE.id


def test_only_a_job_on_several_hosts_meets_over_the_network():
    here = RankIdentity(0, 4, 0, 4, "torchrun", "a job")
    stated = NetworkOptions(rendezvous="a:1")
    assert meets_over_network(IDENTITY, NetworkOptions())
    assert not meets_over_network(here, NetworkOptions())
    assert not meets_over_network(here, stated)  # the launcher says that all ranks are here
    unknown = RankIdentity(0, 4, 0, 4, "torchrun", "a job", local_size_is_assumed=True)
    assert not meets_over_network(unknown, NetworkOptions())
    assert meets_over_network(unknown, stated)
    assert not meets_over_network(RankIdentity(0, 1, 0, 1, "alone", "", local_size_is_assumed=True), stated)
