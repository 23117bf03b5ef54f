"""Steps of Zero: a model of an embedding, two blocks and a head, float32."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unisono.collectives import find
from unisono.parallel import DataParallel, Group, Log, Zero, memory, mesh, record

RANKS = 4
WORDS, FEATURES = 10, 8


class Model(nn.Module):
    """Two blocks, each a unit, and a root with an embedding and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, FEATURES)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(FEATURES, 4 * FEATURES), nn.GELU(), nn.Linear(4 * FEATURES, FEATURES))
            for _ in range(2)
        )
        self.head = nn.Linear(FEATURES, WORDS, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Return scores of the next word."""
        x = self.words(ids)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def _second_step(model: Any, optimizer: Any) -> Log:
    """Return the collectives of the second step."""
    for _ in range(2):
        with record() as log:
            optimizer.zero_grad()
            model(torch.arange(WORDS)).square().sum().backward()
            optimizer.step()
    return log


def _step(group: Group, stage: int, **settings: Any) -> Log:
    zero = Zero(Model(), group, optimizer=lambda shards: torch.optim.SGD(shards, 0.1), stage=stage, **settings)
    return _second_step(zero, zero)


def stage_1(group: Group) -> Log:
    """Return the collectives of stage 1."""
    return _step(group, 1)


def stage_2(group: Group) -> Log:
    """Return the collectives of stage 2."""
    return _step(group, 2)


def stage_3(group: Group) -> Log:
    """Return the collectives of stage 3."""
    return _step(group, 3)


def hybrid(group: Group) -> Log:
    """Return the collectives of stage 3 within two nodes of two ranks."""
    nodes = mesh(group, replica=2, shard=2)
    return _step(nodes.shard, 3, replicate=nodes.replica)


def volume(group: Group) -> str:
    """Return a table of the bytes that each strategy sends, from the logs."""
    model = Model()
    nbytes = sum(parameter.numel() * 4 for parameter in model.parameters())
    wrapped = DataParallel(model, group)
    logs = {
        "DataParallel (stage 0)": _second_step(wrapped, torch.optim.SGD(wrapped.parameters(), 0.1)),
        "stage 1": stage_1(group), "stage 2": stage_2(group), "stage 3": stage_3(group),
        "stage 3, `free_after_forward=False`": _step(group, 3, free_after_forward=False),
        "hybrid: inside a node": hybrid(group), "hybrid: between nodes": hybrid(group),
    }  # fmt: skip
    formulas = ["2(N-1)/N", "3(N-1)/N", "2(N-1)/N", "3(N-1)/N", "2(N-1)/N", "3(S-1)/S", "2(R-1)/(R·S)"]
    rows = [f"| | parts of the model that a rank sends | here, of {nbytes:,} bytes |", "|---|---|---:|"]
    for (what, log), formula in zip(logs.items(), formulas, strict=True):
        entries = [entry for entry in log if (entry.axis == "replica") == ("between" in what)]
        sent = sum(entry.bytes * find(entry.collective).bus_factor(entry.size) for entry in entries)
        rows.append(f"| {what} | {formula} | {float(sent):,.0f} ({float(sent / nbytes):.2f}) |")
    return "\n".join(rows)


def gigabytes(group: Group) -> str:
    """Return a table of the formulas for a large model."""
    return memory.table(memory.MIXED_ADAM, 7_500_000_000, [1, 4, 16, 64])


def measured(group: Group) -> str:
    """Return a table of the memory of one rank, measured and by formula."""
    rows = [
        "| stage | parameters | gradients | optimiser | sum | formula | unit buffers | gradient buffers |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for stage in (1, 2, 3):
        zero = Zero(Model(), group, optimizer=torch.optim.Adam, stage=stage, mixed_precision=torch.bfloat16)
        _second_step(zero, zero)
        held = memory.measure(zero)
        expected = memory.formula(stage, memory.padded(zero), group.size).total
        counters = memory.STEP_BYTES * len(zero.trained)
        assert held.total == expected + counters, (held, expected)
        numbers = (
            held.parameters, held.gradients, held.optimizer - counters, held.total - counters, expected,
            held.unit_buffers, held.gradient_buffers,
        )  # fmt: skip
        rows.append(f"| {stage} | " + " | ".join(f"{number:,}" for number in numbers) + " |")
    return "\n".join(rows)
