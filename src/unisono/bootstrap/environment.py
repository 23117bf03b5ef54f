"""The identity of this process in its job. This is the only module that reads the environment variables of launchers.

A **launcher** starts the ranks of a job and passes each its rank in environment variables. The variables of `unisono
run` and of the common launchers are understood. Where several launchers have left variables, the innermost counts: an
mpirun or a torchrun inside an srun. Slurm needs care: a shell of salloc has its variables without a rank, and a batch
script is told that it is rank 0 of many although the others were never started. Only a **step**, which srun starts,
has a step id.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from unisono.bootstrap import messages
from unisono.bootstrap.job_identity import launcher_of
from unisono.bootstrap.tls import Tls
from unisono.errors import UsageError
from unisono.message import listed

LauncherName = Literal["unisono", "torchrun", "openmpi", "mpich", "slurm", "alone"]


class JobTrace(NamedTuple):
    """The request to trace all communicators of a job (`unisono run --trace`)."""

    folder: str
    rank: int  # of this process in the job
    run: str  # the same on every rank of a run, different for any other run
    base_ns: int  # the time that counts as 0, of the clock of this host


@dataclass(frozen=True)
class RankIdentity:
    """The rank of this process, the size of its job, and the launcher that started the job.

    ``connect(identity=...)`` takes one instead of reading the environment variables of a launcher::

        me = unisono.RankIdentity(rank, size, rank, size, launcher="alone", job="my job 17")
        comm = unisono.connect(identity=me)

    ``rank`` counts from 0 to ``size`` - 1; ``local_rank`` and ``local_size`` count the ranks on this host.
    ``launcher`` is "unisono", "torchrun", "openmpi", "mpich", "slurm" or "alone". ``job`` is a text that is the same
    on every rank of a job and different for any other job on this host, also after a restart. ``trace`` is the
    request of ``unisono run --trace`` (default: none). ``by_hand`` says that no launcher has set the variables, so
    that ``job`` may not be unique, and ``local_size_is_assumed`` that the launcher has not stated it (default:
    False).
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    launcher: LauncherName
    job: str
    trace: JobTrace | None = None
    by_hand: bool = field(default=False, compare=False)
    local_size_is_assumed: bool = field(default=False, compare=False)


class JobNetwork(NamedTuple):
    """What a launcher states about a job on several hosts; texts that it does not state are empty."""

    address: str = ""  # HOST:PORT of rank 0
    host: str = ""  # of rank 0, if the launcher does not choose a port
    token: str = ""
    job: str = ""  # a name of the job that is the same on all hosts
    transport: str = ""  # that carries the data, unless the program states another one
    tls: Tls | None = None


class Names(NamedTuple):
    """The names of the variables in which a launcher passes its rank to a process."""

    rank: str
    size: str
    local_rank: str
    local_size: str
    job: tuple[str, ...]


# Without the local variables, all ranks of `unisono run` are on this host.
UNISONO = Names(
    "UNISONO_RANK", "UNISONO_SIZE", "UNISONO_LOCAL_RANK", "UNISONO_LOCAL_SIZE", ("UNISONO_JOB",)
)  # fmt: skip
TORCH = Names(
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
    ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"),
)  # fmt: skip
OPEN_MPI = Names(
    "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
    ("PMIX_NAMESPACE",),
)  # fmt: skip
# MPICH, and Intel MPI, which is derived from it. MPICH has no variable that identifies the job.
MPICH = Names("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", ("I_MPI_HYDRA_UUID",))
SLURM = Names(
    "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE",
    ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"),
)  # fmt: skip
# Variables of a surrounding job, which a rank must not inherit: an MPI in it would join that job.
OF_OTHER_JOBS = (
    "UNISONO_", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK",
    "ROLE_WORLD_SIZE", "TORCHELASTIC_", "OMPI_COMM_WORLD_", "OMPI_MCA_ess_", "OMPI_MCA_orte_", "PMIX_", "PMI_",
    "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "HYDI_", "I_MPI_HYDRA_UUID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS",
    "SLURM_TASK_PID", "SLURM_STEPID", "SLURM_STEP_",
)  # fmt: skip
TLS = ("UNISONO_TLS_CERTIFICATE", "UNISONO_TLS_KEY", "UNISONO_TLS_AUTHORITY")  # paths
MANY_TASKS = r"([0-9]{1,9})(?:\(x([0-9]{1,9})\))?"  # Slurm writes 2(x3),1 for 2, 2, 2 and 1 tasks on four hosts


