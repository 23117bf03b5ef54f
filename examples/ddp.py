"""Train a small network on several ranks with DistributedDataParallel.

Run it:    torchrun --nproc-per-node 4 examples/ddp.py
Compare:   torchrun --nproc-per-node 4 examples/ddp.py --backend gloo
On GPUs:   torchrun --nproc-per-node 4 examples/ddp.py --device cuda     (ranks may share one)
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def spirals(points):
    """Return points on two spirals in the plane, and the number of the spiral of each point."""
    which = torch.arange(points) % 2
    angle = 3 * torch.pi * torch.rand(points, generator=torch.Generator().manual_seed(1))
    turned = angle + torch.pi * which
    return torch.stack([angle * turned.cos(), angle * turned.sin()], 1) / 10, which


def main():
    """Train, and print the loss on rank 0."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--backend", default="unisono")
    arguments.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    arguments.add_argument("--epochs", type=int, default=20)
    options = arguments.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    device = torch.device("cpu")
    if options.device == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    dist.init_process_group(options.backend)

    data = TensorDataset(*spirals(2000))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=25, sampler=sampler)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    model = DistributedDataParallel(model.to(device))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)

    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(1, device=device)
        for inputs, labels in loader:
            inputs, labels = inputs.to(device), labels.to(device)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print(f"epoch {epoch:2}: loss {total.item() / len(loader) / dist.get_world_size():.4f}", flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
