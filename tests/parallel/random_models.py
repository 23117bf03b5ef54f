"""Random small models and training runs, derived from a seed, so that all ranks have the same ones.

A *scenario* describes a training run completely. It leaves out what the documentation of its strategy excludes
(stage 3: ranks that run different units, and weights that are used outside of their unit; DataParallel: a reentrant
checkpoint around modules that run twice or not at all).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

WIDTH = 4
ROWS = 3  # in the batch of a rank


class Marked(nn.Parameter):
    """A parameter of a user-defined class."""


class Plain(nn.Linear):
    def __init__(self, bias: bool = True) -> None:
        super().__init__(WIDTH, WIDTH, bias)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(super().forward(x))


class WithoutBias(Plain):
    def __init__(self) -> None:
        super().__init__(bias=False)


class Normed(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 5), nn.Tanh(), nn.Linear(5, WIDTH))


class Gated(nn.Module):
    """Returns a tuple, has a parameter without dimensions, and one that is never used."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.spare = nn.Parameter(torch.randn(())), nn.Parameter(torch.randn(3))
        self.inner = nn.Linear(WIDTH, WIDTH)
        self.inner.weight = Marked(self.inner.weight.data)

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.sigmoid(self.inner(x)) * self.scale


BLOCKS = (Plain, Plain, WithoutBias, Normed, Gated)


@dataclass(frozen=True)
class Scenario:
    """One training run."""

    seed: int
    blocks: tuple[int, ...]  # indices into BLOCKS
    calls: tuple[tuple[int, ...], ...]  # for each rank: the blocks it runs, in order
    checkpoints: tuple[str, ...]  # for each block: "", "reentrant" or "other"
    ties: tuple[tuple[int, int], ...]  # pairs of blocks that share a weight
    outside: int | None  # a block whose weight is also used before the first block runs
    frozen: tuple[int, ...]  # indices of blocks
    micro_batches: tuple[bool, ...]  # of an update: whether the gradients of each are averaged
    clip: float | None
    optimizer: str
    dtype: str
    steps: int
    reloads: bool  # the state is read and loaded again after each step
    zero_settings: dict[str, object] = field(default_factory=dict)

    @property
    def uses_all_once(self) -> bool:
        """Tell whether every rank uses every parameter exactly once."""
        every = tuple(range(len(self.blocks)))
        whole = all(tuple(sorted(calls)) == every for calls in self.calls)
        return whole and not self.ties and self.outside is None and BLOCKS.index(Gated) not in self.blocks


def scenario_of(seed: int, size: int, stage: int) -> Scenario:
    """Return the scenario of a seed, without what the stage (0: DataParallel) does not support."""
    chance = random.Random(seed)
    count = chance.randint(3, 9)
    every = list(range(count))
    blocks = tuple(chance.randrange(len(BLOCKS)) for _ in every)
    common = list(every)
    if chance.random() < 0.3:
        chance.shuffle(common)
    if chance.random() < 0.3:  # some are called twice
        common += chance.sample(every, 2)
    if chance.random() < 0.25:  # some are never called
        for unused in chance.sample(every, 1):
            common = [block for block in common if block != unused]
    calls = [tuple(common)] * size
    if chance.random() < 0.3:  # each rank skips some, or runs them in a different order
        calls = [tuple(chance.sample(common, max(1, len(common) - chance.randint(0, 2)))) for _ in range(size)]
    kind = chance.choice(["", "", "other", "reentrant", "mixed"])
    checkpoints = [chance.choice(["", "other", "reentrant"]) if kind == "mixed" else kind for _ in every]
    linear = [block for block in every if BLOCKS[blocks[block]] in (Plain, WithoutBias)]
    ties = [tuple(chance.sample(linear, 2))] if len(linear) > 2 and chance.random() < 0.3 else []
    outside = chance.choice(linear) if linear and chance.random() < 0.3 else None
    frozen = chance.sample(every, 1) if chance.random() < 0.3 else []
    micro_batches = [chance.random() < 0.5 for _ in range(chance.choice([0, 0, 0, 1, 2]))]
    scenario = Scenario(
        seed, blocks, tuple(calls), tuple(checkpoints), tuple(ties), outside, tuple(frozen), (*micro_batches, True),
        clip=chance.choice([None, None, 0.05]), optimizer=chance.choice(["sgd", "momentum", "adam"]),
        dtype="float32" if chance.random() < 0.1 else "float64", steps=chance.randint(2, 3),
        reloads=chance.random() < 0.2,
        zero_settings={
            "prefetch": chance.random() < 0.7, "free_after_forward": chance.random() < 0.7,
            "check_nan": chance.random() < 0.2, "units": chance.choice([None, None, "linear", "none"]),
        },
    )  # fmt: skip
    return _possible(scenario, stage)


