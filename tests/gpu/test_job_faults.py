"""Faults in jobs on fake GPUs: the ranks that are not to blame are told soon, and their GPUs stay usable."""

from __future__ import annotations

import ctypes
import os
import random
import secrets
import signal
import threading
import time

import numpy as np
import pytest

from gpu.gpu_ranks import MODES, on_gpu, outcomes_on_gpus, run_on_gpus
from leaks import Leaks, nothing_is_left_behind  # noqa: F401 (for every test here)
from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.job_config import STAGING_BYTES
from unisono.bootstrap.membership import connect_link
from unisono.bootstrap.rendezvous_address import AbstractAddress
from unisono.comm.communicator import Communicator
from unisono.comm.machine import load_tuning
from unisono.errors import Aborted, CollectiveTimeout, CommError, MismatchError, PeerLost, UsageError

both_modes = pytest.mark.parametrize("mode", MODES)
TOLD_S = 2.0  # a lost rank is reported to all others within this time


def errors_on_gpus(function, size, *args, **options):
    return [outcome.error for outcome in outcomes_on_gpus(function, size, *args, **options)]


# ---- a rank is killed ---------------------------------------------------------------------------------------------


def connect_again(rank, size, name, secret):
    """Return a new communicator of the ranks that call this."""
    identity = RankIdentity(rank, size, rank, size, "alone", "")
    return Communicator(connect_link(30.0, 30.0, STAGING_BYTES, load_tuning, identity, AbstractAddress(name, secret)))


def first_word(address):
    return ctypes.c_uint32.from_address(address).value


def watch_abort_word(state, began, times):
    """Note when another rank writes the abort word of a killed rank, for which its kernels look.

    On a real GPU they would go on otherwise, and read memory that is about to be freed.
    """
    while first_word(state) == 0 and time.monotonic() < began + 5:
        time.sleep(0.001)
    times.append(time.monotonic() - began)


def lose_a_rank(comm, driver, victim, waiting, address):
    """Return the error that a survivor gets, the time it took, and the result of a call in a new communicator."""
    x = on_gpu(np.ones(1000, np.float32))
    comm.all_reduce(x)
    comm.synchronize()
    processes = np.zeros(comm.size, np.int64)
    comm.all_gather(processes, np.array([os.getpid()]))
    states = driver.imports_from(int(processes[victim])) if comm.rank != victim else []
    state = next((address for address in states if first_word(address) == 0), None)
    comm.barrier()
    began, times = time.monotonic(), []
    watcher = threading.Thread(target=watch_abort_word, args=(state, began, times))
    if comm.rank != victim:
        watcher.start()
    if comm.rank == victim:
        if waiting == "in the call":  # the kernel of the victim waits, too
            comm.all_reduce(x) if comm.size > 2 else None
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)
    if waiting == "in the call" and comm.rank == (victim + 1) % comm.size:
        time.sleep(0.4)  # until the victim is dead
    error = None
    try:
        comm.all_reduce(x)
        comm.synchronize()
    except CommError as found:
        error = found
    took_s = time.monotonic() - began
    watcher.join()  # the word is in memory that the communicator closes
    survivors = [rank for rank in range(comm.size) if rank != victim]
    with connect_again(survivors.index(comm.rank), len(survivors), *address) as new:
        y = on_gpu(np.full(500, comm.rank, np.float32))
        new.all_reduce(y)
        new.synchronize()
        assert y.numpy().tolist() == [sum(survivors)] * 500
    return type(error).__name__, getattr(error, "rank", None), str(error), took_s, times


@pytest.mark.parametrize("waiting", ["before the call", "in the call"])
@pytest.mark.parametrize("size", [2, 3, 5])
@both_modes
def test_survivors_of_a_killed_rank_are_told_and_can_use_their_gpus(mode, size, waiting):
    victim = size - 2
    address = (secrets.token_hex(16), secrets.token_hex(32))
    outcomes = outcomes_on_gpus(lose_a_rank, size, victim, waiting, address, settings=MODES[mode])
    for rank, outcome in enumerate(outcomes):
        if rank == victim:
            continue
        assert outcome.error is None, f"rank {rank}: {outcome.error!r}\n{outcome.story}"
        kind, lost, text, took_s, (aborted_s,) = outcome.value
        assert (kind, lost) == ("PeerLost", victim), text
        assert f"rank {victim}" in text
        assert took_s < TOLD_S, f"rank {rank} was told after {took_s:.1f} s"
        assert aborted_s < took_s + 0.5, "the kernels of the killed rank were not ended"


def make_calls_until_killed(comm, driver, seed):
    """Make random calls; one rank is killed at a random moment."""
    dice = random.Random(seed)
    victim, delay_s = dice.randrange(comm.size), dice.random() * 0.1
    arrays = [on_gpu(np.ones(length, np.float32)) for length in (10, 3000)]
    if dice.random() < 0.5:  # else even the connection may be interrupted
        comm.all_reduce(arrays[0])
    if comm.rank == victim:
        threading.Timer(delay_s, os.kill, (os.getpid(), signal.SIGKILL)).start()
    while True:
        x = arrays[dice.randrange(2)]
        kind = dice.randrange(4)
        if kind == 0:
            comm.broadcast(x, root=dice.randrange(comm.size))
        elif kind == 1:
            comm.all_reduce(x, op="max", async_op=True).wait()
        elif kind == 2:
            comm.all_reduce(x)
            comm.synchronize()
        else:
            new = on_gpu(np.ones(dice.choice([100, 1000]), np.float32))
            comm.all_reduce(new, op="max")


