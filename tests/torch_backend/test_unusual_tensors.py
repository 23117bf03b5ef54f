"""Calls on unusual tensors give the results of plain tensors, or are rejected before anything is sent.

The same table of calls runs on Gloo with plain tensors, and on Unisono with every kind of tensor.
"""

from __future__ import annotations

import itertools
import random
import warnings

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
from unusual_calls import CASES, RankAndSize  # noqa: E402

import unusual_tensors as kinds  # noqa: E402
from torch_ranks import run_ranks  # noqa: E402
from unisono.errors import UsageError  # noqa: E402

pytestmark = pytest.mark.campaign

SHORT = ("float32", "complex64", "int64")
LONG = (
    "float64", "float16", "bfloat16", "complex128", "int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64",
    "bool", "float8_e4m3fn", "float8_e5m2", "complex32", "float8_e4m3fnuz",
)  # fmt: skip
ONLY_MOVED = ("bool", "complex32", "float8_e4m3fnuz")  # for bool, a sum is an "or"
IN_GLOO = ("float32", "float64", "float16", "bfloat16", "int8", "int32", "int64", "uint8", "complex64", "complex128")


def values(shape, rank, number, dtype):
    """Return small numbers, different on every rank and in every tensor, whose sums are exact in every dtype."""
    count = torch.arange(torch.Size(shape).numel())
    found = (1 + (count + rank + number) % 3).view(shape)
    return (found * (1 + 2j) if dtype.startswith("complex") else found).to(getattr(torch, dtype))


def rank_and_size():
    return RankAndSize(dist.get_rank(), dist.get_world_size())


def inputs(case, p, dtype):
    return [values(shape, p.rank, number, dtype) for number, shape in enumerate(case.given(p))]


def check_gloo(dtypes):
    """Compare the expected result of every call with that of Gloo on plain tensors; return the compared calls."""
    warnings.simplefilter("ignore")
    p, compared = rank_and_size(), []
    for dtype, case in itertools.product(dtypes, CASES):
        ranks = [inputs(case, RankAndSize(rank, p.size), dtype) for rank in range(p.size)]
        given = [tensor.clone() for tensor in ranks[p.rank]]
        got = [torch.zeros(shape, dtype=getattr(torch, dtype)) for shape in case.got(p)] if case.got else given
        try:
            case.run(p, given, got, False)
        except RuntimeError as error:
            if "Invalid scalar type" not in str(error):  # Gloo does not support the dtype, on any rank
                raise
            continue
        if case.name == "reduce" and p.rank != p.root:
            continue  # Gloo leaves partial sums there
        for tensor, wanted in zip(got, case.wanted(p, ranks), strict=True):
            assert torch.equal(tensor, wanted), (dtype, case.name, tensor, wanted)
        compared.append((case.name, dtype))
    return compared


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_expected_results_match_gloo(size):
    compared = run_ranks(check_gloo, size, IN_GLOO, backend="gloo")
    assert {name for name, _ in compared[-1]} == {case.name for case in CASES}
    assert len(compared[-1]) > 0.9 * len(IN_GLOO) * len(CASES)


def check_one(p, case, dtype, kind_in, kind_out, later):
    ranks = [inputs(case, RankAndSize(rank, p.size), dtype) for rank in range(p.size)]
    wanted = case.wanted(p, ranks)
    given = [kind_in(tensor) for tensor in ranks[p.rank]]
    got = []
    if case.got:
        got = [kind_out(torch.zeros(shape, dtype=getattr(torch, dtype))) for shape in case.got(p)]
    case.run(p, [made.tensor for made in given], [made.tensor for made in got], later)
    what = (p, case.name, dtype, kind_in.__name__, kind_out.__name__, later)
    for made, tensor in zip(got if case.got else given, wanted, strict=True):
        _same(made, (kind_out if case.got else kind_in)(tensor), what)
    if case.got:
        for made, tensor in zip(given, ranks[p.rank], strict=True):
            _same(made, kind_in(tensor), (*what, "an input has changed"))


