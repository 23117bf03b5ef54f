"""A program that continues when ranks are lost, and admits ranks that join: run it with `unisono run --elastic 1:4`.

Rank 2 of the job fails once. The others shrink and repeat the call; the launcher starts rank 2 again, and it joins.
"""

import os
import time

import numpy as np

import unisono

STEPS = 200
comm = unisono.connect()
has_joined = os.environ.get("UNISONO_JOIN") == "1"
state = np.zeros(2)  # the number of steps, and the sum of all results


def admit(comm):
    """Admit ranks that wait, and give them the state."""
    comm = comm.grow()
    comm.broadcast(state)
    return comm


if has_joined:
    comm.broadcast(state)
while state[0] < STEPS:
    try:
        if state[0] == 20 and comm.job_ranks[comm.rank] == 2 and not has_joined:
            os._exit(1)  # a fault
        x = np.array([1.0])
        comm.all_reduce(x)
        state += 1, x[0]
        time.sleep(0.02)
        if state[0] % 10 == 0:
            comm = admit(comm)
    except unisono.CommError as error:
        print(f"step {int(state[0])}: {type(error).__name__}", flush=True)
        comm = comm.shrink(timeout=10.0)
        comm.broadcast(state)  # a rank may have been a step ahead
print(f"ranks {comm.job_ranks}: {int(state[0])} steps", flush=True)
comm.close()
