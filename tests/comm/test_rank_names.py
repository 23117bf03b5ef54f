"""Errors on a part of a job name ranks by their numbers in the job and in the part."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest

from unisono.errors import Aborted, CollectiveTimeout, CommError, MismatchError, PeerLost
from unisono.launch.spawn import outcomes_of

pytestmark = pytest.mark.slow

SOON_S = 10.0


def halves(comm):
    """Ranks 2 and 3 of the job are ranks 0 and 1 of their group."""
    return comm.split(comm.rank // 2)


def nested(comm):
    """Ranks 3 and 2 of the job, in this order, by two splits."""
    upper = comm.split(0 if comm.rank > 0 else None)
    return None if upper is None else upper.split(int(comm.rank > 1), key=-comm.rank)


PARTS = {
    "split": halves,
    "nested": nested,
    "duplicate": lambda comm: halves(comm).duplicate(),
    "second duplicate": lambda comm: (part := halves(comm), part.duplicate(), part.duplicate())[2],
}
GROUP_OF = {"split": "{2, 3}", "nested": "{3, 2}", "duplicate": "{2, 3}", "second duplicate": "{2, 3}"}


def fail_in_part(comm, make_part, how):
    """Rank 3 fails in the part that it shares with rank 2; rank 2 returns its error, the others return nothing."""
    part = PARTS[make_part](comm)
    if comm.rank < 2:
        return None
    part.barrier()
    x = np.ones(6)
    try:
        if comm.rank == 3:
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            elif how == "aborts":
                part.abort("enough")
                time.sleep(1)
            elif how == "closes":
                part.close()
                time.sleep(1)
            elif how == "sleeps":
                time.sleep(1.5)
            elif how == "calls something else":
                part.broadcast(x, timeout=SOON_S)
            elif how == "sends something else":
                part.send(np.ones(3), 1 - part.rank, timeout=SOON_S)
                time.sleep(0.5)
            return None
        if how == "sends something else":
            part.recv(x, 1 - part.rank)
        elif how == "sleeps":
            part.all_reduce(x, timeout=0.5)
        else:
            part.all_reduce(x)
    except CommError as error:
        return type(error), error.rank, str(error)


@pytest.mark.parametrize("make_part", PARTS)
@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("killed", PeerLost),
        ("closes", PeerLost),
        ("aborts", Aborted),
        ("sleeps", CollectiveTimeout),
        ("calls something else", MismatchError),
        ("sends something else", MismatchError),
    ],
)
def test_an_error_on_a_part_of_a_job_names_the_rank_of_the_job(make_part, how, kind):
    outcome = outcomes_of(fail_in_part, 4, make_part, how, patience_s=SOON_S)[2]
    assert outcome.value is not None, outcome.story
    found, rank, text = outcome.value
    assert found is kind
    if kind is not MismatchError:  # it concerns two ranks, and either may report the other
        assert rank == 3, text
    place = GROUP_OF[make_part].replace("{", "").replace("}", "").split(", ").index("3")
    assert f"rank 3 of the job (rank {place} of its group" in text
    assert text.endswith(f". The group is {GROUP_OF[make_part]}")
    assert "rank 0 of the job" not in text
    assert "rank 1 of the job" not in text


def wait_in_a_chain(comm):
    part = comm.split(0 if comm.rank > 0 else None)
    if comm.rank == 0:
        return None
    part.barrier()
    try:
        if comm.rank == 3:
            time.sleep(2)  # rank 1 waits for rank 2, which waits for rank 3
        elif comm.rank == 1:
            part.all_reduce(np.ones(3), algorithm="ring", timeout=0.7)
        else:
            part.all_reduce(np.ones(3), algorithm="ring")
    except CommError as error:
        return error.rank, str(error)


def test_a_timeout_names_the_rank_at_the_end_of_the_chain():
    outcomes = outcomes_of(wait_in_a_chain, 4, patience_s=SOON_S)
    for outcome in outcomes[1:3]:
        rank, text = outcome.value
        assert rank == 3, text
        assert "rank 1 of the job (rank 0 of its group) timed out after" in text
        assert "rank 3 of the job (rank 2 of its group) has not entered this call" in text


def fail_in_world(comm):
    halves(comm).barrier()
    if comm.rank == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.all_reduce(np.ones(3))


def test_errors_on_the_whole_job_do_not_mention_groups():
    outcomes = outcomes_of(fail_in_world, 4, patience_s=SOON_S)
    for outcome in outcomes[:3]:
        assert outcome.error.rank == 3
        assert "group" not in str(outcome.error)
        assert "of the job" not in str(outcome.error)


def forward_the_error_of_a_part(comm):
    part = halves(comm)
    part.barrier()
    if comm.rank == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if comm.rank == 2:
        part.all_reduce(np.ones(3))
    time.sleep(0.5)  # rank 2 has reported by now
    comm.all_reduce(np.ones(3))


def test_ranks_outside_of_a_part_learn_from_its_error_which_rank_of_the_job_was_lost():
    outcomes = outcomes_of(forward_the_error_of_a_part, 4, patience_s=SOON_S)
    for outcome in outcomes[:2]:
        text = str(outcome.error)
        assert "rank 2 aborted: PeerLost: rank 3 of the job (rank 1 of its group, process" in text
        assert text.endswith(". The group is {2, 3}")


def time_out_on_a_work(comm):
    part = halves(comm)
    if comm.rank == 2:
        work = part.recv(np.ones(3), 1, async_op=True)
        try:
            work.wait(timeout=0.1)
        except CollectiveTimeout as error:
            text = str(error)
        part.barrier()
        work.wait()
        return text
    if comm.rank == 3:
        part.barrier()
        part.send(np.ones(3), 0)
    return None


def test_a_work_that_times_out_names_its_group():
    outcome = outcomes_of(time_out_on_a_work, 4, patience_s=SOON_S)[2]
    assert "from rank 1 with tag 0 has not finished after 0.1 s" in outcome.value
    assert outcome.value.endswith(". The group is {2, 3}")
