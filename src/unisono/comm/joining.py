"""``unisono.join()``: become a rank of a job that is running."""

from __future__ import annotations

from unisono.bootstrap.environment import RankIdentity, identity_in_job, is_launched_by_unisono
from unisono.bootstrap.fault_log import check_not_ending
from unisono.bootstrap.growth import join_link
from unisono.comm.communicator import Communicator
from unisono.comm.dispatch import check_timeout
from unisono.comm.machine import load_tuning

NO_RANK = -1  # a applicant without a wish


def join(address: str, *, timeout: float = 60.0) -> Communicator:
    """Join a job that is running, and return its communicator, in which this process has the last rank.

    ``address`` is the ``join_address`` of a communicator of the job, which proves that this process belongs to it:
    keep it secret. The call waits until the ranks of the job call ``grow``, for ``timeout`` seconds (default 60).
    Joining works on the host of the job. UsageError is raised if the arguments cannot work, and CollectiveTimeout if
    the job does not admit this process in time.
    """
    check_timeout("join", timeout)
    return _join(address, timeout, None)


def rejoin(join_address: str, timeout: float) -> Communicator:
    """Join the job that the launcher has started this process for."""
    return _join(join_address, timeout, identity_in_job())


def _join(join_address: str, timeout: float, identity: RankIdentity | None) -> Communicator:
    wanted = NO_RANK if identity is None else identity.rank
    job = identity.job if identity is not None and is_launched_by_unisono() else ""

    def poll() -> None:
        if job:
            check_not_ending(job)

    return Communicator(join_link(join_address, wanted, timeout, identity, load_tuning, poll))
