"""The launcher states where rank 0 of a job on several hosts runs, and which job it is."""

from __future__ import annotations

import pytest

from tests.bootstrap.test_environment import MPICH, OPEN_MPI, SRUN, TORCHRUN, UNISONO
from unisono.bootstrap.environment import (
    JobNetwork,
    first_host,
    identity_in_job,
    job_network,
    torchrun_is_on_one_host,
)


def test_unisono_run_states_the_address_and_the_token():
    environ = {**UNISONO, "UNISONO_RENDEZVOUS": "a:1", "UNISONO_TOKEN": "secret"}
    assert job_network("unisono", environ) == JobNetwork("a:1", "", "secret", "")
    assert job_network("unisono", UNISONO) == JobNetwork()
    assert job_network("unisono", {**environ, "UNISONO_TRANSPORT": "ucx"}) == JobNetwork(
        "a:1", token="secret", transport="ucx"
    )


def test_unisono_run_may_state_the_ranks_on_this_host():
    environ = {**UNISONO, "UNISONO_LOCAL_RANK": "0", "UNISONO_LOCAL_SIZE": "3"}
    identity = identity_in_job(environ)
    assert (identity.local_rank, identity.local_size) == (0, 3)
    assert identity_in_job(UNISONO).local_size == 3


def test_torchrun_states_the_host_and_a_restart_is_another_job():
    first = job_network("torchrun", {**TORCHRUN, "MASTER_ADDR": "node1"})
    assert (first.host, first.address, first.token) == ("node1", "", "")
    again = job_network("torchrun", {**TORCHRUN, "MASTER_ADDR": "node1", "TORCHELASTIC_RESTART_COUNT": "1"})
    assert first.job != again.job


def test_slurm_states_the_hosts_and_a_step_is_a_job():
    environ = {**SRUN, "SLURM_STEP_NODELIST": "node[03-05]"}
    assert job_network("slurm", environ).host == "node03"
    assert job_network("slurm", environ).job != job_network("slurm", {**environ, "SLURM_STEP_ID": "1"}).job
    assert job_network("slurm", SRUN).host == ""


@pytest.mark.parametrize(("launcher", "environ"), [("openmpi", OPEN_MPI), ("mpich", MPICH), ("alone", {})])
def test_other_launchers_state_no_address(launcher, environ):
    assert job_network(launcher, environ)._replace(job="") == JobNetwork()


def test_the_name_of_a_job_does_not_depend_on_the_process_of_its_launcher():
    assert job_network("openmpi", OPEN_MPI).job == OPEN_MPI["PMIX_NAMESPACE"]


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("a", "a"),
        ("a,b", "a"),
        ("node[01-04,07],gpu5", "node01"),
        ("node[7]", "node7"),
        ("rack[1-2]-node[003,005]", "rack1-node003"),
        ("node[1,3]-ib,b", "node1-ib"),
        ("", ""),
    ],
)
def test_the_first_host_of_a_list_of_slurm(nodes, first):
    assert first_host(nodes) == first


def test_the_number_of_ranks_on_this_host_is_assumed_if_the_launcher_does_not_state_it():
    by_hand = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}
    assert identity_in_job(by_hand).local_size_is_assumed
    assert not identity_in_job({**by_hand, "LOCAL_WORLD_SIZE": "2"}).local_size_is_assumed
    assert not identity_in_job(TORCHRUN).local_size_is_assumed
    assert not identity_in_job(UNISONO).local_size_is_assumed


def test_torchrun_states_whether_all_ranks_are_on_one_host():
    assert torchrun_is_on_one_host(2, TORCHRUN)
    assert torchrun_is_on_one_host(3, TORCHRUN)
    assert not torchrun_is_on_one_host(4, TORCHRUN)  # a group with ranks that torchrun has not started
    assert not torchrun_is_on_one_host(2, {**TORCHRUN, "WORLD_SIZE": "6"})
    by_hand = {name: value for name, value in TORCHRUN.items() if not name.startswith("TORCHELASTIC")}
    assert not torchrun_is_on_one_host(2, by_hand)