def kill(seed):
    dice = random.Random(seed)
    size = dice.choice([2, 3, 4])
    mode = dice.choice(list(MODES))
    victim = random.Random(seed + 1).randrange(size)
    began = time.monotonic()
    outcomes = outcomes_on_gpus(make_calls_until_killed, size, seed + 1, settings=MODES[mode], patience_s=15)
    for rank, outcome in enumerate(outcomes):
        if rank != victim:
            error = outcome.error
            assert type(error) is PeerLost, f"seed {seed}, {mode}, rank {rank}: {error!r}\n{outcome.story}"
            assert outcome.story != "(stopped)", f"seed {seed}, {mode}: rank {rank} was not told"
            assert error.rank == victim, f"seed {seed}, {mode}: {error}"
    return time.monotonic() - began


@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.long)])
def test_kills_leave_no_process_no_memory_and_no_rank_without_an_answer(kills):
    leaks = Leaks()
    for number in range(kills):
        kill(1000 * kills + 10 * number)
    leaks.check()


def raise_on_one_rank(comm, driver):
    x = on_gpu(np.ones(100, np.float32))
    comm.all_reduce(x)
    if comm.rank == 1:
        raise ZeroDivisionError("a mistake")
    comm.all_reduce(x)
    comm.synchronize()


@both_modes
def test_an_exception_on_a_rank_ends_the_calls_of_the_others(mode):
    errors = errors_on_gpus(raise_on_one_rank, 3, settings=MODES[mode])
    assert isinstance(errors[1], ZeroDivisionError)
    assert all(isinstance(errors[rank], CommError) for rank in (0, 2)), errors
    assert all("rank 1" in str(errors[rank]) for rank in (0, 2)), errors


# ---- timeouts -----------------------------------------------------------------------------------------------------


def come_too_late(comm, driver):
    x = on_gpu(np.ones(1000, np.float32))
    comm.all_reduce(x)
    comm.synchronize()
    if comm.rank == 2:
        time.sleep(3)
        return None
    began = time.monotonic()
    try:
        comm.all_reduce(x, timeout=0.5)
        comm.synchronize()
    except CollectiveTimeout as error:
        return str(error), time.monotonic() - began
    return "no error", 0.0


@both_modes
def test_a_rank_that_does_not_come_is_a_timeout(mode):
    values = run_on_gpus(come_too_late, 3, settings=MODES[mode])
    for text, took_s in values[:2]:
        assert "rank 2" in text, text
        assert 0.4 < took_s < 2.5


STUCK = []  # arrays of streams that never end, so that they cannot be freed


def never_start(comm, driver):
    x = on_gpu(np.ones(1000, np.float32))
    STUCK.append(x)
    comm.all_reduce(x)
    comm.synchronize()
    if comm.rank == 1:
        driver.fake_set(b"launch=never")
    try:
        comm.all_reduce(x, timeout=0.5)
        comm.synchronize()
    except CollectiveTimeout as error:
        return str(error)
    return "no error"


@both_modes
def test_a_kernel_that_never_starts_is_a_timeout(mode):
    values = run_on_gpus(never_start, 3, settings=MODES[mode])
    assert "rank 1" in values[0], values
    assert "no error" not in values


# ---- different calls ----------------------------------------------------------------------------------------------


def make_different_calls(comm, driver, calls):
    x = on_gpu(np.ones(16, np.float32))
    comm.all_reduce(x)
    calls[comm.rank](comm, x)
    comm.synchronize()  # a rank that has exchanged something with equal calls only may get its result
    comm.barrier()


def exchange(comm, length):
    sizes = [length] * comm.size
    x = np.ones(sum(sizes), np.float32)
    comm.all_to_all(on_gpu(x), on_gpu(x), in_sizes=sizes, out_sizes=sizes)


MISMATCHES = {
    "collective": (lambda c, x: c.all_reduce(x), lambda c, x: c.broadcast(x)),
    "length": (lambda c, x: c.all_reduce(x), lambda c, x: c.all_reduce(x[:8])),
    "op": (lambda c, x: c.all_reduce(x), lambda c, x: c.all_reduce(x, op="max")),
    "root": (lambda c, x: c.broadcast(x, root=0), lambda c, x: c.broadcast(x, root=1)),
    "algorithm": (lambda c, x: c.all_reduce(x, algorithm="ring"), lambda c, x: c.all_reduce(x, algorithm="direct")),
    "lengths of an exchange": (lambda c, x: exchange(c, 2), lambda c, x: exchange(c, 3)),
    "device": (lambda c, x: c.all_reduce(x), lambda c, x: c.all_reduce(np.ones(16, np.float32))),
    "barrier": (lambda c, x: c.all_reduce(x), lambda c, x: c.barrier()),
}


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("difference", MISMATCHES)
@both_modes
def test_ranks_that_make_different_calls_are_told(mode, difference, size):
    most, last = MISMATCHES[difference]
    calls = [most] * (size - 1) + [last]
    errors = errors_on_gpus(make_different_calls, size, calls, settings=MODES[mode], timeout=20.0)
    assert all(isinstance(error, MismatchError) for error in errors), errors
    assert f"rank {size - 1}" in str(errors[0]), errors


