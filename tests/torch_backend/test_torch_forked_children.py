"""Calls in a process that a rank of torch.distributed forked raise immediately, and the rank continues."""

from __future__ import annotations

import gc
import os
import signal
from datetime import timedelta
from typing import Any

import pytest

from torch_ranks import run_ranks
from unisono.errors import CommError

torch = pytest.importorskip("torch")
dist = torch.distributed

LIMIT_S = 20


def in_child(action: Any) -> str:
    """Run an action in a forked child; return its exception as text, or "returned"."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(LIMIT_S)
        try:
            action()
            result = "returned"
        except BaseException as error:
            result = f"{type(error).__name__}: {error}"
        os.write(theirs, result.encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as line:
        result = line.read()
    status = os.waitpid(child, 0)[1]
    return result if status == 0 else f"ended with status {status} after {result!r}"


def calls() -> dict[str, Any]:
    x, parts, peer = torch.ones(2), [torch.zeros(2) for _ in range(2)], 1 - dist.get_rank()
    return {
        "all_reduce": lambda: dist.all_reduce(x),
        "all_reduce of a new shape": lambda: dist.all_reduce(torch.ones(7)),
        "async all_reduce": lambda: dist.all_reduce(x, async_op=True).wait(),
        "broadcast": lambda: dist.broadcast(x, 0),
        "all_gather": lambda: dist.all_gather(parts, x),
        "all_gather_object": lambda: dist.all_gather_object([None, None], "x"),
        "reduce_scatter": lambda: dist.reduce_scatter(x, parts),
        "all_to_all_single": lambda: dist.all_to_all_single(x, x.clone()),
        "send": lambda: dist.send(x, peer),
        "recv": lambda: dist.recv(x, peer),
        "isend": lambda: dist.isend(x, peer),
        "irecv": lambda: dist.irecv(x),
        "batch": lambda: dist.batch_isend_irecv([dist.P2POp(dist.isend, x, peer)]),
        "barrier": dist.barrier,
        "monitored_barrier": lambda: dist.group.WORLD.monitored_barrier(timedelta(seconds=LIMIT_S)),
        "new_group": dist.new_group,
        "new_subgroups": lambda: dist.new_subgroups(1),
        "split_group": lambda: dist.group.WORLD.split_group([0, 1]),
    }


def fork_for_every_call() -> Any:
    x = torch.ones(2)
    for warm in ("all_reduce", "broadcast", "all_gather", "async all_reduce"):
        calls()[warm]()
    found = {what: in_child(call) for what, call in calls().items()}
    ends = {
        "destroy": in_child(dist.destroy_process_group),
        "destroy twice": in_child(lambda: (dist.destroy_process_group(), gc.collect())),
        "abort": in_child(dist.group.WORLD.abort),
        "shutdown": in_child(dist.group.WORLD.shutdown),
    }
    dist.all_reduce(x.fill_(1))
    dist.barrier()
    return os.getpid(), found, ends, x[0].item()


def test_every_call_of_a_forked_child_raises_and_the_ranks_continue():
    for process, found, ends, total in run_ranks(fork_for_every_call, 2):
        assert total == 2
        assert set(ends.values()) == {"returned"}, ends
        for what, result in found.items():
            assert result.startswith("UsageError: process "), f"{what}: {result}"
            assert f"process {process})" in result, what


def fork_during_calls(repeats: int) -> Any:
    x, result = torch.ones(200_000), set()
    for _ in range(repeats):
        works = [dist.all_reduce(x, async_op=True) for _ in range(3)]
        strided = torch.ones(100, 100)[:, ::2]  # the result must be copied back after the call
        works.append(dist.all_reduce(strided, async_op=True))
        futures = [work.get_future() for work in works]

        def leave(works: Any = works, futures: Any = futures) -> None:
            for one in [*works, *futures]:
                try:
                    one.wait()
                except (RuntimeError, ValueError) as error:
                    if "was forked" not in str(error):
                        raise
            del works, futures
            gc.collect()
            dist.destroy_process_group()

        result.add(in_child(leave))
        for one in [*works, *futures]:
            one.wait()
    return result


@pytest.mark.parametrize("repeats", [5, pytest.param(100, marks=pytest.mark.long)])
def test_a_fork_during_calls_hangs_neither_the_child_nor_the_ranks(repeats):
    assert run_ranks(fork_during_calls, 2, repeats) == [{"returned"}, {"returned"}]


class Numbers(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 24

    def __getitem__(self, place: int) -> Any:
        return torch.full((4,), float(place))


def collect(worker: int) -> None:
    gc.collect()


def train_with_workers() -> Any:
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    loader = torch.utils.data.DataLoader(
        Numbers(), batch_size=3, num_workers=2, multiprocessing_context="fork", worker_init_fn=collect
    )
    total = torch.zeros(1)
    for _ in range(2):
        for batch in loader:
            model(batch).sum().backward()
            total += batch.sum()
    dist.all_reduce(total)
    return total.item(), [parameter.grad.tolist() for parameter in model.parameters()]


def test_data_loader_workers_do_not_affect_training():
    ours = run_ranks(train_with_workers, 2)
    assert ours == run_ranks(train_with_workers, 2, backend="gloo")
    assert ours[0][0] == 2 * 2 * 4 * sum(range(24))


def start_again_in_the_child(folder: str) -> str:
    dist.all_reduce(torch.ones(2))
    rank = dist.get_rank()

    def begin() -> None:
        dist.destroy_process_group()
        dist.init_process_group("unisono", init_method=f"file://{folder}/anew", rank=rank, world_size=2)
        x = torch.ones(3)
        dist.all_reduce(x)
        dist.new_group()
        if x[0].item() != 2:
            raise ValueError("wrong")

    result = in_child(begin)
    dist.barrier()
    return result


def test_a_forked_child_can_destroy_the_groups_and_create_new_ones(tmp_path):
    assert run_ranks(start_again_in_the_child, 2, str(tmp_path)) == ["returned", "returned"]


def lose_a_rank_of_a_new_group(rank_lost: int) -> Any:
    group = dist.new_group([3, 1])
    if dist.get_rank() not in (1, 3):
        return None
    dist.all_reduce(torch.ones(2), group=group)
    if dist.get_rank() == rank_lost:
        group.abort()
        return None
    try:
        dist.all_reduce(torch.ones(2), group=group)
    except CommError as error:
        return error.rank, str(error)
    return None


def test_errors_of_a_new_group_name_the_rank_of_the_job():
    _, (rank, text), _, _ = run_ranks(lose_a_rank_of_a_new_group, 4, 3)
    assert rank == 3
    assert "rank 3 of the job" in text
    assert "The group is {" in text
