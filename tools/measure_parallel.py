"""Measure steps of our DataParallel and of torch's: ``python tools/measure_parallel.py [-n RANKS] [--json FILE]``.

Two models: a perceptron of 25 million parameters, and a small GPT of 11 million; batches are tiny, so that
communication is what matters (``--rows`` for larger ones). All contenders live in the same processes and take
turns, a few steps each; what is printed is of the slowest rank: the median step, and the quickest one, which
a busy machine disturbs less. "Alone" sends nothing. For ours, also how long a rank stands still in a step,
and how long the same collectives take alone (unisono.parallel.overlap says how both are measured).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import queue
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import unisono
import unisono.torch_backend
from unisono.parallel import DataParallel, group_of, measure_overlap

ROUNDS, STEPS = 8, 4  # steps of each contender in a round
WORDS, LENGTH, WIDTH, HEADS, LAYERS = 96, 64, 384, 6, 6  # of the GPT


class Block(nn.Module):
    """A layer of the GPT."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.to_qkv, self.to_out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add attention and perceptron."""
        rows, length, _ = x.shape
        query, key, value = (
            part.view(rows, length, HEADS, -1).transpose(1, 2)
            for part in self.to_qkv(self.before_attention(x)).chunk(3, -1)
        )
        heads = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.to_out(heads.transpose(1, 2).reshape(rows, length, WIDTH))
        return x + self.mlp(self.before_mlp(x))


class GPT(nn.Module):
    """A small language model."""

    def __init__(self) -> None:
        super().__init__()
        self.word, self.place = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Return the scores of every next word."""
        return self.head(self.norm(self.blocks(self.word(words) + self.place.weight)))


def perceptron() -> nn.Module:
    """Return 25 million parameters in four layers."""
    layers = [(nn.Linear(2500, 2500, bias=False), nn.ReLU()) for _ in range(4)]
    return nn.Sequential(*(part for layer in layers for part in layer))


def loss_of_perceptron(model: nn.Module, rows: int) -> torch.Tensor:
    """Return some loss."""
    return model(torch.ones(rows, 2500)).square().mean()


def loss_of_gpt(model: nn.Module, rows: int) -> torch.Tensor:
    """Return the loss of a language model."""
    words = torch.arange(rows * LENGTH).view(rows, LENGTH) % WORDS
    return functional.cross_entropy(model(words).flatten(0, 1), words.flatten())


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[nn.Module, int], torch.Tensor], int]] = {
    "perceptron": (perceptron, loss_of_perceptron, 4), "gpt": (GPT, loss_of_gpt, 1),
}  # fmt: skip


def contenders(comm: unisono.Communicator) -> dict[str, Callable[[nn.Module], nn.Module]]:
    """Return who takes part: what each makes of a model."""
    theirs = {
        f"torch DDP on {backend}": lambda model, backend=backend: DistributedDataParallel(
            model, process_group=dist.new_group(backend=backend)
        )
        for backend in ("unisono", "gloo")
    }
    return {"alone": lambda model: model, "ours": lambda model: DataParallel(model, comm), **theirs}


def measure_model(name: str, comm: unisono.Communicator, rows: int) -> dict[str, Any]:
    """Return the seconds of each contender on this rank."""
    make, loss_of, usual_rows = MODELS[name]
    steps = {}
    for who, wrap in contenders(comm).items():
        torch.manual_seed(0)
        model = wrap(make())
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)

        def step(model: nn.Module = model, optimizer: torch.optim.Optimizer = optimizer) -> None:
            optimizer.zero_grad()
            loss_of(model, rows or usual_rows).backward()
            optimizer.step()

        steps[who] = step
    times: dict[str, list[float]] = {who: [] for who in steps}
    for number in range(ROUNDS + 1):
        order = list(steps)
        turn = number % len(order)
        for who in order[turn:] + order[:turn]:
            for _ in range(STEPS):
                comm.barrier()
                began = time.perf_counter()
                steps[who]()
                if number:  # the first round is to warm up
                    times[who].append(time.perf_counter() - began)
    overlap = measure_overlap(steps["ours"], group_of(comm))
    return {
        "median": {who: statistics.median(found) for who, found in times.items()},
        "quickest": {who: min(found) for who, found in times.items()},
        "overlap": {"exposed": overlap.exposed_s, "communication": overlap.alone_s},
    }


def run_rank(rank: int, size: int, folder: str, models: list[str], rows: int, answers: Any) -> None:
    """Measure, on one rank."""
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(size)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29533", "GLOO_SOCKET_IFNAME": "lo"}
    dist.init_process_group("unisono", store=dist.FileStore(f"{folder}/store", size), rank=rank, world_size=size)
    with unisono.connect() as comm:
        answers.put({name: measure_model(name, comm, rows) for name in models})
        comm.barrier()
    dist.destroy_process_group()


def measure(size: int, models: list[str], rows: int) -> dict[str, Any]:
    """Return the seconds of each model and contender, on the slowest rank."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        answers: Any = context.Queue()
        ranks = [
            context.Process(target=run_rank, args=(rank, size, folder, models, rows, answers)) for rank in range(size)
        ]
        for process in ranks:
            process.start()
        found: list[Any] = []
        while len(found) < size:
            with contextlib.suppress(queue.Empty):
                found.append(answers.get(timeout=1))
            if len(found) < size and any(process.exitcode for process in ranks):
                for process in ranks:
                    process.kill()
                raise SystemExit("a rank has failed; see above")
        for process in ranks:
            process.join(30)
            process.kill()  # Gloo may not end
    return {
        model: {
            what: {who: max(rank[model][what][who] for rank in found) for who in found[0][model][what]}
            for what in found[0][model]
        }
        for model in found[0]
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", dest="size", type=int, default=2, help="ranks (default 2)")
    parser.add_argument("--models", default=",".join(MODELS), help="which ones (default both)")
    parser.add_argument("--rows", type=int, default=0, help="rows of a batch (default: few)")
    parser.add_argument("--json", type=Path, help="also write what was measured to this file")
    asked = parser.parse_args()
    measured = measure(asked.size, asked.models.split(","), asked.rows)
    for model, seconds in measured.items():
        print(f"{model} on {asked.size} ranks")
        for who, median in seconds["median"].items():
            quickest, ours = seconds["quickest"][who], seconds["quickest"]["ours"]
            print(
                f"  {who:24} {median * 1e3:7.1f} ms, quickest {quickest * 1e3:7.1f} ms, {quickest / ours:.2f} × ours"
            )
        exposed, alone = seconds["overlap"]["exposed"], seconds["overlap"]["communication"]
        print(f"  exposed {exposed * 1e3:.1f} ms of {alone * 1e3:.1f} ms of communication: {exposed / alone:.0%}")
    if asked.json:
        asked.json.write_text(json.dumps({"ranks": asked.size, "seconds": measured}, indent=1) + "\n")
