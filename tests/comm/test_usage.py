"""Invalid calls are rejected before any byte moves, with an explanation."""

from __future__ import annotations

import numpy as np
import pytest

import unisono
from unisono import algorithm, recv_reduce, send
from unisono.collectives import all_reduce
from unisono.errors import ScheduleError, UsageError

READ_ONLY = np.ones(4)
READ_ONLY.flags.writeable = False
BASE = np.ones(16)
F4 = np.ones(4, np.float32)

REFUSED = {
    "not contiguous": (lambda c: c.all_reduce(np.ones((4, 4))[:, ::2]), "not contiguous"),
    "read-only": (lambda c: c.all_reduce(READ_ONLY), "read-only"),
    "a list": (lambda c: c.all_reduce([1, 2]), "expected a numpy array, a torch tensor or a CUDA array"),
    "strings": (lambda c: c.all_reduce(np.array(["a"])), "dtype"),
    "foreign byte order": (lambda c: c.all_reduce(np.ones(4, ">f4")), "foreign order"),
    "dtype": (lambda c: c.all_gather(np.ones(8, "f4"), np.ones(4, "f8")), "float32 and the input is float64"),
    "out too short": (lambda c: c.all_gather(np.ones(7), np.ones(4)), "out has 7 elements; expected 8"),
    "does not divide": (lambda c: c.all_to_all(np.ones(7), np.ones(7)), "do not divide into 2 equal parts"),
    "overlap": (lambda c: c.reduce_scatter(BASE[:8], BASE), "overlap"),
    "root": (lambda c: c.broadcast(np.ones(4), root=2), "root=2; expected a rank from 0 to 1"),
    "root is not a number": (lambda c: c.broadcast(np.ones(4), root="0"), "expected a rank"),
    "op": (lambda c: c.all_reduce(np.ones(4), op="sub"), "there is no reduction 'sub'"),
    "avg of integers": (lambda c: c.all_reduce(np.ones(4, int), op="avg"), "would round"),
    "bits of floats": (lambda c: c.all_reduce(np.ones(4), op="bor"), "has no meaning"),
    "algorithm": (lambda c: c.all_reduce(np.ones(4), algorithm="rign"), "did you mean 'ring'"),
    "other collective": (
        lambda c: c.all_reduce(np.ones(4), algorithm=unisono.find("all_gather/ring")), "performs all_gather",
    ),
    "schedule of another size": (
        lambda c: c.all_reduce(np.ones(4), algorithm=unisono.find("ring").schedule(3)), "on 3 ranks",
    ),
    "codec": (
        lambda c: c.all_reduce(F4, codec="fp9"), "all_reduce: there is no codec 'fp9'; expected one of fp16, bf16",
    ),
    "codec of another kind": (lambda c: c.broadcast(F4, codec=8), "broadcast: there is no codec 8; expected one of"),
    "codec and dtype": (
        lambda c: c.all_gather(np.ones(8), np.ones(4), codec="int8"),
        "all_gather: codec=int8 with an array of float64; codecs are for float32. Convert the array",
    ),
    "top-k elsewhere": (
        lambda c: c.reduce_scatter(F4[:2], np.ones(4, "f4"), codec="topk:0.5"),
        "reduce_scatter: codec=topk:0.5 is for all_reduce only",
    ),
    "top-k of maxima": (lambda c: c.all_reduce(F4, codec="topk:0.5", op="max"), "found op='max'"),
    "top-k and algorithm": (
        lambda c: c.all_reduce(F4, codec="topk:0.5", algorithm="ring"), "leave the algorithm out",
    ),
    "rate": (lambda c: c.limit_rate(0), "limit_rate: 0; expected bytes per second, more than 0, or None"),
    "rate is not a number": (lambda c: c.limit_rate("1 GB/s"), "expected bytes per second"),
    "prediction": (
        lambda c: c.predict_sent_bytes("all_to_all", 7), "all_to_all: 7 elements do not divide into 2 equal parts",
    ),
    "timeout": (lambda c: c.all_reduce(np.ones(4), timeout=0), "expected seconds, more than 0"),
    "to itself": (lambda c: c.send(np.ones(4), dst=c.rank), "expected another rank"),
    "to no rank": (lambda c: c.send(np.ones(4), dst=2), "expected another rank"),
    "from itself": (lambda c: c.recv(np.ones(4), src=c.rank), "expected another rank from 0 to 1, or None for any"),
    "to any": (lambda c: c.send(np.ones(4), dst=None), "dst=None on rank"),
    "negative tag": (lambda c: c.send(np.ones(4), dst=1 - c.rank, tag=-1), "tag=-1; expected a number from 0 to"),
    "too large a tag": (lambda c: c.recv(np.ones(4), tag=2**32), "recv: tag=4294967296; expected a number"),
    "tag is not a number": (lambda c: c.recv(np.ones(4), tag="a"), "recv: tag='a'; expected a number"),
    "only in_sizes": (lambda c: c.all_to_all(np.ones(4), np.ones(4), in_sizes=[2, 2]), "give both"),
    "too few sizes": (lambda c: c.all_gather(np.ones(4), np.ones(2), out_sizes=[4]), "expected 2 lengths"),
    "negative sizes": (lambda c: c.all_gather(np.ones(4), np.ones(2), out_sizes=[5, -1]), "none negative"),
    "sizes and equal blocks": (
        lambda c: c.all_to_all(np.ones(4), np.ones(4), in_sizes=[2, 2], out_sizes=[2, 2], algorithm="bruck"),
        "blocks of equal length",
    ),
    "color": (lambda c: c.split("red"), "expected integers"),
}  # fmt: skip


