"""``unisono.connect()``: join the other ranks of this job."""

from __future__ import annotations

from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.job_resources import STAGING_BYTES
from unisono.bootstrap.membership import connect_link
from unisono.comm.communicator import Communicator
from unisono.comm.selection import load_table


def connect(
    *,
    timeout: float = 300.0,
    connect_timeout: float = 60.0,
    staging_bytes: int = STAGING_BYTES,
    identity: RankIdentity | None = None,
) -> Communicator:
    """Join the other ranks of this job and return the communicator of all.

    It reads the environment variables of ``unisono run``, torchrun, mpirun and srun; without them, the size is 1.
    ``timeout`` is the number of seconds that a call may wait, and ``connect_timeout`` that of this function;
    ``staging_bytes`` is the shared memory of each rank (that of rank 0 applies to all). ``identity`` states the rank
    and size explicitly, to bypass the environment variables.
    """
    return Communicator(connect_link(timeout, connect_timeout, staging_bytes, load_table, identity))
