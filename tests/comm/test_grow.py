"""Processes join a job that is running, when its ranks call grow."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

import unisono
from survivors import check_collectives
from unisono.bootstrap.admission import addresses_of
from unisono.errors import CollectiveTimeout, CommError, UsageError
from unisono.launch.spawn import outcomes_of

PATIENCE_S = 30.0


def start(function, *args):
    """Start a process that joins."""
    process = multiprocessing.get_context("fork").Process(target=function, args=args)
    process.start()
    return process


def visit(address, calls=1):
    """Join, check the collectives, and end."""
    with unisono.join(address, timeout=30.0) as comm:
        for _ in range(calls):
            check_collectives(comm)
        os._exit(0)


def run_job(function, size, applicants, *args):
    """Run a job, and ``applicants`` processes that rank 0 starts; return the values of the ranks."""
    outcomes = outcomes_of(function, size, applicants, *args, timeout=30.0, patience_s=PATIENCE_S)
    assert [outcome.error for outcome in outcomes] == [None] * size, [outcome.story for outcome in outcomes]
    return [outcome.value for outcome in outcomes]


def admit(comm, applicants):
    multiprocessing.current_process()._config["daemon"] = False
    before = np.ones(1000)
    comm.all_reduce(before)
    processes = [start(visit, comm.join_address) for _ in range(applicants)] if comm.rank == 0 else []
    grown = comm.grow(expected=applicants, timeout=30.0)
    assert comm.closed == (applicants > 0)
    assert grown.size == comm.size + applicants
    assert grown.rank == comm.rank
    assert grown.job_ranks == tuple(range(grown.size))
    assert grown.parent_ranks == (*range(comm.size), *[-1] * applicants)
    check_collectives(grown)
    for process in processes:
        process.join(30.0)
        assert process.exitcode == 0
    return grown.size


@pytest.mark.parametrize(("size", "applicants"), [(1, 1), (2, 1), (3, 3), (5, 1), (6, 2), (2, 0)])
def test_processes_join_a_running_job(size, applicants):
    assert run_job(admit, size, applicants) == [size + applicants] * size


def admit_nobody(comm, applicants):
    assert comm.grow() is comm
    began_s = time.monotonic()
    assert comm.grow(expected=1, timeout=0.2) is comm
    assert time.monotonic() - began_s >= 0.2
    check_collectives(comm)


def test_a_communicator_stays_as_it_is_if_no_process_joins():
    run_job(admit_nobody, 3, 0)


def admit_those_that_wait(comm, applicants):
    """A process that waits already joins without waiting for others."""
    multiprocessing.current_process()._config["daemon"] = False
    comm.grow()  # from now on, rank 0 listens
    process = start(visit, comm.join_address) if comm.rank == 0 else None
    while comm.size == 2:
        comm = comm.grow()
        time.sleep(0.01)
    check_collectives(comm)
    if process is not None:
        process.join(30.0)
        assert process.exitcode == 0
    return comm.size


def test_grow_admits_processes_that_wait_already():
    assert run_job(admit_those_that_wait, 2, 1) == [3, 3]


def lose_and_replace(comm, applicants, victim):
    multiprocessing.current_process()._config["daemon"] = False
    if comm.rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    with suppress(CommError):
        while True:
            comm.all_reduce(np.ones(100))
    comm = comm.shrink()
    process = start(visit, comm.join_address) if comm.rank == 0 else None
    comm = comm.grow(expected=1, timeout=30.0)
    check_collectives(comm)
    if process is not None:
        process.join(30.0)
        assert process.exitcode == 0
    return comm.job_ranks


@pytest.mark.parametrize("victim", [0, 1])
def test_a_process_takes_the_place_of_a_rank_that_was_lost(victim):
    outcomes = outcomes_of(lose_and_replace, 3, 1, victim, timeout=30.0, patience_s=PATIENCE_S)
    left = [rank for rank in range(3) if rank != victim]
    assert [outcomes[rank].value for rank in left] == [(*left, victim)] * 2, [each.story for each in outcomes]


def die_when_admitted(address):
    from unisono.bootstrap import growth

    growth._map = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    unisono.join(address)


def lose_a_visitor(comm, applicants):
    multiprocessing.current_process()._config["daemon"] = False
    process = start(die_when_admitted, comm.join_address) if comm.rank == 0 else None
    comm.timeout = 1.0  # of the rendezvous, for which the lost applicant never comes
    with pytest.raises(CommError):
        comm.grow(expected=1, timeout=30.0)
    comm.timeout = 30.0
    if process is not None:
        process.join()
    check_collectives(comm)
    process = start(visit, comm.join_address) if comm.rank == 0 else None
    comm = comm.grow(expected=1, timeout=30.0)
    check_collectives(comm)
    if process is not None:
        process.join(30.0)
    return comm.size


def test_the_ranks_stay_together_if_a_process_is_lost_while_it_joins():
    assert run_job(lose_a_visitor, 3, 1) == [4, 4, 4]


def refuse_strangers(comm, applicants):
    if comm.rank == 0:
        comm.grow(timeout=0.0)
        with addresses_of(comm.join_address)[0].resolve() as address, socket.socket(socket.AF_UNIX) as line:
            line.connect(address.socket)
            line.sendall(b"x" * 4000)
            comm.grow(timeout=0.3)
            line.settimeout(5.0)
            with suppress(ConnectionResetError):
                assert line.recv(100) == b""
        return
    comm.grow()
    assert comm.grow(timeout=0.3) is comm


def test_a_connection_without_the_secret_is_closed():
    run_job(refuse_strangers, 2, 0)


def misuse(comm, applicants):
    with pytest.raises(UsageError, match="grow: expected=-1"):
        comm.grow(expected=-1)
    with pytest.raises(UsageError, match="grow: timeout=-1"):
        comm.grow(timeout=-1)


def test_wrong_uses_are_refused():
    run_job(misuse, 1, 0)
    with pytest.raises(UsageError, match="join: address='nonsense'"):
        unisono.join("nonsense")
    with pytest.raises(CollectiveTimeout, match=r"timed out after 0\.2 s"):
        unisono.join("0123456789abcdef:secret", timeout=0.2)


def shrink_and_grow_at_random(comm, applicants, seed):
    """Lose a rank and admit a process, several times."""
    multiprocessing.current_process()._config["daemon"] = False
    dice = np.random.default_rng(seed)
    address = comm.join_address

    for _ in range(3):
        victim = int(dice.integers(1, comm.size))
        if comm.rank == victim:
            threading.Timer(float(dice.random() * 0.01), os.kill, (os.getpid(), signal.SIGKILL)).start()
        with suppress(CommError):
            while True:
                comm.all_reduce(np.ones(100))
        while True:
            try:
                comm = comm.shrink()
                check_collectives(comm)
                break
            except CommError:
                continue
    assert comm.join_address == address
    return comm.size


def test_a_job_that_loses_ranks_at_random_keeps_its_address():
    outcomes = outcomes_of(shrink_and_grow_at_random, 5, 0, 7, timeout=30.0, patience_s=PATIENCE_S)
    assert [outcome.value for outcome in outcomes if outcome.error is None] == [2, 2], [o.story for o in outcomes]