def identity_in_job(environ: Mapping[str, str] = os.environ) -> RankIdentity:
    """Return the identity that the launcher has given to this process; without a launcher it is rank 0 of 1."""
    if any(name in environ for name in (UNISONO.rank, UNISONO.size, *UNISONO.job)):
        return _from(environ, "unisono", UNISONO, environ.get("UNISONO_JOB", ""))
    if "TORCHELASTIC_RUN_ID" in environ:
        return _from(environ, "torchrun", TORCH, _job(environ, TORCH, with_launcher=True))
    if OPEN_MPI.rank in environ or OPEN_MPI.size in environ:
        return _from(environ, "openmpi", OPEN_MPI, _job(environ, OPEN_MPI, with_launcher=True))
    in_step = SLURM.rank in environ and "SLURM_STEP_ID" in environ
    # `srun --mpi=pmi2` also sets the first two of MPICH's variables, but not the local ones.
    if (MPICH.rank in environ or MPICH.size in environ) and ("MPI_LOCALRANKID" in environ or not in_step):
        return _from(environ, "mpich", MPICH, _job(environ, MPICH, with_launcher=True))
    if in_step:
        return _from(environ, "slurm", SLURM, _job(environ, SLURM, with_launcher=False))
    # Set by hand or by a script, as torch.distributed expects them: any process may have started the ranks.
    if TORCH.rank in environ or TORCH.size in environ:
        identity = _from(environ, "torchrun", TORCH, _job(environ, TORCH, with_launcher=False))
        return replace(identity, by_hand=True)
    return RankIdentity(0, 1, 0, 1, "alone", f"alone {os.getpid()}")


def job_network(launcher: LauncherName, environ: Mapping[str, str] = os.environ) -> JobNetwork:
    """Return what the launcher of this process states about a job on several hosts.

    torchrun and Slurm state the host of rank 0, but no port that is free: torch's store listens on MASTER_PORT.
    """
    if launcher == "unisono":
        return JobNetwork(
            address=environ.get("UNISONO_RENDEZVOUS", ""), token=environ.get("UNISONO_TOKEN", ""),
            transport=environ.get("UNISONO_TRANSPORT", ""), tls=launcher_tls(environ),
        )  # fmt: skip
    if launcher == "torchrun":
        host = environ.get("MASTER_ADDR", "")
        return JobNetwork(host=host, job=_job(environ, TORCH, with_launcher=False))
    if launcher == "slurm":
        host = first_host(environ.get("SLURM_STEP_NODELIST", ""))
        return JobNetwork(host=host, job=_job(environ, SLURM, with_launcher=False))
    if launcher == "openmpi":
        return JobNetwork(job=_job(environ, OPEN_MPI, with_launcher=False))
    if launcher == "mpich":
        return JobNetwork(job=_job(environ, MPICH, with_launcher=False))
    return JobNetwork()


def first_host(nodes: str) -> str:
    """Return the first host in a list of Slurm, such as ``node[01-03,07],gpu5``."""
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)
    assert first is not None
    return re.sub(r"\[(\w*)[^\]]*\]", r"\1", first[0])


def job_trace(environ: Mapping[str, str] = os.environ) -> JobTrace | None:
    """Return the trace that ``unisono run --trace`` asks for, or None.

    If `unisono run` has started a torchrun, the rank is the one that torchrun has given.
    """
    base_ns, run, folder = (*environ.get("UNISONO_TRACE", "").split(":", 2), "", "")[:3]
    rank = environ.get(TORCH.rank if "TORCHELASTIC_RUN_ID" in environ else UNISONO.rank, "")
    if not (folder and base_ns.isdecimal() and rank.isdecimal()):
        return None
    return JobTrace(folder, int(rank), run, int(base_ns))


def job_join_address(environ: Mapping[str, str] = os.environ) -> str:
    """Return the address at which processes join the job, if the launcher states it (``bootstrap/admission.py``)."""
    return environ.get("UNISONO_JOIN_ADDRESS", "")


def new_join_address() -> str:
    """Return the address at which processes join a new job: a name and a secret."""
    return f"{secrets.token_hex(8)}:{secrets.token_hex(32)}"


