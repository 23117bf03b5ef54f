"""Finds and converts the tensors in nested arguments and results of modules."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch


def tensors_in(value: Any) -> Iterator[Any]:
    """Yield the tensors in nested tuples, lists, dicts and dataclasses."""
    if torch.is_tensor(value):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from tensors_in(each)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from tensors_in(getattr(value, field.name))


def cast(value: Any, dtype: torch.dtype) -> Any:
    """Return nested tuples, lists and dicts with their floating-point tensors in another dtype."""
    if torch.is_tensor(value):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, dict):
        return {key: cast(each, dtype) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(cast(each, dtype) for each in value)
    return value
