"""The variables of every launcher are understood.

They were recorded by running each launcher: Open MPI 4.1 and 5.0, MPICH 3.4 to 5.0, Intel MPI 2021, torchrun 2.13,
Slurm 22.05.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from unisono.bootstrap.environment import JobTrace, RankIdentity, environment_of_rank, identity_in_job, job_trace
from unisono.errors import UsageError

UNISONO = {"UNISONO_RANK": "1", "UNISONO_SIZE": "3", "UNISONO_JOB": "/a/job"}
TORCHRUN = {
    "RANK": "1", "WORLD_SIZE": "3", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "3", "MASTER_ADDR": "localhost",
    "MASTER_PORT": "36225", "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0",
}  # fmt: skip
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "3", "PMIX_NAMESPACE": "prterun-host-32277@1",
}  # fmt: skip
MPICH = {"PMI_RANK": "1", "PMI_SIZE": "3", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "3", "PMI_FD": "11"}
FORKER = {"PMI_RANK": "1", "PMI_SIZE": "3", "PMI_FD": "12"}  # mpiexec.gforker of MPICH
SALLOC = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "3", "SLURM_TASKS_PER_NODE": "3", "SLURM_NNODES": "1"}
SBATCH = {**SALLOC, "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}
SRUN = {
    **SALLOC, "SLURM_PROCID": "1", "SLURM_LOCALID": "1", "SLURM_NODEID": "0", "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "3", "SLURM_STEP_TASKS_PER_NODE": "3",
}  # fmt: skip
SRUN_PMI2 = {**SRUN, "PMI_RANK": "1", "PMI_SIZE": "3", "PMI_FD": "13", "PMI_JOBID": "7.0"}
SALLOC_SHELL_ON_A_NODE = {**SRUN, "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_STEP_NUM_TASKS": "1",
                          "SLURM_STEP_TASKS_PER_NODE": "1", "SLURM_STEP_ID": "4294967290"}  # fmt: skip


@pytest.mark.parametrize(
    ("launcher", "environ"),
    [
        ("unisono", UNISONO), ("torchrun", TORCHRUN), ("openmpi", OPEN_MPI), ("mpich", MPICH), ("mpich", FORKER),
        ("slurm", SRUN), ("slurm", SRUN_PMI2),
    ],
)  # fmt: skip
def test_every_launcher_is_understood(launcher, environ):
    identity = identity_in_job(environ)
    assert identity == RankIdentity(1, 3, 1, 3, launcher, identity.job)
    assert identity.job


@pytest.mark.parametrize(
    ("launcher", "environ"),
    [
        ("unisono", {**UNISONO, **TORCHRUN, **OPEN_MPI, **MPICH, **SRUN}),
        ("torchrun", {**TORCHRUN, **OPEN_MPI, **MPICH, **SRUN}),
        ("openmpi", {**OPEN_MPI, **SRUN}),
        ("mpich", {**MPICH, **SRUN}),
        ("mpich", {**MPICH, **SALLOC}),
    ],
)
def test_the_innermost_launcher_counts(launcher, environ):
    assert identity_in_job(environ).launcher == launcher


@pytest.mark.parametrize("environ", [{}, SALLOC, SBATCH])
def test_without_a_launcher_a_process_is_rank_0_of_1(environ):
    """This includes a batch script, which Slurm calls rank 0 of 3 although the others were not started."""
    identity = identity_in_job(environ)
    assert identity == RankIdentity(0, 1, 0, 1, "alone", identity.job)


def test_a_shell_that_salloc_has_started_on_a_node_is_a_step_of_one():
    assert identity_in_job(SALLOC_SHELL_ON_A_NODE).size == 1


def test_variables_set_by_hand_for_torch_have_the_lowest_priority():
    """Kubernetes sets them for a pod, in which mpirun may be called later."""
    by_hand = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
    assert identity_in_job(by_hand) == RankIdentity(0, 2, 0, 2, "torchrun", "localhost 29500")
    assert identity_in_job({**by_hand, **OPEN_MPI}).launcher == "openmpi"
    assert identity_in_job({**by_hand, **SRUN}).launcher == "slurm"


@pytest.mark.parametrize(
    ("environ", "name", "value"),
    [
        (UNISONO, "UNISONO_JOB", "/another/job"), (TORCHRUN, "TORCHELASTIC_RESTART_COUNT", "1"),
        (TORCHRUN, "TORCHELASTIC_RUN_ID", "other"), (TORCHRUN, "MASTER_PORT", "1234"),
        (OPEN_MPI, "PMIX_NAMESPACE", "prterun-host-32277@2"), (SRUN, "SLURM_JOB_ID", "8"),
        (SRUN, "SLURM_STEP_ID", "1"), (SRUN, "SLURM_RESTART_COUNT", "1"),
    ],
)  # fmt: skip
def test_another_job_or_a_restart_has_another_name(environ, name, value):
    assert identity_in_job(environ).job != identity_in_job({**environ, name: value}).job


@pytest.mark.parametrize("environ", [UNISONO, TORCHRUN, OPEN_MPI, MPICH, SRUN])
def test_every_rank_computes_the_same_job_name(environ):
    ranks = (
        "UNISONO_RANK",
        "RANK",
        "LOCAL_RANK",
        "OMPI_COMM_WORLD_RANK",
        "PMI_RANK",
        "MPI_LOCALRANKID",
        "SLURM_PROCID",
    )
    other = {name: "2" if name in ranks else value for name, value in environ.items()}
    assert identity_in_job(other).rank == 2
    assert identity_in_job(other).job == identity_in_job(environ).job


LAUNCHER = """
import os, subprocess, sys
code = "import json; from unisono.bootstrap.environment import identity_in_job as p; print(json.dumps(p().job))"
for rank in "01":
    environ = {**os.environ, "PMI_RANK": rank, "PMI_SIZE": "2"}
    subprocess.run(["sh", "-c", '"$0" -c "$1"; true', sys.executable, code], env=environ, check=True)