def must_join(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether the launcher has started this process to join a job that is running."""
    return environ.get("UNISONO_JOIN", "") == "1"


def trace_request(base_ns: int, run: str, folder: str) -> str:
    """Return the request for a trace, as ``environment_of_rank`` takes it; see JobTrace for the parameters."""
    return f"{base_ns}:{run}:{folder}"


def torchrun_is_on_one_host(size: int, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether torchrun states that all ranks are on this host; ``size`` is that of a group of them.

    A program may start ranks beyond those of torchrun: about a larger group, torchrun states nothing.
    """
    world, local = environ.get(TORCH.size, ""), environ.get(TORCH.local_size, "")
    return "TORCHELASTIC_RUN_ID" in environ and world.isdecimal() and world == local and size <= int(world)


def is_launched_by_unisono(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether ``unisono run`` has started this process, directly or through another launcher."""
    return "UNISONO_JOB" in environ


def environment_of_rank(
    rank: int, size: int, job: str, environ: Mapping[str, str] = os.environ, *, trace: str | None = None,
    local: tuple[int, int] | None = None, network: JobNetwork | None = None, join_address: str = "",
    joins: bool = False,
) -> dict[str, str]:  # fmt: skip
    """Return the environment of a rank of ``unisono run``: that of the launcher, without the variables of other jobs.

    ``trace``: the request for a trace (``trace_request``). ``local`` and ``network``, in a job on
    several hosts: the rank and the number of ranks on this host, and the rendezvous. ``join_address`` is
    that of an elastic job, and ``joins`` says that the rank joins it while it is running.
    """
    inherited = {name: value for name, value in environ.items() if not _is_of_another_job(name)}
    own = {"UNISONO_RANK": str(rank), "UNISONO_SIZE": str(size), "UNISONO_JOB": job}
    if trace is not None:
        own["UNISONO_TRACE"] = trace
    if local is not None:
        own |= {"UNISONO_LOCAL_RANK": str(local[0]), "UNISONO_LOCAL_SIZE": str(local[1])}
    if join_address:
        own |= {"UNISONO_JOIN_ADDRESS": join_address, "UNISONO_JOIN": "1" if joins else "0"}
    if network is not None:
        own |= {"UNISONO_RENDEZVOUS": network.address, "UNISONO_TOKEN": network.token}
        if network.transport:
            own["UNISONO_TRANSPORT"] = network.transport
        if network.tls is not None:
            own |= dict(zip(TLS, network.tls.paths, strict=True))
    return {**inherited, **own, "PYTHONUNBUFFERED": "1"}  # lines appear when they are written


def launcher_tls(environ: Mapping[str, str] = os.environ) -> Tls | None:
    """Return the files that ``unisono run --tls-...`` names, or None."""
    paths = [environ[name] for name in TLS if name in environ]
    return Tls(*paths) if len(paths) == len(TLS) else None


def _is_of_another_job(name: str) -> bool:
    return any(name == of or (of.endswith("_") and name.startswith(of)) for of in OF_OTHER_JOBS)


def _from(environ: Mapping[str, str], launcher: LauncherName, names: Names, job: str) -> RankIdentity:
    missing = [name for name in (names.rank, names.size) if name not in environ]
    if missing:
        present = [f"{name}={environ[name]!r}" for name in (names.rank, names.size, *names.job) if name in environ]
        raise UsageError(messages.VARIABLES_MISSING(present=present[0], missing=listed(missing), launcher=launcher))
    rank, size = _number(environ, names.rank), _number(environ, names.size)
    local_rank = _number(environ, names.local_rank) if names.local_rank in environ else rank
    local_size, is_assumed = size, names is not UNISONO and names.local_size not in environ
    if names.local_size in environ:
        local_size = _tasks_here(environ) if names is SLURM else _number(environ, names.local_size)
    if not rank < size:
        raise _not_less((names.rank, rank), (names.size, size))
    if not local_rank < local_size:
        raise _not_less((names.local_rank, local_rank), (names.local_size, local_size))
    if local_size > size:
        raise UsageError(
            messages.LOCAL_SIZE_TOO_LARGE(
                local_name=names.local_size, local_size=local_size, name=names.size, size=size
            )
        )
    if size > 1 and not job:
        raise UsageError(messages.NO_JOB_NAME(name=names.size, size=size, job=listed(names.job[:2])))
    trace = job_trace(environ) if launcher == "unisono" else None
    return RankIdentity(rank, size, local_rank, local_size, launcher, job, trace, local_size_is_assumed=is_assumed)


def _not_less(smaller: tuple[str, int], larger: tuple[str, int]) -> UsageError:
    (name, value), (limit_name, limit) = smaller, larger
    return UsageError(messages.RANK_TOO_LARGE(name=name, value=value, limit_name=limit_name, limit=limit))


def _number(environ: Mapping[str, str], name: str) -> int:
    text = environ[name]
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise UsageError(messages.NOT_A_NUMBER(name=name, text=text))
    return int(text)


def _tasks_here(environ: Mapping[str, str]) -> int:
    text = environ["SLURM_STEP_TASKS_PER_NODE"]
    node = _number(environ, "SLURM_NODEID") if "SLURM_NODEID" in environ else 0
    nodes = 0
    for part in text.split(","):
        match = re.fullmatch(MANY_TASKS, part)
        if match is None:
            break
        nodes += int(match[2] or 1)
        if node < nodes:
            return int(match[1])
    raise UsageError(messages.NOT_TASKS(text=text, node=node))


def _job(environ: Mapping[str, str], names: Names, *, with_launcher: bool) -> str:
    """Return the launcher's name of the job; if it may occur again, together with the process of the launcher."""
    values = [environ[name] for name in names.job if name in environ]
    return " ".join(
        [*values, launcher_of(environ, (names.rank, names.size, *names.job))] if with_launcher else values
    )