def _same(found, wanted, what):
    """Compare all memory, including gaps between elements."""
    for left, right in zip(found, wanted, strict=True):
        assert left.dtype == right.dtype, what
        wide = torch.complex128 if left.dtype.is_complex else torch.float64
        assert torch.equal(left.detach().to(wide), right.detach().to(wide)), (*what, left, right)


def check_kinds(dtypes, seed, limit):
    """Make calls with tensors of every kind; return their number. ``limit``: how many to choose at random."""
    warnings.simplefilter("ignore")
    torch.use_deterministic_algorithms(False)
    p, made = rank_and_size(), 0
    table = [
        (case, dtype, kind, later)
        for case, dtype, later in itertools.product(CASES, dtypes, (False, True))
        if not (case.adds and dtype in ONLY_MOVED)
        for kind in kinds.kinds_for(getattr(torch, dtype))
    ]
    dice = random.Random(seed)  # the same on every rank
    dice.shuffle(table)
    for case, dtype, kind, later in table[:limit]:
        others = kinds.kinds_for(getattr(torch, dtype))
        partner = dice.choice(others)
        pairs = [(kind, partner)] if case.got else [(kind, kind)]
        mixed = others[(others.index(kind) + p.rank) % len(others)]  # a different kind on each rank
        for kind_in, kind_out in [*pairs, (mixed, kind)]:
            if _not_applicable(case, kind_in) or _not_applicable(case, kind_out):
                kind_in = kind_out = kinds.every_second
            check_one(p, case, dtype, kind_in, kind_out, later)
            made += 1
    return made


def _not_applicable(case, kind):
    if case.name.startswith("functional") and kind is kinds.subclass:
        return True  # torch cannot wrap its result
    # dist.* rejects conjugated views before a backend sees them, in most calls (view_as_real).
    return kind in (kinds.conjugate_bit, kinds.both_bits_with_gaps) and case.name not in VIEWS_ALLOWED


VIEWS_ALLOWED = (
    "reduce", "gather", "reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_tensor, managed",
    "group.allreduce", "group.broadcast", "group.allgather",
    "group.alltoall_base", "group.scatter", "group.send and recv",
)  # fmt: skip


@pytest.mark.parametrize(("size", "limit"), [(1, 300), (2, 400), (3, 300)])
def test_calls_on_unusual_tensors_give_the_results_of_plain_tensors(size, limit, record_property):
    made = run_ranks(check_kinds, size, SHORT, size, limit)
    record_property("calls", sum(made))
    assert made == [2 * limit] * size


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", SHORT + LONG)
def test_every_call_works_on_every_kind_of_tensor_and_every_dtype(size, dtype, record_property):
    made = run_ranks(check_kinds, size, (dtype,), size, None, limit_s=600)
    record_property("calls", sum(made))
    assert min(made) > 500


# ---- rejected tensors ----------------------------------------------------------------------------------------------

COUNT = 6


