"""The rank of this process and the size of its job: the only module that reads the environment.

A **launcher** starts the ranks of a job and tells each one its rank in variables. We understand our own (`unisono
run`) and the usual ones. Where several have left their variables, the nearer one is meant: an mpirun or a torchrun
inside an srun. Slurm alone is a trap: a shell of salloc has its variables without a rank, and a batch script is told
that it is rank 0 of many although nobody started the others. Only a **step** (what srun starts) has a step id.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from unisono.bootstrap.job_identity import launcher_of
from unisono.errors import UsageError

LauncherName = Literal["unisono", "torchrun", "openmpi", "mpich", "slurm", "alone"]


class JobTrace(NamedTuple):
    """That everything is to be recorded (`unisono run --trace`)."""

    folder: str
    rank: int  # of this process in the job
    run: str  # the same on every rank, another one for any other run
    base_ns: int  # the time that counts as 0


@dataclass(frozen=True)
class RankIdentity:
    """The rank of this process, the size of its job, and the launcher that started both."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    launcher: LauncherName
    job: str  # the same on every rank of a job; another one for any other job on this machine, also after a restart
    trace: JobTrace | None = None
    by_hand: bool = field(default=False, compare=False)  # the variables do not come from a launcher: job is a guess


class Names(NamedTuple):
    """The variables in which a launcher tells a rank what it is."""

    rank: str
    size: str
    local_rank: str
    local_size: str
    job: tuple[str, ...]


# Ours are all on one machine.
UNISONO = Names("UNISONO_RANK", "UNISONO_SIZE", "UNISONO_RANK", "UNISONO_SIZE", ("UNISONO_JOB",))
TORCH = Names(
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
    ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"),
)  # fmt: skip
OPEN_MPI = Names(
    "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
    ("PMIX_NAMESPACE",),
)  # fmt: skip
# Of MPICH and of Intel MPI, which is made from it. MPICH says nothing that names the job.
MPICH = Names("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", ("I_MPI_HYDRA_UUID",))
SLURM = Names(
    "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE",
    ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"),
)  # fmt: skip
# What a rank of ours must not inherit from a job around it: an MPI in it would take itself for a part of that job.
OF_OTHER_JOBS = (
    "UNISONO_", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK",
    "ROLE_WORLD_SIZE", "TORCHELASTIC_", "OMPI_COMM_WORLD_", "OMPI_MCA_ess_", "OMPI_MCA_orte_", "PMIX_", "PMI_",
    "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "HYDI_", "I_MPI_HYDRA_UUID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS",
    "SLURM_TASK_PID", "SLURM_STEPID", "SLURM_STEP_",
)  # fmt: skip
MANY_TASKS = r"([0-9]{1,9})(?:\(x([0-9]{1,9})\))?"  # Slurm writes 2(x3),1 for 2, 2, 2 and 1 tasks on four machines


def identity_in_job(environ: Mapping[str, str] = os.environ) -> RankIdentity:
    """Return where this process stands in its job, as the launcher says; alone it is rank 0 of 1."""
    identity = _identity(environ)
    if identity.local_size < identity.size:
        raise UsageError(
            f"{identity.launcher} has started {identity.size} ranks, {identity.local_size} of them on this "
            "machine; expected all of them: several machines are not supported yet"
        )
    return identity


def job_trace(environ: Mapping[str, str] = os.environ) -> JobTrace | None:
    """Return whether all is to be recorded, as ``unisono run`` says, and where that goes.

    What it has started may be a torchrun, which then says which rank this is.
    """
    base_ns, _, folder = environ.get("UNISONO_TRACE", "").partition(":")
    rank = environ.get(TORCH.rank if "TORCHELASTIC_RUN_ID" in environ else UNISONO.rank, "")
    if not (folder and base_ns.isdecimal() and rank.isdecimal()):
        return None
    return JobTrace(folder, int(rank), os.path.basename(environ.get("UNISONO_JOB", "")), int(base_ns))


def environment_of_rank(
    rank: int, size: int, job: str, environ: Mapping[str, str] = os.environ, *, trace: str | None = None
) -> dict[str, str]:
    """Return what ``unisono run`` gives to a rank: what it has itself, but nothing of a job that it is in.

    ``trace``: where all that the ranks record goes, if they are to: the time that counts as 0, a colon, the folder.
    """
    inherited = {name: value for name, value in environ.items() if not _is_of_another_job(name)}
    told = {"UNISONO_RANK": str(rank), "UNISONO_SIZE": str(size), "UNISONO_JOB": job}
    if trace is not None:
        told["UNISONO_TRACE"] = trace
    return {**inherited, **told, "PYTHONUNBUFFERED": "1"}  # a line is to be seen when it is written


