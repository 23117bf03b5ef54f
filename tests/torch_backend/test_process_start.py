"""Ranks can be started without torchrun, and can start child processes."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402
from torch.nn.functional import mse_loss  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402
from training import batch, parameters_of, small_model  # noqa: E402

from torch_ranks import run_ranks, same_as_gloo  # noqa: E402


def join_and_write(rank, size, folder):
    torch.set_num_threads(1)
    store = dist.FileStore(f"{folder}/store", size)
    dist.init_process_group("unisono", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=30))
    tensor = torch.tensor([float(10**rank)])
    dist.all_reduce(tensor)
    dist.destroy_process_group()
    Path(folder, f"found-{rank}").write_text(str(tensor.item()))


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.long)])
def test_torch_can_start_the_ranks(tmp_path, method):
    mp.start_processes(join_and_write, (2, str(tmp_path)), nprocs=2, start_method=method)
    assert [(tmp_path / f"found-{rank}").read_text() for rank in range(2)] == ["11.0", "11.0"]


def train_with_loader(workers):
    """Train with a loader that starts and ends worker processes while the group is in use."""
    parts = [batch(number, 0) for number in range(8)]
    data = TensorDataset(torch.cat([inputs for inputs, _ in parts]), torch.cat([targets for _, targets in parts]))
    sampler = DistributedSampler(data, seed=1)
    loader = DataLoader(data, batch_size=4, sampler=sampler, num_workers=workers)
    model = DistributedDataParallel(small_model())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            mse_loss(model(inputs), targets).backward()
            optimizer.step()
    return parameters_of(model)


@pytest.mark.parametrize("workers", [0, 2])
def test_data_loaders_with_worker_processes_do_not_disturb_a_group(workers):
    same_as_gloo(train_with_loader, 2, workers, bits=18)


def fork_and_leave():
    """Fork a child that exits during calls; this must not count as the exit of the rank."""
    tensor = torch.ones(1000)
    work = dist.all_reduce(tensor, async_op=True)
    child = os.fork()
    if child == 0:
        os._exit(3)
    _, status = os.waitpid(child, 0)
    work.wait()
    dist.all_reduce(tensor)
    return os.waitstatus_to_exitcode(status), tensor.sum().item()


@pytest.mark.parametrize("size", [2, 4])
def test_a_child_process_of_a_rank_can_exit(size):
    assert run_ranks(fork_and_leave, size) == [(3, 1000.0 * size**2)] * size
