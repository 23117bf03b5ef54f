"""A process forked by a rank is not a rank: its calls raise errors at once, and the rank is not affected."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import unisono
from unisono.errors import PeerLost, UsageError
from unisono.launch.spawn import outcomes_of

pytestmark = pytest.mark.slow

LIMIT_S = 20  # of a child that usually needs milliseconds


def in_child(action) -> str:
    """Return the outcome of an action in a forked child: its exception, or "returned"."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(LIMIT_S)
        try:
            action()
            said = "returned"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(theirs, said.encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as line:
        said = line.read()
    status = os.waitpid(child, 0)[1]
    return said if status == 0 else f"ended with status {status} after {said!r}"


def calls_of(comm):
    """Return every kind of call, with arrays of a kind that was used before, and with others."""
    x, y, whole = np.ones(4), np.ones(7), np.ones(4 * comm.size)
    other = (comm.rank + 1) % comm.size
    return {
        "all_reduce": lambda: comm.all_reduce(x),
        "all_reduce of a new shape": lambda: comm.all_reduce(y),
        "all_reduce in the background": lambda: comm.all_reduce(x, async_op=True),
        "broadcast": lambda: comm.broadcast(x),
        "all_gather": lambda: comm.all_gather(whole, x),
        "reduce_scatter": lambda: comm.reduce_scatter(x, whole),
        "all_to_all": lambda: comm.all_to_all(whole, whole.copy()),
        "barrier": lambda: comm.barrier(),
        "send": lambda: comm.send(x, other),
        "send in the background": lambda: comm.send(x, other, async_op=True),
        "recv": lambda: comm.recv(x, other),
        "recv from any": lambda: comm.recv(x),
        "split": lambda: comm.split(0),
        "duplicate": lambda: comm.duplicate(),
        "second duplicate": lambda: (comm.duplicate(), comm.duplicate()),
        "abort": lambda: comm.abort("no reason"),
        "limit_rate": lambda: comm.limit_rate(1e9),
        "trace": lambda: comm.trace("nowhere.json").__enter__(),
    }


def fork_for_every_call(comm):
    part = comm.split(0, key=-comm.rank)
    found = {}
    for name, communicator in (("whole", comm), ("part", part)):
        communicator.all_reduce(np.ones(4))
        communicator.all_reduce(np.ones(4), async_op=True).wait()
        for what, call in calls_of(communicator).items():
            found[f"{what} ({name})"] = in_child(call)
        found[f"close ({name})"] = in_child(communicator.close)
        found[f"with ({name})"] = in_child(lambda communicator=communicator: communicator.__exit__(None, None, None))
    x = np.ones(4)
    comm.all_reduce(x)
    part.all_reduce(x)
    return os.getpid(), found, x[0]


def test_every_call_of_a_forked_child_raises_and_the_ranks_continue():
    for rank, (process, found, total) in enumerate(unisono.spawn(fork_for_every_call, 2)):
        assert total == 4
        for what, said in found.items():
            if what.startswith(("close", "with")):
                assert said == "returned", what
                continue
            assert said.startswith("UsageError: process "), f"{what}: {said}"
            assert f"was forked from rank {rank}" in said, what
            assert f"process {process})" in said, what
            assert "'spawn' or 'forkserver'" in said, what
            assert "connect()" in said, what


def query_works_in_child(comm):
    over = comm.all_reduce(np.ones(4), async_op=True)
    over.wait()
    pending = comm.recv(np.ones(4), src=1 - comm.rank, async_op=True)
    asked = {
        "over": in_child(lambda: (over.wait(), over.done() or 1 / 0, over.exception())),
        "wait": in_child(lambda: pending.wait()),
        "wait for a second": in_child(lambda: pending.wait(timeout=1)),
        "done": in_child(pending.done),
        "exception": in_child(pending.exception),
        "repr": in_child(lambda: repr(pending)),
    }
    comm.barrier()  # the other rank has queried its work too
    comm.send(np.ones(4), 1 - comm.rank)
    pending.wait()
    return asked


def test_a_forked_child_may_query_only_works_that_had_finished():
    for asked in unisono.spawn(query_works_in_child, 2):
        assert asked["over"] == asked["repr"] == "returned"
        for what in ("wait", "wait for a second", "done", "exception"):
            assert asked[what].startswith("UsageError: process "), asked


def fork_while_calls_run(comm, rounds):
    """Fork while threads of the engine are running and may hold any lock."""
    x, said = np.ones(50_000), set()
    for _ in range(rounds):
        works = [comm.all_reduce(x, async_op=True) for _ in range(3)]
        works.append(comm.send(x, 1 - comm.rank, async_op=True, tag=1))
        works.append(comm.recv(np.empty_like(x), 1 - comm.rank, async_op=True, tag=1))

        def leave(works=works):
            for work in works:
                try:
                    work.wait()
                except UsageError:
                    work.exception  # noqa: B018
            del works
            gc.collect()
            comm.close()
            comm.barrier()

        said.add(in_child(leave).partition(" was forked")[0].partition(" process ")[0])
        for work in works:
            work.wait()
    return said


@pytest.mark.parametrize("rounds", [5, pytest.param(300, marks=pytest.mark.long)])
def test_a_fork_during_calls_hangs_neither_the_child_nor_the_ranks(rounds):
    for said in unisono.spawn(fork_while_calls_run, 2, rounds):
        assert said == {"UsageError:"}


def fork_helper(comm, how):
    for turn in range(3):
        comm.all_reduce(np.ones(4))
        if comm.rank == 1 and turn == 1 and os.fork() == 0:
            if how == "exits":
                sys.exit(7)
            if how == "raises":
                raise ZeroDivisionError("in the helper")
            if how == "calls":
                comm.barrier()
            return "the helper"
    if comm.rank == 1:
        code = os.waitstatus_to_exitcode(os.wait()[1])
    return comm.rank, code if comm.rank == 1 else None


@pytest.mark.parametrize(("how", "code"), [("exits", 7), ("raises", 1), ("calls", 1), ("returns", 0)])
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_helper_forked_by_a_rank_of_spawn_does_not_report_for_it(how, code, start):
    assert unisono.spawn(fork_helper, 2, how, start=start) == [(0, None), (1, code)]


def die_beside_helper(comm):
    if comm.rank == 1:
        if os.fork() == 0:
            time.sleep(3)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    comm.barrier()


def test_the_death_of_a_rank_of_spawn_is_noticed_while_its_helper_lives():
    began = time.monotonic()
    outcomes = outcomes_of(die_beside_helper, 2, patience_s=10)
    assert time.monotonic() - began < 2.5
    assert str(outcomes[1].error) == "rank 1 was killed by SIGKILL before it returned"
    assert isinstance(outcomes[0].error, PeerLost)
    time.sleep(max(0.0, began + 3.2 - time.monotonic()))  # the helper, too, has ended before the next test


ENDS_AS_USUAL = """
import os, sys, numpy as np, unisono
with unisono.connect() as comm:
    part = comm.split(0)
    comm.all_reduce(np.ones(3), async_op=True).wait()
    if os.fork() == 0:
        {how}
    assert os.wait()[1] == 0
    comm.barrier()
    part.barrier()
print("good")
"""


@pytest.mark.parametrize("how", ["sys.exit(0)", "del comm, part; sys.exit(0)", "import gc; gc.collect(); sys.exit()"])
def test_a_forked_child_may_exit_normally(how):
    words = [sys.executable, "-m", "unisono", "run", "-n", "2", "--no-prefix"]
    program = ENDS_AS_USUAL.format(how=how)
    done = subprocess.run([*words, sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["good", "good"], "")


CONNECTS_AGAIN = """
import os, numpy as np, unisono
comm = unisono.connect()
comm.barrier()
if os.fork() == 0:
    with unisono.connect() as own:
        x = np.ones(3)
        own.all_reduce(x)
        os._exit(0 if x[0] == 2 else 3)
assert os.wait()[1] == 0
comm.barrier()
"""


def test_forked_children_may_connect_to_each_other():
    words = [sys.executable, "-m", "unisono", "run", "-n", "2", "--no-prefix"]
    done = subprocess.run([*words, sys.executable, "-c", CONNECTS_AGAIN], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
