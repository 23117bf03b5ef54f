"""Ranks that make different calls raise errors with the calls of both."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from fault_ranks import Rank, run

from unisono.errors import MismatchError

torch = pytest.importorskip("torch")
dist = torch.distributed

pytestmark = pytest.mark.usefixtures("fork_server")

# The calls of rank 0 and rank 1, each with its text in the message.
DIFFERENT = {
    "collective": (
        lambda **how: dist.all_reduce(torch.ones(16), **how), "all_reduce(16 float32",
        lambda **how: dist.broadcast(torch.ones(16), 0, **how), "broadcast(16 float32",
    ),
    "shape": (
        lambda **how: dist.all_reduce(torch.ones(4, 4), **how), "all_reduce(16 float32",
        lambda **how: dist.all_reduce(torch.ones(4, 5), **how), "all_reduce(20 float32",
    ),
    "dtype": (
        lambda **how: dist.all_reduce(torch.ones(16), **how), "all_reduce(16 float32",
        lambda **how: dist.all_reduce(torch.ones(16, dtype=torch.int64), **how), "all_reduce(16 int64",
    ),
    "op": (
        lambda **how: dist.all_reduce(torch.ones(16), **how), "op=sum",
        lambda **how: dist.all_reduce(torch.ones(16), dist.ReduceOp.MAX, **how), "op=max",
    ),
    "root": (
        lambda **how: dist.broadcast(torch.ones(16), 0, **how), "root=0",
        lambda **how: dist.broadcast(torch.ones(16), 1, **how), "root=1",
    ),
    "gathered shape": (
        lambda **how: dist.all_gather_into_tensor(torch.ones(8), torch.ones(4), **how), "all_gather(8 float32",
        lambda **how: dist.all_gather_into_tensor(torch.ones(6), torch.ones(3), **how), "all_gather(6 float32",
    ),
    "barrier": (
        lambda **how: dist.barrier(**how), "barrier(",
        lambda **how: dist.all_reduce(torch.ones(16), **how), "all_reduce(16 float32",
    ),
}  # fmt: skip


HOW = ["blocking", "async"]


def call_and_wait(call: Callable[..., dist.Work], how: str) -> None:
    if how == "blocking":
        call()
        return
    work = call(async_op=True)
    try:
        work.wait()
    finally:
        assert work.is_completed()
        assert not work.is_success()
        assert isinstance(work.exception(), MismatchError)


def call_differently(rank: Rank) -> dict[str, str]:
    """Return the error of each case; each case has its own group, because a mismatch breaks the group."""
    errors = {}
    for number, (what, how) in enumerate(itertools.product(DIFFERENT, HOW)):
        rank.join(store=f"store-{number}")
        with pytest.raises(MismatchError) as raised:
            call_and_wait(DIFFERENT[what][2 * rank.rank], how)
        errors[f"{what} {how}"] = str(raised.value)
        dist.destroy_process_group()
    return errors


@pytest.fixture(scope="module")
def errors(fork_server, tmp_path_factory):
    """The errors of both ranks in every case."""
    outcomes = run(tmp_path_factory.mktemp("differing"), call_differently)
    for outcome in outcomes:
        assert outcome.code == 0, outcome.output
    return [outcome.value for outcome in outcomes]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("what", DIFFERENT)
def test_a_mismatch_raises_with_the_calls_of_both_ranks(errors, what, how):
    _, first, _, second = DIFFERENT[what]
    for of_rank in errors:
        for text in ("rank 0", "rank 1", first, second):
            assert text in of_rank[f"{what} {how}"]


def wrap_different_models(rank: Rank) -> None:
    rank.join()
    torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4 + rank.rank, 4))


def test_ddp_rejects_models_of_different_shapes(tmp_path):
    # DDP compares the shapes of all ranks with those of rank 0, which continues and loses the others.
    first, second = run(tmp_path, wrap_different_models)
    second.check_raised("RuntimeError", "params[0]", "sizes")
    first.check_raised("PeerLost", "rank 1")


def reduce_gradients_of_different_types(rank: Rank) -> None:
    rank.join()
    dtype = [torch.float32, torch.float64][rank.rank]
    net = torch.nn.Linear(4, 4, dtype=dtype)  # DDP compares shapes, but not dtypes
    net = torch.nn.parallel.DistributedDataParallel(net, init_sync=False)
    net(torch.ones(4, dtype=dtype)).sum().backward()


def test_gradients_of_different_dtypes_raise_in_the_backward_pass_of_ddp(tmp_path):
    for outcome in run(tmp_path, reduce_gradients_of_different_types):
        outcome.check_raised("RuntimeError", "MismatchError", "float32", "float64")


def follow_with_another_call(rank: Rank) -> None:
    rank.join()
    works = [dist.all_reduce(torch.ones(8), async_op=True) for _ in range(3)]
    works.append(dist.all_reduce(torch.ones(8 + rank.rank), async_op=True))
    works.append(dist.all_reduce(torch.ones(8), async_op=True))
    for work in works[:3]:
        work.wait()
    works[4].wait()


def test_calls_before_a_mismatch_succeed_and_later_ones_raise_it(tmp_path):
    for outcome in run(tmp_path, follow_with_another_call):
        outcome.check_raised("MismatchError", "all_reduce(8 float32", "all_reduce(9 float32")


def call_with_debug_level(rank: Rank, what: str) -> float:
    dist.set_debug_level_from_env()  # torch reads the variable on import, before the fork
    assert dist.get_debug_level() == dist.DebugLevel.DETAIL
    rank.join()
    if what == "mismatch":
        dist.all_reduce(torch.ones(8 + rank.rank))
    total = torch.full((8,), float(rank.rank + 1))
    dist.all_reduce(total)
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1, bias=False))
    for _ in range(2):
        net(total * (rank.rank + 1)).sum().backward()
    dist.destroy_process_group()
    return float(net.module.weight.grad[0, 0])


def test_the_debug_level_detail_of_torch_works(tmp_path):
    for outcome in run(tmp_path, call_with_debug_level, 2, "training", TORCH_DISTRIBUTED_DEBUG="DETAIL"):
        assert outcome.code == 0, outcome.output
        assert outcome.value == 2 * (3 + 6) / 2  # twice the mean of the inputs


def test_a_mismatch_is_reported_under_the_debug_level_detail_of_torch(tmp_path):
    for outcome in run(tmp_path, call_with_debug_level, 2, "mismatch", TORCH_DISTRIBUTED_DEBUG="DETAIL"):
        outcome.check_raised("MismatchError", "all_reduce(8 float32", "all_reduce(9 float32")
