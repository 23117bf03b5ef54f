"""Ranks find each other under every launcher and reject all other processes."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import unisono
from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.private_directory import job_directory, write_secret
from unisono.errors import CollectiveTimeout, MismatchError, UsageError

SCRIPT = """
import sys, numpy as np, unisono
for _ in range(2):
    with unisono.connect(connect_timeout=60) as comm:
        x = np.full(3, comm.rank + 1.0)
        comm.all_reduce(x)
        assert x[0] == comm.size * (comm.size + 1) / 2
print("met", comm.rank, comm.size)
"""

LAUNCHERS = {
    "torchrun": lambda rank, size: {
        "RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size, "MASTER_ADDR": "localhost",
        "MASTER_PORT": 29500, "TORCHELASTIC_RUN_ID": "job-1", "TORCHELASTIC_RESTART_COUNT": 0,
    },
    "Open MPI": lambda rank, size: {
        "OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": size, "OMPI_COMM_WORLD_LOCAL_RANK": rank,
        "OMPI_COMM_WORLD_LOCAL_SIZE": size, "PMIX_NAMESPACE": "prterun-1",
    },
    "MPICH": lambda rank, size: {
        "PMI_RANK": rank, "PMI_SIZE": size, "MPI_LOCALRANKID": rank, "MPI_LOCALNRANKS": size,
    },
    "srun": lambda rank, size: {
        "SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": size, "SLURM_LOCALID": rank, "SLURM_STEP_TASKS_PER_NODE": size,
        "SLURM_JOB_ID": 7, "SLURM_STEP_ID": 0, "SLURM_NTASKS": size,
    },
}  # fmt: skip


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_ranks_of_other_launchers_can_connect_repeatedly(launcher, tmp_path):
    size = 3
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    environment.pop("XDG_RUNTIME_DIR", None)
    ranks = []
    for rank in range(size):
        told = {name: str(value) for name, value in LAUNCHERS[launcher](rank, size).items()}
        ranks.append(
            subprocess.Popen(
                [sys.executable, "-c", SCRIPT], env={**environment, **told}, stdout=subprocess.PIPE, text=True
            )
        )
    printed = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert printed == [f"met {rank} {size}\n" for rank in range(size)]
    assert list(tmp_path.glob("unisono*")) == []


def test_without_a_launcher_a_script_is_rank_0_of_1():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120)
    assert done.stdout == "met 0 1\n", done.stderr


@contextmanager
def a_job():
    """Make the directory of a job like the launcher; yield a function that returns the identity of a rank."""
    with tempfile.TemporaryDirectory(prefix="unisono-") as directory:
        descriptor = os.open(directory, os.O_RDONLY)
        write_secret(descriptor, "open sesame")
        os.close(descriptor)
        yield lambda rank, size: RankIdentity(rank, size, rank, size, "unisono", directory)


def connect_in_thread(identity, found, **settings):
    def run():
        try:
            with unisono.connect(identity=identity, **settings) as comm:
                comm.barrier()
                found.append(comm.rank)
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_rank_that_does_not_connect_is_named():
    with a_job() as identity, pytest.raises(CollectiveTimeout, match=r"these ranks of 3 have not connected: 1, 2"):
        unisono.connect(identity=identity(0, 3), connect_timeout=0.3)


def test_rank_0_is_named_if_it_does_not_listen():
    with (
        a_job() as identity,
        pytest.raises(CollectiveTimeout, match=r"rank 2 timed out after 0.3 s waiting for rank 0 of 3"),
    ):
        unisono.connect(identity=identity(2, 3), connect_timeout=0.3)


def connect_all(*identities):
    """Connect ranks, each in a separate process; return their outputs."""
    script = (
        "import sys, unisono\n"
        "from unisono.bootstrap.environment import RankIdentity\n"
        "rank, size, job = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]\n"
        "try:\n"
        "    identity = RankIdentity(rank, size, rank, size, 'unisono', job)\n"
        "    unisono.connect(identity=identity, connect_timeout=20).close()\n"
        "    print('connected')\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(identity.rank), str(identity.size), identity.job],
            stdout=subprocess.PIPE, text=True,
        )
        for identity in identities
    ]  # fmt: skip
    return [process.communicate(timeout=120)[0].strip() for process in started]


def test_ranks_that_disagree_on_the_size_raise_an_error():
    with a_job() as identity:
        said = connect_all(identity(0, 2), identity(1, 3))
    for text in said:
        assert text == "MismatchError connect: rank 1 was started with size 3, rank 0 with size 2"


def test_two_processes_with_the_same_rank_raise_an_error():
    with a_job() as identity:
        said = connect_all(identity(0, 3), identity(1, 3), identity(1, 3))
    assert "MismatchError connect: rank 1 connected twice, or is not in 0..2" in said[0]


def test_a_process_without_the_secret_is_disconnected_and_disturbs_no_rank():
    with a_job() as identity:
        address = Path(identity(0, 2).job) / "rendezvous-1"
        stop = threading.Event()
        tried = []

        def connect_repeatedly():
            while not stop.is_set():
                with socket.socket(socket.AF_UNIX) as line:
                    try:
                        line.connect(str(address))
                    except OSError:
                        continue
                    body = b'{"secret": "guess", "rank": 1, "size": 2, "protocol": 1, "mine": {}}'
                    for letter in (struct.pack("=I", len(body)) + body, b"\xff" * 100, b""):
                        try:
                            line.sendall(letter)
                            tried.append(line.recv(10))
                        except OSError:
                            break
                        break

        stranger = threading.Thread(target=connect_repeatedly)
        stranger.start()
        said = connect_all(identity(0, 2), identity(1, 2))
        stop.set()
        stranger.join()
    assert said == ["connected", "connected"]
    assert set(tried) <= {b""}


def test_a_directory_that_other_users_can_enter_is_rejected(tmp_path):
    tmp_path.chmod(0o755)
    with (
        pytest.raises(UsageError, match="is not private"),
        job_directory(RankIdentity(1, 2, 1, 2, "unisono", str(tmp_path))),
    ):
        pass


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_cannot_join():
    with a_job() as identity:
        child = os.fork()
        if child == 0:
            os.setuid(65534)
            try:
                unisono.connect(identity=identity(1, 2), connect_timeout=1)
            except UsageError:
                os._exit(7)
            except BaseException:
                os._exit(1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_forked_child_is_not_a_rank():
    with unisono.connect() as comm:
        comm.all_reduce(np.ones(3), async_op=True).wait()
        child = os.fork()
        if child == 0:
            try:
                comm.all_reduce(np.ones(3))
            except UsageError:
                del comm
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        comm.all_reduce(np.ones(3))


def test_a_mismatch_is_a_communication_error():
    assert issubclass(MismatchError, unisono.errors.CommError)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_may_be_on_another_host_gets_a_hint(rank, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for name, value in {"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "node1", "MASTER_PORT": 29511}.items():
        monkeypatch.setenv(name, str(value))
    with pytest.raises(CollectiveTimeout, match=r'connect\(rendezvous="HOST:PORT", token_file=PATH\)$'):
        unisono.connect(connect_timeout=0.3)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    with pytest.raises(CollectiveTimeout) as caught:
        unisono.connect(connect_timeout=0.3)
    assert "rendezvous=" not in str(caught.value)
