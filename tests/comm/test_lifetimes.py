"""Lifetimes: arrays, asynchronous calls, communicators, and children forked by a rank."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

from unisono.launch.spawn import outcomes_of

SOON_S = 10.0


def until(condition):
    """Wait until a condition holds; return whether it does."""
    deadline = time.monotonic() + SOON_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def forget_the_work(comm):
    """Start calls and keep neither the works nor the arrays."""
    if comm.rank == 0:
        sent, reduced = np.full(300_000, 7.0), np.ones(300_000)
        refs = weakref.ref(sent), weakref.ref(reduced)
        comm.send(sent, dst=1, async_op=True)
        comm.all_reduce(reduced, async_op=True)
        del sent, reduced
        assert all(ref() is not None for ref in refs), "the engine still needs them"
        comm.send(np.ones(1), dst=1, async_op=True)
        assert until(lambda: all(ref() is None for ref in refs)), "the arrays are still referenced"
        comm.barrier()
        return
    time.sleep(0.1)
    x, y = np.zeros(300_000), np.ones(300_000)
    comm.recv(x, src=0)
    comm.recv(np.zeros(1), src=0)
    comm.all_reduce(y)
    comm.barrier()
    assert (x == 7).all()
    assert (y == 2).all()


def test_arrays_stay_alive_until_their_call_has_finished(pools):
    pools[2].call(forget_the_work)


DROPPED = """
import gc, numpy as np, unisono
def work():
    comm = unisono.connect()
    for _ in range(2000):
        comm.all_reduce(np.ones(3), async_op=True)
work()
gc.collect()
"""

FORKED = """
import os, sys, time, numpy as np, unisono
def work():
    comm = unisono.connect()
    comm.all_reduce(np.ones(3), async_op=True).wait()
    time.sleep(0.05)  # the thread that did it waits for more now
    child = os.fork()
    if child == 0:
        try:
            comm.abort("a child has nothing to abort")
        except unisono.errors.UsageError:
            return  # and ends as any Python program does
    assert os.waitpid(child, 0)[1] == 0
    comm.all_reduce(np.ones(3))
work()
"""


@pytest.mark.parametrize("program", [DROPPED, FORKED], ids=["dropped", "forked"])
def test_a_program_that_closes_nothing_exits(program):
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def interrupt_a_queued_call(comm):
    if comm.rank == 1:
        comm.recv(np.ones(1), src=0)
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    comm.all_reduce(np.ones(4), async_op=True)
    comm.all_reduce(np.ones(4))  # behind a call that cannot continue


def test_ctrl_c_ends_a_queued_call():
    began = time.monotonic()
    errors = [outcome.error for outcome in outcomes_of(interrupt_a_queued_call, 2, timeout=60, patience_s=SOON_S)]
    assert isinstance(errors[0], KeyboardInterrupt)
    assert time.monotonic() - began < SOON_S
