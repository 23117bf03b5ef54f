"""``unisono.connect()``: join the other ranks of this job."""

from __future__ import annotations

from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.membership import STAGING_BYTES, connect_link
from unisono.comm.communicator import Communicator
from unisono.comm.tables import load_table


def connect(
    *,
    timeout: float = 300.0,
    connect_timeout: float = 60.0,
    staging_bytes: int = STAGING_BYTES,
    identity: RankIdentity | None = None,
) -> Communicator:
    """Join the other ranks of this job and return the communicator of all.

    The variables of ``unisono run``, torchrun, mpirun and srun are understood; alone, the size is 1. ``timeout`` is
    how long a call may wait, in seconds; ``staging_bytes`` is the shared memory of each rank (rank 0's wish counts).
    ``identity`` says where this process stands in the job, and bypasses the environment variables.
    """
    return Communicator(connect_link(timeout, connect_timeout, staging_bytes, load_table, identity))