"""


def test_a_job_without_a_name_is_identified_by_its_launcher_also_through_a_shell():
    """As under MPICH, with a shell between the launcher and each rank."""
    jobs = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", LAUNCHER], capture_output=True, text=True, check=True, timeout=60
        )
        first, second = [json.loads(line) for line in done.stdout.splitlines()]
        assert first == second
        jobs.append(first)
    assert jobs[0] != jobs[1]


@pytest.mark.parametrize(
    ("environ", "complaint"),
    [
        ({**UNISONO, "UNISONO_RANK": "3"}, "UNISONO_RANK=3 and UNISONO_SIZE=3; expected the first to be less"),
        ({**UNISONO, "UNISONO_RANK": "-1"}, "UNISONO_RANK='-1'; expected a whole number"),
        ({**UNISONO, "UNISONO_SIZE": "x"}, "UNISONO_SIZE='x'; expected a whole number"),
        ({**UNISONO, "UNISONO_SIZE": ""}, "UNISONO_SIZE=''; expected a whole number"),
        ({**UNISONO, "UNISONO_SIZE": "9" * 5000}, "expected a whole number"),
        ({**UNISONO, "UNISONO_SIZE": "²"}, "expected a whole number"),
        ({"UNISONO_RANK": "1", "UNISONO_SIZE": "3"}, "UNISONO_SIZE=3 but not UNISONO_JOB"),
        ({"UNISONO_JOB": "/a/job"}, "UNISONO_JOB='/a/job' but not UNISONO_RANK, UNISONO_SIZE; expected all"),
        ({"RANK": "0"}, "RANK='0' but not WORLD_SIZE"),
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE='2' but not RANK"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "WORLD_SIZE=2 but not MASTER_ADDR, MASTER_PORT"),
        ({**TORCHRUN, "LOCAL_RANK": "3"}, "LOCAL_RANK=3 and LOCAL_WORLD_SIZE=3"),
        ({**TORCHRUN, "LOCAL_WORLD_SIZE": "4"}, "LOCAL_WORLD_SIZE=4 and WORLD_SIZE=3"),
        ({"TORCHELASTIC_RUN_ID": "none"}, "TORCHELASTIC_RUN_ID='none' but not RANK, WORLD_SIZE"),
        (
            {"OMPI_COMM_WORLD_RANK": "0"},
            "but not OMPI_COMM_WORLD_SIZE; expected all of the variables that openmpi sets",
        ),
        ({"PMI_SIZE": "2"}, "PMI_SIZE='2' but not PMI_RANK"),
        ({**SRUN, "SLURM_STEP_TASKS_PER_NODE": "many"}, "SLURM_STEP_TASKS_PER_NODE='many' on node 0; expected"),
        ({**SRUN, "SLURM_NODEID": "1"}, "SLURM_STEP_TASKS_PER_NODE='3' on node 1"),
    ],
)
def test_variables_that_contradict_each_other_are_named(environ, complaint):
    with pytest.raises(UsageError) as caught:
        identity_in_job(environ)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    "environ",
    [
        {**TORCHRUN, "WORLD_SIZE": "6"},
        {**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": "6"},
        {**MPICH, "PMI_SIZE": "6"},
        {**SRUN, "SLURM_STEP_NUM_TASKS": "6", "SLURM_STEP_TASKS_PER_NODE": "3(x2)"},
        {**SRUN, "SLURM_STEP_NUM_TASKS": "6", "SLURM_STEP_TASKS_PER_NODE": "1(x3),3", "SLURM_NODEID": "3"},
    ],
)
def test_the_ranks_on_this_host_are_counted_in_a_job_on_several_hosts(environ):
    identity = identity_in_job(environ)
    assert (identity.size, identity.local_size) == (6, 3)
    assert not identity.local_size_is_assumed


def test_a_rank_inherits_all_variables_except_its_identity_in_other_jobs():
    outer = {**TORCHRUN, **OPEN_MPI, **MPICH, **SRUN, "HOME": "/home", "RANKING": "1", "OMPI_MCA_btl": "self"}
    inner = environment_of_rank(0, 2, "/a/job", outer)
    assert identity_in_job(inner) == RankIdentity(0, 2, 0, 2, "unisono", "/a/job")
    kept = {"HOME", "RANKING", "OMPI_MCA_btl", "MASTER_ADDR", "MASTER_PORT", "SLURM_NODEID", *SALLOC}
    assert set(inner) == kept | {"UNISONO_RANK", "UNISONO_SIZE", "UNISONO_JOB", "PYTHONUNBUFFERED"}


def test_the_environment_of_this_process_is_the_default(monkeypatch):
    for name in os.environ.keys() - {"PATH", "HOME"}:
        monkeypatch.delenv(name)
    assert identity_in_job().launcher == "alone"
    for name, value in UNISONO.items():
        monkeypatch.setenv(name, value)
    assert identity_in_job().job == "/a/job"


def test_a_rank_of_a_traced_job_knows_the_folder_of_the_trace():
    given = environment_of_rank(2, 3, "/tmp/unisono-abc", {}, trace="12345:unisono-abc:/a/folder: of mine")
    trace = JobTrace("/a/folder: of mine", 2, "unisono-abc", 12345)
    assert job_trace(given) == trace
    assert identity_in_job(given).trace == trace


def test_under_torchrun_the_rank_of_a_trace_is_that_of_torchrun():
    given = environment_of_rank(0, 1, "/tmp/unisono-abc", {}, trace="12345:unisono-abc:/a")
    inner = {**given, "TORCHELASTIC_RUN_ID": "x", "RANK": "5", "WORLD_SIZE": "8"}
    assert job_trace(inner) == JobTrace("/a", 5, "unisono-abc", 12345)


@pytest.mark.parametrize("said", [None, "", "12345", "12345:", "12345:r:", ":r:/a", "x:r:/a"])
def test_a_job_is_traced_only_if_the_request_is_complete(said):
    environ = {"UNISONO_RANK": "0"} if said is None else {"UNISONO_RANK": "0", "UNISONO_TRACE": said}
    assert job_trace(environ) is None


def test_a_job_inside_a_traced_job_is_not_traced():
    outer = environment_of_rank(0, 1, "/tmp/outer", {}, trace="12345:unisono-abc:/a")
    assert job_trace(environment_of_rank(0, 2, "/tmp/inner", outer)) is None
