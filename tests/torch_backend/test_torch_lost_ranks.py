"""The death of a rank raises an error that names it on every other rank within seconds."""

from __future__ import annotations

import os
import signal
import time

import pytest
from fault_ranks import SOON_S, Rank, job

torch = pytest.importorskip("torch")
dist = torch.distributed

pytestmark = pytest.mark.usefixtures("fork_server")


def model(width: int = 64) -> torch.nn.Module:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(width, width) for _ in range(4)]
    return torch.nn.Sequential(*layers)


def train_with_ddp(rank: Rank) -> None:
    rank.join()
    # Small buckets: many all-reduces in every backward pass.
    net = torch.nn.parallel.DistributedDataParallel(model(), bucket_cap_mb=0.01)
    for step in range(10**9):
        loss = net(torch.ones(4, 64)).sum()
        if step == 3:
            rank.report("training")
        loss.backward()


def die_in_backward_of_ddp(rank: Rank) -> None:
    rank.join()
    net = torch.nn.parallel.DistributedDataParallel(model(), bucket_cap_mb=0.01)
    if rank.rank == rank.size - 1:

        def die(gradient: torch.Tensor) -> None:
            rank.report("dying")
            os.kill(os.getpid(), signal.SIGKILL)

        net.module[1].weight.register_hook(die)  # buckets of layers 3 and 2 have started, those of 1 and 0 have not
    net(torch.ones(4, 64)).sum().backward()


def train_with_fsdp(rank: Rank) -> None:
    rank.join()
    mesh = dist.device_mesh.init_device_mesh("cpu", (rank.size,))
    net = model()
    for layer in net:
        dist.fsdp.fully_shard(layer, mesh=mesh)
    dist.fsdp.fully_shard(net, mesh=mesh)
    for step in range(10**9):
        loss = net(torch.ones(4, 64)).sum()
        if step == 3:
            rank.report("training")
        loss.backward()


def die_before_an_all_gather_of_fsdp(rank: Rank) -> None:
    rank.join()
    mesh = dist.device_mesh.init_device_mesh("cpu", (rank.size,))
    net = model()
    for layer in net:
        dist.fsdp.fully_shard(layer, mesh=mesh)
    dist.fsdp.fully_shard(net, mesh=mesh)
    if rank.rank == rank.size - 1:

        def die(*_: object) -> None:
            rank.report("dying")
            os.kill(os.getpid(), signal.SIGKILL)

        net[1].register_forward_hook(die)  # the others gather the next layer's weights
    net(torch.ones(4, 64))


def save_checkpoints(rank: Rank) -> None:
    rank.join()
    net = model()
    for turn in range(10**9):
        if turn == 2:
            rank.report("training")
        dist.checkpoint.save({"net": net.state_dict()}, checkpoint_id=rank.folder / f"saved-{turn % 2}")


def die_in_a_checkpoint(rank: Rank) -> None:
    rank.join()
    if rank.rank == rank.size - 1:

        class Dying(dist.checkpoint.FileSystemWriter):
            def write_data(self, *_: object) -> None:
                rank.report("dying")
                os.kill(os.getpid(), signal.SIGKILL)

        dist.checkpoint.save({"net": model().state_dict()}, storage_writer=Dying(rank.folder / "saved"))
    dist.checkpoint.save({"net": model().state_dict()}, checkpoint_id=rank.folder / "saved")


def check_survivors(running, victim: int, died_at: float) -> None:
    assert running.outcome(victim).code == -signal.SIGKILL
    for rank in range(running.size):
        if rank != victim:
            found = running.outcome(rank)
            assert found.code == 1, f"{found.code}\n{found.output}"
            assert found.error, found.output
            assert f"rank {victim}" in found.text, found.text
            assert found.at - died_at < SOON_S


@pytest.mark.parametrize("size", [pytest.param(2, marks=pytest.mark.long), 3])
@pytest.mark.parametrize(
    "function",
    [die_in_backward_of_ddp, die_before_an_all_gather_of_fsdp, die_in_a_checkpoint],
    ids=lambda f: f.__name__,
)
def test_a_rank_that_dies_during_training_is_named_by_all_others(tmp_path, function, size):
    with job(tmp_path, function, size) as running:
        running.outcome(size - 1)
        check_survivors(running, size - 1, running.reported(size - 1)["dying"])


@pytest.mark.parametrize("function", [train_with_ddp, train_with_fsdp, save_checkpoints], ids=lambda f: f.__name__)
@pytest.mark.parametrize("victim", [0, 1])
def test_a_rank_that_is_killed_at_any_moment_is_named_by_the_other(tmp_path, function, victim):
    with job(tmp_path, function) as running:
        running.wait_for("training")
        died_at = running.kill(victim, signal.SIGKILL)
        check_survivors(running, victim, died_at)


def continue_without(rank: Rank) -> float:
    """Lose the last rank in a call, destroy the group, and create a new one without that rank."""
    rank.join()
    if rank.rank == rank.size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    pending = dist.all_reduce(torch.ones(8), async_op=True)
    pending.get_future().then(lambda done: done.value())
    with pytest.raises(ConnectionError, match=f"rank {rank.size - 1}"):
        dist.all_reduce(torch.ones(8))
    began = time.monotonic()
    dist.destroy_process_group()
    assert time.monotonic() - began < SOON_S
    rank.join(store="another-store", size=rank.size - 1)
    x = torch.ones(8)
    dist.all_reduce(x)
    dist.destroy_process_group()
    return float(x[0])


def test_after_the_loss_of_a_rank_the_others_can_create_a_new_group(tmp_path):
    with job(tmp_path, continue_without, 3) as running:
        assert [running.outcome(rank).value for rank in (0, 1)] == [2.0, 2.0], running.output(0)


def abort_or_wait(rank: Rank) -> None:
    rank.join()
    dist.barrier()
    if rank.rank == 0:
        dist.group.WORLD.abort()
    else:
        rank.report("waiting")
        dist.all_reduce(torch.ones(8))


@pytest.mark.parametrize("size", [2, 5])
def test_a_rank_that_aborts_the_group_is_named_by_every_waiting_rank(tmp_path, size):
    with job(tmp_path, abort_or_wait, size) as running:
        for rank in range(1, size):
            running.outcome(rank).check_raised("Aborted", "rank 0")
            assert running.outcome(rank).at - running.reported(rank)["waiting"] < SOON_S
        assert running.outcome(0).code == 0, running.output(0)
