"""Three small models and their data, the same in every process, for the tests that train.

A step has one *global batch*. Rank r of n trains on its share of it, the r-th of n equal parts: the mean of
the ranks' losses is the loss of the whole batch, and so is the mean of their gradients. One process that
trains alone (``rank=0, size=1``) has the whole batch; strategies are compared with it.

The optimiser is SGD with momentum: it is linear in the gradients. Adam divides by their size, so that a
gradient that is zero except for rounding errors (a bias before a norm) would cause steps in arbitrary directions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

ROWS = 12  # of a global batch: divisible by 1, 2, 3, 4 and 6 ranks
WORDS, LENGTH, WIDTH, HEADS = 11, 6, 12, 2  # of the transformer
CLASSES = 5


def mlp() -> nn.Module:
    """Return a perceptron of three layers."""
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 13), nn.Tanh(), nn.Linear(13, CLASSES))


class Block(nn.Module):
    """A layer of a transformer: causal attention, then a perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.to_qkv, self.to_out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """Add the outputs of attention and of the perceptron to x: rows × length × width."""
        rows, length, _ = x.shape
        query, key, value = (
            part.reshape(rows, length, HEADS, -1).transpose(1, 2)
            for part in self.to_qkv(self.before_attention(x)).chunk(3, -1)
        )
        heads = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.to_out(heads.transpose(1, 2).reshape(rows, length, WIDTH))
        return x + self.mlp(self.before_mlp(x))


class Transformer(nn.Module):
    """Predicts the next word at every position."""

    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.word, self.place = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        """Return the scores of every possible next word: rows × length × words."""
        x = self.word(words) + self.place.weight[: words.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def conv() -> nn.Module:
    """Return a convolutional net with batch norms."""
    return nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.Tanh(), nn.AvgPool2d(2),
        nn.Conv2d(6, 7, 3, padding=1, bias=False), nn.BatchNorm2d(7), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(7, CLASSES),
    )  # fmt: skip


MODELS: dict[str, Callable[[], nn.Module]] = {"mlp": mlp, "transformer": Transformer, "conv": conv}


def make(name: str, dtype: torch.dtype = torch.float64) -> nn.Module:
    """Return a model whose parameters depend on its name alone."""
    torch.manual_seed(1)
    return MODELS[name]().to(dtype)


def batch(name: str, step: int, dtype: torch.dtype = torch.float64, rows: int = ROWS) -> tuple[Tensor, Tensor]:
    """Return the global batch of a step: inputs, and the class (or the next words) of each row."""
    source = torch.Generator().manual_seed(1000 + step)
    if name == "transformer":
        text = torch.randint(WORDS, (rows, LENGTH + 1), generator=source)
        return text[:, :-1], text[:, 1:]
    shape = (8,) if name == "mlp" else (2, 4, 4)
    inputs = torch.randn(rows, *shape, generator=source, dtype=torch.float64)
    return inputs.to(dtype), torch.randint(CLASSES, (rows,), generator=source)


def share(rows: Tensor, rank: int, size: int) -> Tensor:
    """Return the part of a global batch that a rank trains on."""
    assert len(rows) % size == 0, "the mean of means is the overall mean only if all ranks have equally many rows"
    return rows.chunk(size)[rank]


def loss_of(model: Callable[[Tensor], Tensor], inputs: Tensor, targets: Tensor) -> Tensor:
    """Return the loss: the mean cross-entropy over rows (and positions)."""
    return functional.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    """Return the optimiser."""
    return torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-3)


def train(
    model: nn.Module, name: str, steps: int = 20, rank: int = 0, size: int = 1, optimizer: Any = None
) -> list[float]:
    """Train the model (one of MODELS, possibly wrapped) on the shares of a rank; return the loss of each step.

    The mean of the losses of all ranks equals the losses of one process that trains alone.
    """
    optimizer = optimizer or sgd(model)
    dtype = next(parameter.dtype for parameter in model.parameters())
    losses = []
    for step in range(steps):
        inputs, targets = (share(part, rank, size) for part in batch(name, step, dtype))
        optimizer.zero_grad()
        loss = loss_of(model, inputs, targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def trained_alone(name: str, steps: int = 20, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """Return the state dict of a model that one process has trained on whole batches."""
    model = make(name, dtype)
    train(model, name, steps)
    return model.state_dict()


def furthest(found: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    """Return the largest difference of any two numbers of two state dicts with the same keys."""
    assert list(found) == list(expected)
    return max(float((found[key].double() - expected[key].double()).abs().max()) for key in expected)
