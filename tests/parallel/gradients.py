"""Compares the gradients of all ranks with the mean of the gradients that each rank computes alone."""

from __future__ import annotations

import copy

import torch

from unisono.parallel import DataParallel


def numbers(rank, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(rank), dtype=torch.float64)


def assert_same(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)


def gradients_of(model):
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def check_gradients(group, model, step, **options):
    """Compare the gradients of ``step(model, rank)`` on all ranks with the mean of those of each rank alone."""
    alone = []
    for rank in range(group.size):
        own = copy.deepcopy(model)
        step(own, rank)
        alone.append(gradients_of(own))
    wrapped = DataParallel(model, group, **{"bucket_bytes": 600} | options)
    step(wrapped, group.rank)
    for name, gradient in gradients_of(wrapped).items():
        parts = [each[name] for each in alone if each[name] is not None]
        assert (gradient is None) == (not parts), name
        if parts:
            assert_same(gradient, sum(parts) / group.size)
    return wrapped
