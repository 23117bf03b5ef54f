"""The settings in which peers are measured, with the reason for each.

Beating the defaults of a library proves little. Its best setting depends on the size of the message and the number of
ranks, so each peer is measured in several settings, and Unisono is compared with the fastest one at each size. Every
setting was tested with 2 ranks on 2 cores and with 4 ranks on 2 cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Temporary buffers of libraries in huge pages: at 64 MiB, page faults and TLB misses cost two to three times as much.
HUGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


@dataclass(frozen=True)
class Setting:
    """Options of the launcher and environment variables."""

    name: str
    why: str
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Flavour:
    """An MPI implementation and the options of its launcher."""

    name: str
    signs: tuple[str, ...]  # the output of `mpiexec --version` contains one of them
    settings: tuple[Setting, ...]
    as_root: tuple[str, ...] = ()  # options without which it refuses to run as root
    spare_cores: Setting = Setting("spare_cores", "a core for every rank")
    oversubscribed: Setting = Setting(
        "oversubscribed", "more ranks than cores: a rank that waits must yield its core"
    )


def mca(**parameters: str | int) -> tuple[str, ...]:
    """Return parameters of Open MPI as options of its launcher."""
    return tuple(word for name, value in parameters.items() for word in ("--mca", name, str(value)))


# Over UCX in shared memory; without the two lists of `any`, Open MPI uses UCX only where there is a fast network.
# Versions before 5 know some parameters by other names; a name that is unknown is ignored.
UCX = mca(
    pml="ucx", opal_common_ucx_tls="any", opal_common_ucx_devices="any", pml_ucx_tls="any", pml_ucx_devices="any"
)
SEGMENTED_RING = mca(
    coll_tuned_use_dynamic_rules=1,
    coll_tuned_allreduce_algorithm=5,
    coll_tuned_allreduce_algorithm_segmentsize=1 << 20,
)
LARGE_SLOTS = mca(
    btl_sm_eager_limit=1 << 16, btl_sm_max_send_size=1 << 18,
    btl_vader_eager_limit=1 << 16, btl_vader_max_send_size=1 << 18,
)  # fmt: skip

# All ranks run on this machine: without this, versions before 5 look for ssh and fail if it is missing.
ONE_MACHINE = mca(plm_rsh_agent="false")

OPEN_MPI = Flavour(
    "openmpi",
    ("Open MPI", "OpenRTE"),  # the second: before version 5
    as_root=("--allow-run-as-root",),
    spare_cores=Setting("spare_cores", "a core for every rank", ("--bind-to", "core", *ONE_MACHINE)),
    oversubscribed=Setting(
        "oversubscribed",
        "more ranks than cores: a rank that waits must yield its core",
        ("--oversubscribe", "--bind-to", "none", *mca(mpi_yield_when_idle=1), *ONE_MACHINE),
    ),
    settings=(
        Setting("default", "as it is installed"),
        Setting("huge", "huge pages for its temporary buffers: large messages", environment=HUGE),
        Setting("slots", "larger slots in shared memory: around 1 MiB", LARGE_SLOTS, HUGE),
        Setting("segmented", "segmented ring, huge pages: the largest messages", SEGMENTED_RING, HUGE),
        Setting("ucx", "UCX in shared memory: small messages", UCX, {"UCX_TLS": "self,posix,cma"}),
        Setting("ucx-posix", "UCX, copying through shared memory only", UCX, {"UCX_TLS": "self,posix"}),
        Setting(
            "ucx-segmented", "both: UCX for the messages, segmented ring for the order", (*UCX, *SEGMENTED_RING),
            {"UCX_TLS": "self,posix,cma", **HUGE},
        ),
    ),
)  # fmt: skip

# The shared-memory collectives of MPICH wait without yielding the core; the general ones yield it.
GENERAL = {
    f"MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM": "mpir"
    for name in ("ALLREDUCE", "BCAST", "REDUCE", "BARRIER", "ALLTOALL", "ALLGATHER")
}
MPICH = Flavour(
    "mpich",
    ("HYDRA",),
    spare_cores=Setting("spare_cores", "a core for every rank", ("-bind-to", "core")),
    oversubscribed=Setting(
        "oversubscribed", "more ranks than cores: a rank that waits must yield its core", environment=GENERAL
    ),
    settings=(
        Setting("default", "as it is installed"),
        Setting("huge", "huge pages for its temporary buffers", environment=HUGE),
        Setting("general", "its general algorithms, not those in shared memory", environment={**GENERAL, **HUGE}),
    ),
)

SHM = {"I_MPI_FABRICS": "shm"}
INTEL_MPI = Flavour(
    "impi",
    ("Intel",),
    settings=(
        Setting("default", "as it is installed"),
        Setting("shm", "shared memory only", environment=SHM),
        Setting("huge", "shared memory, huge pages for its temporary buffers", environment={**SHM, **HUGE}),
        *(
            Setting(
                f"allreduce-{number}", f"{what}, huge pages",
                environment={**SHM, **HUGE, "I_MPI_ADJUST_ALLREDUCE": str(number)},
            )
            for number, what in (
                (1, "recursive doubling"), (2, "Rabenseifner"), (8, "ring"), (11, "a k-ary tree in shared memory"),
                (14, "as numbered by I_MPI_ADJUST_ALLREDUCE; the fastest of all numbers at 1 MiB"),
            )
        ),
    ),
)  # fmt: skip

FLAVOURS = {flavour.name: flavour for flavour in (OPEN_MPI, MPICH, INTEL_MPI)}
