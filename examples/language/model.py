"""The model: a small GPT that predicts the next character of a text.

It is plain PyTorch and knows nothing of ranks. The names and the order of its layers are those of
``unisono.parallel.ParallelTransformer``, so that both start with the same parameters for a given seed, and the
parameters of one can be loaded into the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Shape:
    """The size of a model; by default, 240,000 parameters."""

    characters: int  # different characters in the text
    features: int = 96
    heads: int = 8
    layers: int = 2
    longest: int = 48  # characters of context
    experts: int = 8  # in each layer of a mixture of experts


class MLP(nn.Module):
    """Two linear layers, which hold most of the parameters."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(features, 4 * features), nn.Linear(4 * features, features)

    def forward(self, x: Tensor) -> Tensor:
        """Apply both layers."""
        return self.down(functional.gelu(self.up(x)))


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(features, 3 * features), nn.Linear(features, features)

    def forward(self, x: Tensor) -> Tensor:
        """Return the attended values: rows × length × features."""
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(seen.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention, then an MLP, each with a residual connection."""

    def __init__(self, shape: Shape, make_mlp: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(shape.features), Attention(shape.features, shape.heads)
        self.norm2, self.mlp = nn.LayerNorm(shape.features), make_mlp()

    def forward(self, x: Tensor) -> Tensor:
        """Apply both parts."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """A transformer from characters to the logits of the next character."""

    def __init__(self, shape: Shape, make_mlp: Callable[[], nn.Module] | None = None) -> None:
        super().__init__()
        make_mlp = make_mlp or (lambda: MLP(shape.features))
        self.embedding = nn.Embedding(shape.characters, shape.features)
        self.positions = nn.Embedding(shape.longest, shape.features)
        self.blocks = nn.ModuleList(Block(shape, make_mlp) for _ in range(shape.layers))
        self.norm, self.head = nn.LayerNorm(shape.features), nn.Linear(shape.features, shape.characters, bias=False)

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> Tensor:
        """Return the loss; without targets, the logits of the next characters."""
        x = self.embedding(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return logits if targets is None else functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


@torch.no_grad()
def write(model: nn.Module, begin: list[int], length: int, longest: int, temperature: float = 0.7) -> list[int]:
    """Let the model continue a text; a higher temperature gives less probable characters."""
    chance = torch.Generator().manual_seed(0)
    ids = torch.tensor([begin])
    for _ in range(length):
        logits = model(ids[:, -longest:])[0, -1]
        probabilities = torch.softmax(logits / temperature, dim=-1)
        ids = torch.cat([ids, torch.multinomial(probabilities, 1, generator=chance)[None]], dim=1)
    return ids[0].tolist()
