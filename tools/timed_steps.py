"""Shared parts of the tools that measure training: forked ranks, models, and steps that take turns."""

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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH, LAYERS, BATCH = 2500, 4, 4  # of the perceptron
REPEATS, STEPS = 6, 4  # turns of each contender, and steps in a turn

Step = Callable[[], None]


def perceptron() -> nn.Sequential:
    """Return a model of 25 million parameters in four layers."""
    torch.manual_seed(0)
    return nn.Sequential(*(part for _ in range(LAYERS) for part in (nn.Linear(WIDTH, WIDTH, bias=False), nn.ReLU())))


class Block(nn.Module):
    """A layer of a GPT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.to_qkv, self.to_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Add the outputs of attention and perceptron to x."""
        rows, length, _ = x.shape
        parts = self.to_qkv(self.before_attention(x)).chunk(3, -1)
        query, key, value = (part.reshape(rows, length, self.heads, -1).transpose(1, 2) for part in parts)
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.to_out(found.transpose(1, 2).reshape(rows, length, -1))
        return x + self.mlp(self.before_mlp(x))


class SmallGPT(nn.Module):
    """A GPT of 10.7 million parameters."""

    def __init__(self, width: int = 384, layers: int = 6, heads: int = 6, words: int = 96, length: int = 16) -> None:
        super().__init__()
        self.word, self.position = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        """Return the scores of every next word."""
        x = self.word(words) + self.position.weight
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def small_gpt() -> SmallGPT:
    """Return the same GPT in every process."""
    torch.manual_seed(0)
    return SmallGPT()


def inputs_of(model: nn.Module, times: int = 1) -> Tensor:
    """Return a tiny batch for a model, so that communication dominates, or one that is ``times`` larger."""
    if isinstance(model, SmallGPT):
        return torch.randint(96, (times, 16))
    return torch.randn(times * BATCH, WIDTH)


def stepper(model: nn.Module, inputs: Tensor, optimizer: Any = None) -> Step:
    """Return a function that trains one step; the optimiser is SGD unless given."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 1e-3)

    def step() -> None:
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()

    return step


def median_steps(
    steps: Mapping[str, Step], barrier: Callable[[], Any], repeats: int = REPEATS, steps_of_turn: int = STEPS
) -> dict[str, float]:
    """Let the contenders take turns, a few steps each; return the median of each on this rank, in seconds."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(repeats + 1):
        names = list(steps)
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            for _ in range(steps_of_turn):
                barrier()
                began = time.perf_counter()
                steps[name]()
                if number:  # the first turn is a warm-up
                    times[name].append(time.perf_counter() - began)
    return {name: statistics.median(found) for name, found in times.items()}


def slowest(answers: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return the seconds of each case and contender on the slowest rank."""
    first = answers[0]
    return {case: {name: max(rank[case][name] for rank in answers) for name in first[case]} for case in first}


def answers_of_ranks(function: Callable[[int, int, str, Any], Any], size: int) -> list[Any]:
    """Call ``function(rank, size, folder, barrier)`` in forked processes; return their results.

    If one fails, all are killed: the others would wait for it.
    """
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        answers: Any = context.Queue()
        together = context.Barrier(size)

        def run(rank: int) -> None:
            torch.set_num_threads(1)
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
            answers.put(function(rank, size, folder, together))

        ranks = [context.Process(target=run, args=(rank,)) for rank in range(size)]
        for process in ranks:
            process.start()
        found: list[Any] = []
        while len(found) < size:
            with contextlib.suppress(queue.Empty):
                found.append(answers.get(timeout=1))
            if any(process.exitcode for process in ranks):
                for process in ranks:
                    process.kill()
                raise SystemExit("a rank failed; see above")
        for process in ranks:
            process.join(60)
    return found


def main(
    description: str | None,
    run_rank: Callable[[int, int, str, Any], Any],
    line: Callable[[str, dict[str, float]], str],
) -> None:
    """Measure, print a line for each case, and write a file if requested."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("-n", dest="size", type=int, default=2, help="ranks (default 2)")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    args = parser.parse_args()
    measured = slowest(answers_of_ranks(run_rank, args.size))
    for case, seconds in measured.items():
        print(f"{args.size} ranks, {line(case, seconds)}")
    if args.json:
        args.json.write_text(json.dumps({"ranks": args.size, "seconds": measured}, indent=1) + "\n")
