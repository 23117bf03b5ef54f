"""Steps for docs/parallel/data_parallel.md."""

from __future__ import annotations

import torch
from torch import nn

from unisono.parallel import DataParallel, Group, Log, record

RANKS = 4


def model() -> nn.Module:
    """Return a small net with buffers."""
    return nn.Sequential(
        nn.Linear(256, 1024), nn.BatchNorm1d(1024), nn.ReLU(), nn.Linear(1024, 512), nn.Linear(512, 10)
    )


def start_and_step(group: Group) -> Log:
    """Return the collectives of wrapping the module and of the first step."""
    with record() as log:
        wrapped = DataParallel(model(), group)
        wrapped(torch.randn(8, 256)).sum().backward()
    return log


def memory(group: Group) -> str:
    """Return a table of the bytes that a rank holds after a step with Adam."""
    wrapped = DataParallel(model(), group)
    optimizer = torch.optim.Adam(wrapped.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        wrapped(torch.randn(8, 256)).sum().backward()
        optimizer.step()
    parameters = list(wrapped.parameters())
    count = sum(parameter.numel() for parameter in parameters)
    state = [
        value
        for each in optimizer.state.values()
        for value in each.values()
        if torch.is_tensor(value) and value.dim()
    ]
    rows = [
        ("parameters", "4Ψ", 4 * count, _held(parameters)),
        ("gradients", "4Ψ", 4 * count, _held([parameter.grad for parameter in parameters])),
        ("state of Adam", "8Ψ", 8 * count, _held(state)),
    ]
    lines = [f"| Ψ = {count:,} float32 | formula | bytes | measured |", "|---|---|--:|--:|"]
    lines += [f"| {what} | {formula} | {bytes_:,} | {found:,} |" for what, formula, bytes_, found in rows]
    return "\n".join(lines)


def _held(tensors: list[torch.Tensor]) -> int:
    """Return the bytes of the storages of the tensors, each storage counted once."""
    pieces = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    return sum(pieces.values())
