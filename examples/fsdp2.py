"""Train a sharded model (FSDP2) that predicts the next number of a sequence.

Run it:    torchrun --nproc-per-node 4 examples/fsdp2.py
Compare:   torchrun --nproc-per-node 4 examples/fsdp2.py --backend gloo
On GPUs:   torchrun --nproc-per-node 4 examples/fsdp2.py --device cuda     (ranks may share one)
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

WORDS, LENGTH, WIDTH = 16, 12, 64


class Predictor(nn.Module):
    """A transformer of two layers."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True) for _ in range(2)
        )
        self.out = nn.Linear(WIDTH, WORDS)

    def forward(self, words):
        """Return the logits of the next word at every position."""
        hidden = self.words(words) + self.positions.weight
        future = nn.Transformer.generate_square_subsequent_mask(LENGTH, device=words.device)
        for layer in self.layers:
            hidden = layer(hidden, src_mask=future)
        return self.out(hidden.flatten(0, 1))


def sequences(count, source):
    """Return sequences that count up by 1, 2, 3 or 4 from a random start."""
    start, by = torch.randint(WORDS, (count, 1), generator=source), torch.randint(1, 5, (count, 1), generator=source)
    return (start + by * torch.arange(LENGTH + 1)) % WORDS


def main():
    """Train, and print the loss on rank 0."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--backend", default="unisono")
    arguments.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    arguments.add_argument("--steps", type=int, default=60)
    options = arguments.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    device = torch.device("cpu")
    if options.device == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    dist.init_process_group(options.backend)
    rank, size = dist.get_rank(), dist.get_world_size()

    mesh = init_device_mesh(device.type, (size,))
    model = Predictor().to(device)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), 0.003)

    source = torch.Generator().manual_seed(rank)
    for step in range(options.steps):
        batch = sequences(16, source).to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch[:, :-1]), batch[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            mean = loss.detach()
            dist.all_reduce(mean, dist.ReduceOp.AVG)
            if rank == 0:
                print(f"step {step + 1:3}: loss {mean.item():.4f}", flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