def _is_of_another_job(name: str) -> bool:
    return any(name == of or (of.endswith("_") and name.startswith(of)) for of in OF_OTHER_JOBS)


def _identity(environ: Mapping[str, str]) -> RankIdentity:
    if any(name in environ for name in (UNISONO.rank, UNISONO.size, *UNISONO.job)):
        return _from(environ, "unisono", UNISONO, environ.get("UNISONO_JOB", ""))
    if "TORCHELASTIC_RUN_ID" in environ:
        return _from(environ, "torchrun", TORCH, _job(environ, TORCH, starter=True))
    if OPEN_MPI.rank in environ or OPEN_MPI.size in environ:
        return _from(environ, "openmpi", OPEN_MPI, _job(environ, OPEN_MPI, starter=True))
    in_step = SLURM.rank in environ and "SLURM_STEP_ID" in environ
    # `srun --mpi=pmi2` sets the first two of MPICH's variables as well, and none of the local ones.
    if (MPICH.rank in environ or MPICH.size in environ) and ("MPI_LOCALRANKID" in environ or not in_step):
        return _from(environ, "mpich", MPICH, _job(environ, MPICH, starter=True))
    if in_step:
        return _from(environ, "slurm", SLURM, _job(environ, SLURM, starter=False))
    # Set by hand or by a script, as torch.distributed wants them: any process may have started the ranks.
    if TORCH.rank in environ or TORCH.size in environ:
        identity = _from(environ, "torchrun", TORCH, _job(environ, TORCH, starter=False))
        return replace(identity, by_hand=True)
    return RankIdentity(0, 1, 0, 1, "alone", f"alone {os.getpid()}")


def _from(environ: Mapping[str, str], launcher: LauncherName, names: Names, job: str) -> RankIdentity:
    missing = [name for name in (names.rank, names.size) if name not in environ]
    if missing:
        there = [f"{name}={environ[name]!r}" for name in (names.rank, names.size, *names.job) if name in environ]
        raise _wrong(
            f"{there[0]} and no {' and no '.join(missing)}", f"all of them, as {launcher} sets them, or none"
        )
    rank, size = _number(environ, names.rank), _number(environ, names.size)
    local_rank = _number(environ, names.local_rank) if names.local_rank in environ else rank
    local_size = size
    if names.local_size in environ:
        local_size = _tasks_here(environ) if names is SLURM else _number(environ, names.local_size)
    if not rank < size:
        raise _wrong(f"{names.rank}={rank} with {names.size}={size}", "a rank that is less than the size")
    if not local_rank < local_size:
        raise _wrong(
            f"{names.local_rank}={local_rank} with {names.local_size}={local_size}", "one that is less than the other"
        )
    if local_size > size:
        raise _wrong(f"{names.local_size}={local_size} with {names.size}={size}", "no more ranks here than there are")
    if size > 1 and not job:
        raise _wrong(f"{names.size}={size} and no {' and no '.join(names.job[:2])}", "these too, to know the job by")
    trace = job_trace(environ) if launcher == "unisono" else None
    return RankIdentity(rank, size, local_rank, local_size, launcher, job, trace)


def _number(environ: Mapping[str, str], name: str) -> int:
    found = environ[name]
    if not (found.isascii() and found.isdecimal() and len(found) < 10):
        raise _wrong(f"{name}={found!r}", "a whole number, 0 or more")
    return int(found)


def _tasks_here(environ: Mapping[str, str]) -> int:
    found = environ["SLURM_STEP_TASKS_PER_NODE"]
    node = _number(environ, "SLURM_NODEID") if "SLURM_NODEID" in environ else 0
    seen = 0
    for part in found.split(","):
        read = re.fullmatch(MANY_TASKS, part)
        if read is None:
            break
        seen += int(read[2] or 1)
        if node < seen:
            return int(read[1])
    raise _wrong(f"SLURM_STEP_TASKS_PER_NODE={found!r} on node {node}", "tasks for each node, such as 2(x3),1")


def _job(environ: Mapping[str, str], names: Names, *, starter: bool) -> str:
    """Return what its launcher calls the job and, where that may come again, which process started the ranks."""
    said = [environ[name] for name in names.job if name in environ]
    return " ".join([*said, launcher_of(environ, (names.rank, names.size, *names.job))] if starter else said)


def _wrong(found: str, expected: str) -> UsageError:
    return UsageError(f"the environment of this process says {found}; expected {expected}")
