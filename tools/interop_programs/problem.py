"""The problem that all programs learn: a small network, deterministic data, and a report of the losses."""

from __future__ import annotations

import json
import os
import sys

import torch

STEPS = 6
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
BACKEND = sys.argv[1]


def network() -> torch.nn.Module:
    """Return the same network on every rank."""
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4))


def batches() -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the training data of this rank; it differs from rank to rank."""
    numbers = torch.Generator().manual_seed(100 + RANK)
    return [(torch.randn(8, 16, generator=numbers), torch.randn(8, 4, generator=numbers)) for _ in range(STEPS)]


def report(losses: list[float], group: object) -> None:
    """Print the losses of rank 0, and the backend that was used."""
    assert len(losses) >= STEPS, losses
    if RANK == 0:
        name = torch.distributed.get_backend()
        print("REPORT " + json.dumps({"losses": losses, "backend": name, "group": type(group).__name__}), flush=True)
