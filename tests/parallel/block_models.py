"""Models of equal blocks, and the training loop that tests of units share."""

from __future__ import annotations

import torch
from torch import nn

UNITS = 7  # with three, all of them are packed before the first average is complete, and no gradient can be late
ROWS = 6  # of a global batch


class Blocks(nn.Module):
    """Linear layers of one size, each of them a unit."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(UNITS)])

    def forward(self, x):
        return self.run(x, self.blocks)

    def run(self, x, blocks):
        for block in blocks:
            x = torch.tanh(block(x))
        return x


def make(kind, *arguments):
    """Return a model whose parameters depend on its class alone."""
    torch.manual_seed(0)
    return kind(*arguments).double()


def sgd(parameters):
    return torch.optim.SGD(parameters, 0.5)


def train(model, optimizer, rank=0, size=1):
    """Train three steps on the rows of a rank; return the state of the model."""
    source = torch.Generator().manual_seed(1)
    for _ in range(3):
        x = torch.randn(ROWS, 4, generator=source, dtype=torch.float64).chunk(size)[rank].clone().requires_grad_()
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return model.state_dict()


def train_alone(kind, *arguments):
    """Return the state of a model that one process trained on all rows."""
    model = make(kind, *arguments)
    return train(model, sgd(model.parameters()))
