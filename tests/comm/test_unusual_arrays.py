"""Calls of a communicator on unusual arrays give the right result, or raise UsageError before anything moves.

Every call is made twice: the second time the engine repeats it without Python where it can (bindings/fast_path.cpp).
"""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")  # imported here, so that the forked ranks need not import it
import unusual_tensors as tensors  # noqa: E402
from unisono.algorithms import BUILT_IN  # noqa: E402
from unisono.errors import UsageError  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.campaign]

COUNT = 6
DTYPES = ("float32", "float64", "int32", "int64", "complex64", "float16", "uint8", "uint64", "bool", "bfloat16")
IN_PLACE = ("all_reduce", "reduce", "broadcast")
SPLIT = ("reduce_scatter", "all_to_all")
CALLS = (*IN_PLACE, *SPLIT, "all_gather", "gather", "scatter", "send")


def plain(values):
    return values.copy()


def behind_others(values):
    base = np.full(values.size + 5, 77, values.dtype)
    base[3 : 3 + values.size] = values.reshape(-1)
    return base[3 : 3 + values.size].reshape(values.shape)


def unaligned(values):
    memory = np.zeros(values.nbytes + 1, np.uint8)
    made = memory[1:].view(values.dtype)
    made[:] = values.reshape(-1)
    return made


def in_three_dimensions(values):
    return values.reshape(1, -1, 1).copy()


def matrix(values):
    return np.asmatrix(values.copy())


def subclass(values):
    return values.copy().view(type("Mine", (np.ndarray,), {}))


def of_a_bytearray(values):
    return np.frombuffer(bytearray(values.tobytes()), values.dtype)


def torch_tensor(values):
    if values.dtype.name == "bfloat16":
        return torch.from_numpy(values.astype(np.float32)).bfloat16()
    return torch.from_numpy(values.copy())


def torch_parameter(values):
    made = torch_tensor(values)
    return torch.nn.Parameter(made, requires_grad=made.is_floating_point() or made.is_complex())


def torch_shared(values):
    return torch_tensor(values).share_memory_()


def torch_in_inference_mode(values):
    with torch.inference_mode():
        return torch_tensor(values).clone()


KINDS = (
    plain, behind_others, unaligned, in_three_dimensions, matrix, subclass, of_a_bytearray, torch_tensor,
    torch_parameter, torch_shared, torch_in_inference_mode,
)  # fmt: skip


# Only as inputs.
def read_only(values):
    made = values.copy()
    made.flags.writeable = False
    return made


def negative_bit(values):
    return torch._neg_view(-torch_tensor(values)) if values.dtype.kind in "ifc" else torch_tensor(values)


def conjugate_bit(values):
    return torch_tensor(values.conj()).conj() if values.dtype.kind == "c" else negative_bit(values)


INPUTS = (*KINDS, read_only, negative_bit, conjugate_bit)


def values_of(rank, count, dtype):
    if dtype == "bfloat16":
        from ml_dtypes import bfloat16 as dtype
    found = 1 + (np.arange(count) + rank) % 3
    return (found * (1 + 2j) if str(dtype).startswith("complex") else found).astype(dtype)