def _calls_with(tensor):
    """Return calls that use a tensor as input and as output, each with the tensor that it would write, if known."""
    p = rank_and_size()
    fine = [torch.full((COUNT,), 5.0) for _ in range(p.size)]
    whole = torch.full((p.size * COUNT,), 5.0)
    reads = {
        "all_gather": lambda: dist.all_gather(fine, tensor),
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(whole, tensor),
        "gather": lambda: dist.gather(tensor, fine if p.rank == 0 else None),
        "reduce_scatter": lambda: dist.reduce_scatter(fine[0], [tensor] * p.size),
        "all_to_all": lambda: dist.all_to_all(fine, [tensor] * p.size),
        "scatter": lambda: dist.scatter(fine[0], [tensor] * p.size if p.rank == 0 else None),
        "send": lambda: dist.send(tensor, (p.rank + 1) % p.size),
    }
    writes = {
        "all_reduce": lambda: dist.all_reduce(tensor),
        "all_reduce max": lambda: dist.all_reduce(tensor, op=dist.ReduceOp.MAX),
        "all_reduce avg": lambda: dist.all_reduce(tensor, op=dist.ReduceOp.AVG),
        "async all_reduce": lambda: dist.all_reduce(tensor, async_op=True).wait(),
        "all_reduce_coalesced": lambda: dist.all_reduce_coalesced([fine[0], tensor]),
        "reduce": lambda: dist.reduce(tensor, 0),
        "broadcast": lambda: dist.broadcast(tensor, 0),
        "all_gather out": lambda: dist.all_gather([*fine[1:], tensor], torch.ones(COUNT)),
        "reduce_scatter out": lambda: dist.reduce_scatter(tensor, fine),
        "reduce_scatter_tensor out": lambda: dist.reduce_scatter_tensor(tensor, whole),
        "all_to_all out": lambda: dist.all_to_all([*fine[1:], tensor], fine),
        "scatter out": lambda: dist.scatter(tensor, fine if p.rank == 0 else None),
        "recv": lambda: dist.recv(tensor, (p.rank + 1) % p.size),
    }
    return reads, writes, [*fine, whole]


def _rejected(call, untouched, what):
    with pytest.raises((UsageError, RuntimeError, TypeError, ValueError)) as caught:
        call()
    # torch itself rejects some tensors; an error that Unisono raises must be a UsageError.
    origin = str(caught.traceback[-1].path)
    assert caught.errisinstance(UsageError) or "unisono" not in origin, (what, origin, caught.value)
    for tensor in untouched:
        assert torch.equal(tensor, torch.full_like(tensor, 5.0)), what


def reject_all():
    warnings.simplefilter("ignore")
    p, count = rank_and_size(), 0
    dist.all_reduce(torch.ones(COUNT))  # caches the plan, so that all_reduce would take the fast path
    dist.all_reduce(torch.ones(COUNT), op=dist.ReduceOp.MAX)
    for make in kinds.REFUSED + kinds.ONLY_READ:
        tensor = make(COUNT)
        reads, writes, untouched = _calls_with(tensor)
        calls = writes if make in kinds.ONLY_READ else reads | writes
        for name, call in calls.items():
            # One rank has no peer to send to; with several ranks, only the root of a scatter checks its input.
            if name not in (("send", "recv") if p.size == 1 else ("scatter",)):
                _rejected(call, untouched, f"{make.__name__} in {name}")
                count += 1
        check = torch.full((3,), p.rank + 1.0)
        dist.all_reduce(check)  # nothing was sent: the next call matches that of the other ranks
        assert check.tolist() == [p.size * (p.size + 1) / 2] * 3
    return count


@pytest.mark.parametrize("size", [1, 2])
def test_tensors_without_their_own_memory_are_rejected_before_anything_is_sent(size):
    counts = run_ranks(reject_all, size)
    assert min(counts) > 200, counts


def read_expanded():
    p, compared = rank_and_size(), 0
    for make in kinds.ONLY_READ:
        tensor = make(COUNT)
        wanted = tensor.clone()
        out = [torch.zeros_like(wanted) for _ in range(p.size)]
        dist.all_gather(out, tensor)
        assert all(torch.equal(part, wanted) for part in out)
        whole = torch.zeros(p.size, *wanted.shape)
        dist.all_gather_into_tensor(whole, tensor)
        assert torch.equal(whole, torch.stack([wanted] * p.size))
        dist.all_to_all(out, [tensor] * p.size)
        assert all(torch.equal(part, wanted) for part in out)
        summed = torch.zeros_like(wanted)
        dist.reduce_scatter(summed, [tensor] * p.size)
        assert torch.equal(summed, wanted * p.size)
        compared += 4
    return compared


@pytest.mark.parametrize("size", [1, 2, 3])
def test_expanded_tensors_can_be_read(size):
    assert run_ranks(read_expanded, size) == [8] * size