def _possible(scenario: Scenario, stage: int) -> Scenario:
    if stage == 3:
        scenario = replace(scenario, outside=None, calls=(scenario.calls[0],) * len(scenario.calls))
    if not scenario.uses_all_once:
        if stage == 0:  # see docs/parallel/data_parallel.md
            scenario = replace(scenario, checkpoints=tuple(each and "other" for each in scenario.checkpoints))
        else:  # a missing gradient counts as zero: see docs/parallel/zero.md
            scenario = replace(scenario, optimizer="sgd")
    return scenario


class Model(nn.Module):
    """The model of a scenario; ``rank`` selects the calls."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__()
        torch.manual_seed(scenario.seed)
        self.scenario, self.rank = scenario, 0
        self.blocks = nn.ModuleList([BLOCKS[kind]() for kind in scenario.blocks])
        self.head = nn.Linear(WIDTH, 2)
        for one, two in scenario.ties:
            self.blocks[one].weight = self.blocks[two].weight
        for block in scenario.frozen:
            self.blocks[block].requires_grad_(False)
        self.to(getattr(torch, scenario.dtype))

    def forward(self, x: Tensor) -> Tensor:
        if self.scenario.outside is not None:
            x = functional.linear(x, self.blocks[self.scenario.outside].weight).sin()
        for number in self.scenario.calls[self.rank]:
            block, kind = self.blocks[number], self.scenario.checkpoints[number]
            x = checkpoint(block, x, use_reentrant=kind == "reentrant") if kind else block(x)
        return self.head(x)


def make_optimizer(scenario: Scenario, parameters: object) -> torch.optim.Optimizer:
    """Return the optimiser of a scenario."""
    if scenario.optimizer == "adam":  # with a large eps: a gradient of nothing but rounding errors gives a small step
        return torch.optim.AdamW(parameters, 0.05, eps=0.01)
    return torch.optim.SGD(parameters, 0.1, momentum=0.9 if scenario.optimizer == "momentum" else 0.0)


def loss_of(model: nn.Module, scenario: Scenario, step: int, micro_batch: int, rank: int) -> Tensor:
    """Return the loss of a rank on its batch."""
    source = torch.Generator().manual_seed(scenario.seed * 1000 + step * 100 + micro_batch * 10 + rank)
    x = torch.randn(ROWS, WIDTH, generator=source, dtype=torch.float64).to(getattr(torch, scenario.dtype))
    return model(x.requires_grad_()).square().mean()


def train_alone(scenario: Scenario) -> dict[str, Tensor]:
    """Return the state after training in one process, which computes the losses of all ranks."""
    model = Model(scenario)
    optimizer = make_optimizer(scenario, [each for each in model.parameters() if each.requires_grad])
    for step in range(scenario.steps):
        optimizer.zero_grad()
        for micro_batch in range(len(scenario.micro_batches)):
            for rank in range(len(scenario.calls)):
                model.rank = rank
                (loss_of(model, scenario, step, micro_batch, rank) / len(scenario.calls)).backward()
        if scenario.clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), scenario.clip)
        optimizer.step()
    return model.state_dict()