def as_numpy(array):
    if isinstance(array, np.ndarray):
        return np.asarray(array).reshape(-1)
    array = array.detach().resolve_conj().resolve_neg()
    return (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy().reshape(-1)


def wanted_of(call, rank, size, root, dtype):
    """Return the result of a rank, computed in one process."""
    count = COUNT * size if call in (*SPLIT, "scatter") else COUNT
    ranks = [values_of(r, count, dtype) for r in range(size)]
    total = ranks[0].copy()
    for other in ranks[1:]:
        total = (total | other) if dtype == "bool" else (total + other).astype(total.dtype)
    part = slice(rank * COUNT, (rank + 1) * COUNT)
    return {
        "all_reduce": lambda: total,
        "reduce": lambda: total if rank == root else ranks[rank],
        "broadcast": lambda: ranks[root],
        "reduce_scatter": lambda: total[part],
        "all_to_all": lambda: np.concatenate([r[part] for r in ranks]),
        "all_gather": lambda: np.concatenate(ranks),
        "gather": lambda: np.concatenate(ranks) if rank == root else None,
        "scatter": lambda: ranks[root][part],
        "send": lambda: ranks[(rank - 1) % size],
    }[call]()


def make_call(comm, call, given, out, root, algorithm, later):
    options = {"async_op": later} | ({"algorithm": algorithm} if algorithm else {})
    options |= {"root": root} if call in ("reduce", "broadcast", "gather", "scatter") else {}
    if call == "send":
        if comm.size == 1:
            return
        work = comm.send(given, (comm.rank + 1) % comm.size, async_op=True)
        comm.recv(out, (comm.rank - 1) % comm.size)
        work.wait()
        return
    arrays = (given,) if call in IN_PLACE else (out, given)
    if call == "gather" and comm.rank != root:
        arrays = (None, given)
    if call == "scatter" and comm.rank != root:
        arrays = (out, None)
    work = getattr(comm, call)(*arrays, **options)
    if later:
        work.wait()


def check_one(comm, call, dtype, kind_in, kind_out, algorithm, later):
    rank, size, root = comm.rank, comm.size, comm.size - 1
    wanted = wanted_of(call, rank, size, root, dtype)
    before = values_of(rank, COUNT * size if call in (*SPLIT, "scatter") else COUNT, dtype)
    for _ in range(2):  # the engine repeats the second call
        given = kind_in(before)
        out = None if wanted is None else kind_out(np.zeros_like(wanted))
        make_call(comm, call, given, out, root, algorithm, later)
        if call == "send" and size == 1:
            continue
        what = (rank, call, dtype, kind_in.__name__, kind_out.__name__, algorithm, later)
        if wanted is not None:
            found = as_numpy(given if call in IN_PLACE else out)
            assert np.array_equal(found, wanted.astype(found.dtype)), (what, found, wanted)
        if call not in IN_PLACE:
            found = as_numpy(given)
            assert np.array_equal(found, before.astype(found.dtype)), (what, "an input has changed")


def check_all(comm, seed, limit):
    names = {
        call: [one.name for one in BUILT_IN if one.collective.name == call and one.can_serve(comm.size)]
        for call in CALLS
    }
    table = [
        (call, dtype, kind, algorithm, later)
        for call, dtype, later in itertools.product(CALLS, DTYPES, (False, True))
        for algorithm in (None, *names[call])
        for kind in (KINDS if call in IN_PLACE else INPUTS)
    ]
    dice = random.Random(seed)  # the same kind on every rank
    dice.shuffle(table)
    made = 0
    for call, dtype, kind, algorithm, later in table[:limit]:
        others = KINDS if call in IN_PLACE else INPUTS
        mixed = others[(others.index(kind) + comm.rank) % len(others)]  # a different kind on each rank
        check_one(comm, call, dtype, mixed, dice.choice(KINDS), algorithm, later)
        made += 2
    return made


@pytest.mark.parametrize("size", [1, 2, 3])
def test_calls_on_unusual_arrays_agree_with_numpy(pools, size, record_property):
    made = pools[size].call(check_all, [size] * size, [600] * size)
    record_property("calls", sum(made))
    assert made == [1200] * size


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_every_call_supports_every_kind_of_array(pools, size, record_property):
    made = pools[size].call(check_all, [size] * size, [None] * size)
    record_property("calls", sum(made))
    assert min(made) > 5000


# ---- what is rejected ----------------------------------------------------------------------------------------------


def rejected_arrays():
    values = np.ones(COUNT)
    masked = np.ma.masked_array(values, mask=[True] + [False] * (COUNT - 1))
    record = np.zeros(COUNT, [("a", "f4"), ("b", "f4")])
    both = {
        "every second": np.ones(2 * COUNT)[::2], "backwards": values[::-1], "foreign order": np.ones(COUNT, ">f8"),
        "masked": masked, "records": record, "record array": record.view(np.recarray),
        "text": np.array(["a"] * COUNT),
        "objects": np.array([1.0] * COUNT, object), "times": np.zeros(COUNT, "datetime64[s]"), "list": [1.0] * COUNT,
        "number": 1.0, "numpy number": np.float64(1), "bytes": bytearray(8 * COUNT), "nothing": None,
        "long double": np.ones(COUNT, np.longdouble), "strided tensor": torch.ones(2 * COUNT)[::2],
        "sparse": torch.ones(COUNT).to_sparse(), "complex half": torch.ones(COUNT, dtype=torch.complex32),
    }  # fmt: skip
    both |= {make.__name__: make(COUNT) for make in tensors.REFUSED + tensors.ONLY_READ}
    broadcast = np.broadcast_to(np.ones(1), (COUNT,))
    outputs = {
        "read-only": read_only(values), "read-only view": read_only(values).view(), "broadcast": broadcast,
        "of bytes": np.frombuffer(bytes(8 * COUNT)), "negative bit": torch._neg_view(torch.ones(COUNT)),
        "conjugate bit": torch.ones(COUNT, dtype=torch.complex64).conj(),
    }  # fmt: skip
    return both, outputs


def _is_rejected(make):
    try:
        make()
    except UsageError:
        return True
    return False


def refuse_all(comm):
    both, outputs = rejected_arrays()
    count = 0
    for _ in range(2):
        comm.all_reduce(np.ones(COUNT))  # so that the engine has a plan for calls of this length
        comm.all_gather(np.ones(COUNT * comm.size), np.ones(COUNT))
        for name, array in (both | outputs).items():
            writes = {
                "all_reduce": lambda array=array: comm.all_reduce(array),
                "async": lambda array=array: comm.all_reduce(array, async_op=True),
                "broadcast": lambda array=array: comm.broadcast(array),
                "all_gather": lambda array=array: comm.all_gather(array, np.ones(1)),
                "topk": lambda array=array: comm.all_reduce(array, codec="topk:0.5"),
            }
            out = np.full(COUNT * comm.size, 5.0)
            reads = {
                "all_gather input": lambda array=array, out=out: comm.all_gather(out, array),
                "send": lambda array=array: (
                    comm.send(array, (comm.rank + 1) % comm.size) if comm.size > 1 else fail()
                ),
            }
            for call, make in (writes if name in outputs else writes | reads).items():
                assert _is_rejected(make), f"{name} in {call}"
                assert np.array_equal(out, np.full(COUNT * comm.size, 5.0))
                count += 1
        check = np.ones(3)
        comm.all_reduce(check)  # nothing has moved: the next call matches that of the other ranks
        assert check.tolist() == [comm.size] * 3
    return count


def fail():
    raise UsageError("there is no rank to send to")


@pytest.mark.parametrize("size", [1, 2])
def test_arrays_that_cannot_be_used_are_rejected_before_anything_moves(pools, size):
    assert min(pools[size].call(refuse_all)) > 300


def uses_empty_arrays(comm):
    base = np.arange(8.0)
    mine = [2, 0] if comm.rank == 0 else [0, 0]  # rank 0 keeps two elements; rank 1 sends and receives none
    out = np.zeros(2) if comm.rank == 0 else base[3:3]
    comm.all_to_all(out, base[:2] if comm.rank == 0 else base[3:3], in_sizes=mine, out_sizes=mine)
    out = (
        base[1:1] if comm.rank == 0 else np.zeros(2)
    )  # the empty part that rank 0 receives is inside the part that it sends
    sizes = ([0, 2], [0, 0]) if comm.rank == 0 else ([0, 0], [2, 0])
    comm.all_to_all(out, base[:2] if comm.rank == 0 else base[3:3], in_sizes=sizes[0], out_sizes=sizes[1])
    return out.tolist()


def test_an_empty_array_overlaps_nothing(pools):
    assert pools[2].call(uses_empty_arrays) == [[], [0.0, 1.0]]
