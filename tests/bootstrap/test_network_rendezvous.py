"""Ranks on several hosts find each other over TCP, and agree on the hosts, the addresses and the configuration."""

from __future__ import annotations

import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from network_ranks import Job, Rank, Seen, be_rank, free_port, pretend_host, run_ranks
from unisono.bootstrap import messages, network_messages, network_rendezvous
from unisono.bootstrap.interfaces import Interface, list_interfaces
from unisono.bootstrap.job_resources import FIRST_RANDOM
from unisono.bootstrap.network_client import resolve
from unisono.bootstrap.network_rendezvous import Participant, check_loopback
from unisono.bootstrap.network_server import listen
from unisono.errors import CommError

ADDRESSES, PORTS, HOSTS, TO, FROM = range(5)  # what a courier is told


def check_agreement(job: Job, seen: list[Seen]) -> None:
    """Check that all ranks have met, agree with each other, and left nothing behind."""
    assert [each.text for each in seen] == [""] * job.size
    near = [[other for other in range(job.size) if job.hosts[other] == job.hosts[rank]] for rank in range(job.size)]
    count = len(set(job.hosts))
    for rank, each in enumerate(seen):
        assert each.hosts is not None
        assert [each.hosts.name(other) for other in range(job.size)] == list(job.hosts)
        assert each.config == {"ranks": job.size, "hosts": count}
        assert len(each.processes) == len(near[rank])
        assert each.processes == seen[near[rank][0]].processes
        assert each.descriptors == 0
        if count == 1:
            assert each.known is None
            continue
        for other in range(job.size):
            is_far = other not in near[rank]
            assert each.known[ADDRESSES][other] == (seen[other].address if is_far else "")
            assert each.known[PORTS][other] == (seen[other].port if is_far else 0)
            assert each.known[HOSTS][other] == job.hosts[other]
            assert each.known[TO][other] == seen[other].known[FROM][rank]
    tickets = [ticket for each in seen if each.known for ticket in each.known[TO]]
    assert len(set(tickets)) == len(tickets)
    assert all(len(ticket) == 32 for ticket in tickets)


@pytest.mark.parametrize("hosts", ["ab", "aab", "abb", "abab", "abcabcc", "aaa"])
def test_ranks_of_any_placement_meet(hosts):
    job = Job(hosts)
    check_agreement(job, run_ranks(job))


def test_processes_of_far_ranks_are_those_of_other_hosts():
    seen = run_ranks(Job("aba"))
    assert len(seen[0].processes) == 2
    assert len(seen[1].processes) == 1
    assert not set(seen[0].processes) & set(seen[1].processes)


def test_ranks_meet_over_ipv6():
    if Interface("lo", "::1") not in list_interfaces():
        pytest.skip("this machine has no IPv6 loopback address")
    job = Job("abb", free_port("::1"), "::1")
    seen = run_ranks(job)
    check_agreement(job, seen)
    assert {each.address for each in seen} == {"::1"}


def test_a_name_that_resolves_late_and_an_address_that_does_not_answer_are_tried_again(tmp_path):
    def late(host: str, port: int):
        attempts = tmp_path / "attempts"
        with open(attempts, "a") as file:
            file.write("x")
        if os.path.getsize(attempts) < 4:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        refused = free_port()
        return [(socket.AF_INET, ("127.0.0.1", refused)), *resolve("127.0.0.1", port)]

    job = Job("ab")
    seen = run_ranks(job, Rank(0), Rank(1, plan={"host": "rank-0.cluster"}, resolve=late))
    check_agreement(job, seen)
    assert os.path.getsize(tmp_path / "attempts") >= 4


def test_rank_0_may_start_last():
    job = Job("abb")
    check_agreement(job, run_ranks(job, Rank(0, delay_s=0.7), Rank(1), Rank(2)))


def test_couriers_listen_on_ports_of_the_range():
    first = free_port()
    ports = range(first, min(first + 20, 65536))
    job = Job("abb", ports=ports)
    seen = run_ranks(job)
    check_agreement(job, seen)
    assert all(each.port in ports for each in seen)


def test_rank_0_may_listen_at_any_free_port_of_a_range():
    first = free_port()
    plan = Job("ab", port=0, ports=range(first, first + 3)).plan()
    with socket.create_server(("127.0.0.1", first)), listen(plan, time.monotonic()) as listener:
        assert listener.getsockname()[1] in (first + 1, first + 2)
    with socket.create_server(("127.0.0.1", first)), pytest.raises(CommError) as caught:
        listen(replace(plan, ports=range(first, first + 1)), time.monotonic())
    assert caught.value.id == network_messages.CANNOT_LISTEN.id
    assert f"127.0.0.1:{first}: Address already in use" in str(caught.value)
    with listen(replace(plan, ports=None), time.monotonic()) as listener:
        assert listener.getsockname()[1] > 0


def test_couriers_listen_at_the_given_interface():
    job = Job("ab", interface="lo")
    seen = run_ranks(job)
    check_agreement(job, seen)
    assert {each.address for each in seen} == {"127.0.0.1"}


