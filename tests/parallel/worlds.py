"""Runs the same function on groups of every kind, for the tests of strategies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.distributed as dist

import unisono
from torch_ranks import run_ranks
from unisono.parallel import group_of

KINDS = ("comm", "gloo", "unisono")  # our communicator; torch.distributed on Gloo; torch.distributed on our backend


def run_groups(function: Callable[..., Any], size: int, *arguments: Any, kind: str = "comm") -> list[Any]:
    """Call ``function(group, ...)`` on every rank of a fresh group; return what each rank returns, by rank."""
    if kind == "comm":
        return run_ranks(_on_communicator, size, function, arguments, init=False)
    return run_ranks(_on_torch, size, function, arguments, backend=kind)


def _on_communicator(function: Callable[..., Any], arguments: Any) -> Any:
    with unisono.connect(timeout=30) as comm:
        return function(group_of(comm), *arguments)


def _on_torch(function: Callable[..., Any], arguments: Any) -> Any:
    return function(group_of(dist.group.WORLD), *arguments)
