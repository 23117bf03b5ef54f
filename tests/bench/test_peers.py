from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from unisono.bench import peers
from unisono.bench.cases import make_cases
from unisono.bench.contender import CaseUnsupported, TrialOptions
from unisono.bench.local_ranks import unisono_ranks
from unisono.bench.mpi_ranks import Installation, MpiRanks
from unisono.bench.settings import FLAVOURS, OPEN_MPI
from unisono.collectives import COLLECTIVES
from unisono.errors import UsageError

PEERS = Path(__file__).parent.parent.parent / ".peers"
MOVING = [collective for collective in COLLECTIVES if collective.carries_data]


def contenders(names, size=2, folder=PEERS):
    return peers.make_contenders(names, size, folder, answer_timeout_s=60)


@pytest.fixture
def made(tmp_path):
    """Return a folder of peers in which every file exists and none works."""
    for name in ("gloo", *FLAVOURS):
        (tmp_path / name / "bin").mkdir(parents=True)
        for program in ("python", "mpiexec"):
            (tmp_path / name / "bin" / program).touch(mode=0o755)
    return tmp_path


def test_a_peer_stands_for_all_its_settings(made):
    found = [each.name for each in contenders("openmpi,memcpy", folder=made)]
    assert found == [*(f"openmpi:{setting.name}" for setting in OPEN_MPI.settings), "memcpy"]


def test_one_setting_can_be_selected_and_no_contender_is_listed_twice(made):
    names = "impi:shm, mpich:default,impi:shm,,unisono"
    assert [each.name for each in contenders(names, folder=made)] == ["impi:shm", "mpich:default", "unisono"]


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        ("glooo", "there is no contender 'glooo'; did you mean gloo"),
        ("nccl-of-sorts", "expected some of gloo, mpi"),
        ("openmpi:warp", "expected one of openmpi:default"),
        ("memcpy:fast", "no settings to choose from"),
    ],
)
def test_an_unknown_name_is_rejected(made, names, complaint):
    with pytest.raises(UsageError, match=complaint):
        contenders(names, folder=made)


def test_the_error_for_a_missing_peer_states_how_to_install_it(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="`make peers`"):
        contenders("mpich", folder=tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="`make peers`"):
        contenders("impi", folder=None)


def test_the_nearest_folder_of_peers_is_found(made, monkeypatch):
    root = made / "project"
    (root / ".peers").mkdir(parents=True)
    (root / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(root / "src" / "deep")
    assert peers.nearest_folder() == root / ".peers"


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize(
    ("printed", "flavour"),
    [
        ("mpirun (Open MPI) 4.1.6", "openmpi"),
        ("HYDRA build details: Version: 4.2", "mpich"),
        ("Intel(R) MPI Library for Linux* OS (HYDRA)", "impi"),
    ],
)
def test_the_installed_mpi_is_recognised(tmp_path, monkeypatch, printed, flavour):
    script(tmp_path / "mpiexec", f'echo "{printed}"')
    script(tmp_path / "python3", "echo yes")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    found = contenders("mpi:default")
    assert [each.name for each in found] == ["mpi:default"]
    assert found[0].installation == Installation(
        FLAVOURS[flavour], str(tmp_path / "mpiexec"), str(tmp_path / "python3")
    )


def test_a_launcher_alone_is_not_enough(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    with pytest.raises(UsageError, match="there is no mpiexec"):
        contenders("mpi")
    script(tmp_path / "mpirun", "echo Open MPI")
    with pytest.raises(UsageError, match="no python3 on the PATH has mpi4py"):
        contenders("mpi")


def test_more_ranks_than_cores_are_started_so_that_waiting_ranks_yield(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    installation = Installation(OPEN_MPI, "mpiexec", "python3")
    argv = {
        size: MpiRanks("x", size, installation, OPEN_MPI.settings[0], answer_timeout_s=1)
        .commands(tmp_path, ["r"])[0]
        .argv
        for size in (2, 3)
    }
    agent = ["--mca", "plm_rsh_agent", "false"]
    assert argv[2] == ["mpiexec", "--allow-run-as-root", "--bind-to", "core", *agent, "-n", "2", "python3", "r"]
    assert "--oversubscribe" in argv[3]
    assert "mpi_yield_when_idle" in argv[3]


def test_every_rank_of_unisono_is_bound_to_a_core_if_there_are_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {4, 6})
    for size, expected in ((2, ["4", "6"]), (3, [None, None, None])):
        (tmp_path / str(size)).mkdir()
        commands = unisono_ranks(size, answer_timeout_s=1).commands(tmp_path / str(size), [])
        assert [command.environment.get("BIND_TO_CORE") for command in commands] == expected


def test_ranks_do_not_see_the_job_of_the_driver(tmp_path, monkeypatch):
    for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "UNISONO_JOB"):
        monkeypatch.setenv(name, "7")
    (command, _) = unisono_ranks(2, answer_timeout_s=1).commands(tmp_path, ["-m", "ranks"])
    assert "OMPI_COMM_WORLD_RANK" not in command.environment
    assert "PMI_RANK" not in command.environment
    assert command.environment["UNISONO_RANK"] == "0"
    job = Path(command.environment["UNISONO_JOB"])
    assert stat.S_IMODE(job.stat().st_mode) == 0o700
    assert stat.S_IMODE((job / "secret").stat().st_mode) == 0o600
    assert len(bytes.fromhex((job / "secret").read_text())) == 32


def every_setting():
    for flavour in FLAVOURS.values():
        for setting in flavour.settings:
            yield flavour.name, f"{flavour.name}:{setting.name}"
    yield "gloo", "gloo"


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(("peer", "name"), list(every_setting()))
def test_peers_give_correct_results_in_every_setting(peer, name, size):
    if not (PEERS / peer / ".installed").exists():
        pytest.skip(f"the library {peer} is not installed here: `make peers` makes .peers/{peer}")
    (contender,) = contenders(name, size)
    contender.start()
    try:
        contender.wait_until_ready()
        for collective in MOVING:
            for dtype in ("float32", "bfloat16"):
                for case in make_cases(collective, [8, 70_000], dtype, "sum", size):
                    try:
                        trial = contender.measure(case, TrialOptions(3, 1, check=True))
                    except CaseUnsupported:
                        assert (dtype, collective.reduces) == ("bfloat16", True)
                    else:
                        assert trial.wrong == 0, case
                        assert len(trial.seconds) == size
    finally:
        contender.close()