def test_an_unknown_interface_fails_on_all_ranks():
    seen = run_ranks(Job("aab"), Rank(0), Rank(1, plan={"interface": "nosuch0"}), Rank(2))
    assert [each.kind for each in seen] == ["CommError", "UsageError", "CommError"]
    assert seen[1].id == network_messages.NO_SUCH_INTERFACE.id
    for each in (seen[0], seen[2]):
        assert each.id == messages.ERROR_ON_RANK.id
        assert each.about == 1
        assert "nosuch0" in each.text


def test_two_jobs_at_once_on_one_port_range_do_not_disturb_each_other():
    first = free_port()
    ports = range(first, min(first + 20, 65536))
    jobs = [Job("ab", ports=ports, token=f"the token of job {number}", name=f"job {number}") for number in range(2)]
    with ThreadPoolExecutor() as pool:
        for job, seen in zip(jobs, pool.map(run_ranks, jobs), strict=True):
            check_agreement(job, seen)


def test_a_rank_waits_while_rank_0_of_another_job_uses_the_address():
    port = free_port()
    other, job = Job("ab", port, name="restart 0", timeout_s=1.0), Job("ab", port, name="restart 1")
    seen = run_ranks(job, Rank(0, delay_s=0.5), Rank(1), beside=[(run_rank_0_alone, other)])
    check_agreement(job, seen)


def run_rank_0_alone(job: Job) -> list[Seen]:
    return [be_rank(job, Rank(0))]


def test_tickets_differ_between_two_rendezvous_of_one_job():
    job = Job("ab")
    first, second = run_ranks(job), run_ranks(job)
    assert first[0].known[TO][1] != second[0].known[TO][1]


def test_a_loopback_address_is_refused_if_another_machine_would_have_to_reach_it():
    here, there = pretend_host("a"), {**pretend_host("b"), "kernel": "another boot"}
    with pytest.raises(CommError) as caught:
        check_loopback(["10.0.0.1", "127.0.0.1", "10.0.0.2"], [here, here, there])
    assert caught.value.id == network_messages.LOOPBACK.id
    assert caught.value.rank == 1
    for part in ("rank 1 on a", "127.0.0.1", "rank 2 on b", "10.0.0.2"):
        assert part in str(caught.value)
    check_loopback(["127.0.0.1", "127.0.0.1"], [here, pretend_host("b")])  # containers with one network


def test_a_rank_near_rank_0_takes_the_address_at_which_far_ranks_reach_rank_0(monkeypatch):
    job = Job("aab")
    participant = Participant(job.identity(1), job.plan(), {}, 1.0)
    interfaces = [Interface("lo", "127.0.0.1"), Interface("eth0", "10.0.0.1")]
    monkeypatch.setattr(network_rendezvous, "list_interfaces", lambda: interfaces)
    assert participant._courier_address("127.0.0.1", "10.0.0.1") == "10.0.0.1"
    assert participant._courier_address("10.0.0.9", "10.0.0.1") == "10.0.0.9"
    assert participant._courier_address("", "10.0.0.1") == "10.0.0.1"  # rank 0
    assert participant._courier_address("127.0.0.1", "10.0.0.7") == "127.0.0.1"  # rank 0 is on another host


# ---- couriers of an earlier rendezvous ---------------------------------------------------------------------------


def test_ranks_use_a_courier_that_all_of_them_have():
    job = Job("aab")
    seen = run_ranks(job, Rank(0, offers=["x", "y"]), Rank(1, offers=["y", "z"]), Rank(2, offers=["z", "y"]))
    assert [each.kind for each in seen] == [""] * 3, seen
    assert [each.courier for each in seen] == ["y"] * 3
    assert [each.port for each in seen] == [0] * 3  # none was opened
    assert [each.courier_ranks for each in seen] == [(10, 11, 12)] * 3
    assert seen[0].number == seen[1].number == seen[2].number >= FIRST_RANDOM
    assert seen[0].number % 2 == 0  # the next one belongs to the spare duplicate
    assert [each.offers_left for each in seen] == [["x", "y"], ["y", "z"], ["z", "y"]]


@pytest.mark.parametrize(
    "changed", [{"offers": []}, {"offers": ["x"]}, {"changed": {"interface": "eth1"}}], ids=["none", "other", "eth1"]
)
def test_every_rank_opens_a_courier_if_one_of_them_has_no_common_one(changed):
    job = Job("ab")
    seen = run_ranks(job, Rank(0, offers=["y"]), Rank(1, **{"offers": ["y"], **changed}))
    check_agreement(job, seen)
    assert seen[0].courier == seen[1].courier
    assert seen[0].courier not in ("", "x", "y")
    assert [(each.number, each.courier_ranks) for each in seen] == [(0, None)] * 2
    assert seen[0].offers_left == ["y"]


def test_ranks_of_one_host_need_no_courier_even_if_they_have_one():
    seen = run_ranks(Job("aa"), Rank(0, offers=["y"]), Rank(1, offers=["y"]))
    assert [(each.kind, each.courier, each.number) for each in seen] == [("", "", 0)] * 2
