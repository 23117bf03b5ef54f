"""Prove and play an algorithm of ten lines, and compare it with the built-in ring.

Run it:              python examples/zigzag.py
Prove it:            unisono verify examples/zigzag.py -n 1-32
Watch it:            unisono draw examples/zigzag.py -n 4
Measure it:          unisono bench -n 4 --algorithm examples/zigzag.py --against unisono:ring
"""

import numpy as np

import unisono
from unisono import algorithm, one, recv, recv_reduce, send
from unisono.collectives import all_reduce


@algorithm(all_reduce, chunks=one)
def zigzag(rank, size):
    """Hand the sum along a line of ranks to the last one, and hand the result back."""
    if rank > 0:
        yield recv_reduce(0, src=rank - 1)
    if rank < size - 1:
        yield send(0, dst=rank + 1)
        yield recv(0, src=rank + 1)
    if rank > 0:
        yield send(0, dst=rank - 1)


if __name__ == "__main__":
    inputs = [np.arange(4) + rank for rank in range(4)]
    print("played:", unisono.play(zigzag.schedule(4), inputs).outputs[0])
    for algorithm_ in (zigzag, unisono.find("ring")):
        proof = unisono.prove(algorithm_.schedule(8))
        print(f"{proof.algorithm}: {proof.rounds} rounds, {float(proof.sent):.2f} of the message sent per rank")
        print(f"  adds {proof.tree}")
        for remark in proof.remarks:
            print(f"  {remark}")