def refuse(comm, what):
    call, words = REFUSED[what]
    with pytest.raises(UsageError) as caught:
        call(comm)
    x = np.ones(4)
    comm.all_reduce(x)  # nothing has moved: the communicator still works
    assert x.tolist() == [comm.size] * 4
    return str(caught.value), words


def refuse_what_another_collective_uses(comm):
    ring = unisono.find("all_gather/ring")
    comm.all_gather(np.ones(4 * comm.size), np.ones(4), algorithm=ring)
    with pytest.raises(UsageError, match="performs all_gather"):
        comm.all_reduce(np.ones(4), algorithm=ring)


def test_an_algorithm_that_another_collective_has_used_is_rejected(pools):
    pools[3].call(refuse_what_another_collective_uses)


@pytest.mark.parametrize("what", REFUSED)
def test_invalid_calls_are_rejected_before_a_byte_moves(pools, what):
    for text, words in pools[2].call(refuse, [what] * 2):
        assert words in text


def only_the_root(comm):
    """Arrays that only the root has must be None on other ranks and must be given on the root."""
    out = np.zeros(2 * comm.size)
    if comm.rank == 0:
        with pytest.raises(UsageError, match="out is missing"):
            comm.gather(None, np.ones(2))
        comm.gather(out, np.ones(2))
    else:
        with pytest.raises(UsageError, match="not the root; expected None"):
            comm.gather(out, np.ones(2))
        comm.gather(None, np.ones(2))


def test_arrays_of_the_root_are_none_on_other_ranks(pools):
    pools[3].call(only_the_root)


@algorithm(all_reduce)
def forgets_one_direction(rank, size):
    if rank == 0 and size > 1:
        yield recv_reduce(0, src=1)
    elif rank == 1:
        yield send(0, dst=0)


def use_unproved(comm):
    with pytest.raises(ScheduleError, match="does not hold the result"):
        comm.all_reduce(np.ones(4), algorithm=forgets_one_direction)
    comm.barrier()


def test_an_incorrect_algorithm_never_runs(pools):
    pools[2].call(use_unproved)


def use_closed(comm):
    group = comm.split(0)
    group.close()
    group.close()
    with pytest.raises(UsageError, match="is closed"):
        group.all_reduce(np.ones(4))
    assert group.closed
    with pytest.raises(UsageError, match="cannot be sent to another process"):
        comm.__reduce__()


def test_calls_of_a_closed_communicator_raise(pools):
    pools[2].call(use_closed)