def differ_behind_equal_calls(comm, driver):
    x = on_gpu(np.ones(16, np.float32))
    comm.all_reduce(x)
    if comm.rank == comm.size - 1:
        time.sleep(0.5)  # the others see that equal calls and the one that differs are not over
    for _ in range(3):
        comm.all_reduce(x)
    comm.broadcast(x, root=comm.rank // 2)
    comm.synchronize()
    comm.barrier()


@both_modes
def test_a_different_call_behind_equal_calls_is_told_long_before_the_timeout(mode):
    errors = errors_on_gpus(differ_behind_equal_calls, 3, settings=MODES[mode], timeout=60.0)
    assert all(isinstance(error, MismatchError) for error in errors), errors
    assert "rank 2" in str(errors[0]), errors


def send_what_is_not_received(comm, driver, difference):
    x = on_gpu(np.ones(16, np.float32))
    comm.all_reduce(x)
    if comm.rank == 0:
        comm.send(x, 1, tag=3)
    elif difference == "tag":
        comm.recv(x, 0, tag=4)
    else:
        comm.recv(x[:8], 0, tag=3)
    comm.synchronize()
    comm.barrier()


@pytest.mark.parametrize("difference", ["tag", "length"])
@both_modes
def test_messages_that_do_not_match_are_told(mode, difference):
    errors = errors_on_gpus(send_what_is_not_received, 2, difference, settings=MODES[mode], timeout=20.0)
    assert all(isinstance(error, MismatchError) for error in errors), errors


def use_wrongly(comm, driver):
    x = on_gpu(np.ones(16, np.float32))
    with pytest.raises(UsageError, match="same device"):
        comm.all_gather(np.ones(16 * comm.size, np.float32), x)
    with pytest.raises(UsageError, match="src=None"):
        comm.recv(x, None)
    comm.all_reduce(x)
    assert x.numpy().tolist() == [comm.size] * 16


@both_modes
def test_wrong_use_is_refused_before_anything_happens(mode):
    run_on_gpus(use_wrongly, 2, settings=MODES[mode])


# ---- interrupts, forks and driver errors --------------------------------------------------------------------------


def interrupt_or_wait(comm, driver):
    x = on_gpu(np.ones(4, np.float32))
    comm.all_reduce(x)
    if comm.rank == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        comm.recv(x, src=1)
        comm.synchronize()
    comm.all_reduce(x)
    comm.synchronize()


@both_modes
def test_ctrl_c_ends_a_call_and_tells_the_others(mode):
    errors = errors_on_gpus(interrupt_or_wait, 2, settings=MODES[mode])
    assert isinstance(errors[0], KeyboardInterrupt)
    assert isinstance(errors[1], Aborted), errors


def fork_between_calls(comm, driver):
    x = on_gpu(np.ones(100, np.float32))
    comm.all_reduce(x)
    comm.synchronize()
    child = os.fork()
    if child == 0:
        try:
            comm.all_reduce(x)
        except UsageError:
            os._exit(7)
        os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    comm.all_reduce(x)
    assert x.numpy().tolist() == [comm.size**2] * 100
    return code


@both_modes
def test_a_forked_child_is_refused_and_does_not_disturb_its_parent(mode):
    assert run_on_gpus(fork_between_calls, 2, settings=MODES[mode]) == [7, 7]


def fork_and_exit(comm, driver):
    x = on_gpu(np.ones(100, np.float32))
    comm.all_reduce(x)
    child = os.fork()
    if child == 0:
        del x
        return None
    os.waitpid(child, 0)
    comm.all_reduce(x)
    return x.numpy()[0]


@both_modes
def test_a_forked_child_may_exit_normally(mode):
    assert run_on_gpus(fork_and_exit, 2, settings=MODES[mode]) == [4, 4]


def connect_in_vain(comm, driver):
    array, x = on_gpu(np.ones(4, np.float32)), np.ones(4)
    with pytest.raises(CommError, match="rank 1 cannot use its GPU"):
        comm.all_reduce(array)
    comm.all_reduce(x)  # the CPU still works
    return x[0], driver.live()["allocations"] - 1  # what is left besides the array


@pytest.mark.parametrize("fault", ["open=refuse", "export=refuse"])
@both_modes
def test_all_ranks_are_told_when_one_cannot_connect_its_gpu(mode, fault):
    settings = [MODES[mode], MODES[mode] + ";" + fault]
    assert run_on_gpus(connect_in_vain, 2, settings=settings) == [(2, 0), (2, 0)]
