"""Random small models and random ways to train them, made from a number: the same on every rank.

A *plan* says all that a training run does. What a strategy documents that it cannot do (stage 3: units of which ranks
run different ones, weights that are used outside of their unit; DataParallel: a reentrant checkpoint around what is
used twice, or not at all) is left out of the plan for it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

WIDTH = 4
ROWS = 3  # of the batch of a rank


class Marked(nn.Parameter):
    """A parameter of a class of the user's."""


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
class Plan:
    """One training run."""

    seed: int
    blocks: tuple[int, ...]  # kinds, by number
    calls: tuple[tuple[int, ...], ...]  # for each rank: the blocks it runs, in order
    checkpoints: tuple[str, ...]  # for each block: "", "reentrant" or "other"
    ties: tuple[tuple[int, int], ...]  # pairs of blocks that share a weight
    outside: int | None  # a block whose weight is used first of all, outside of it
    frozen: tuple[int, ...]  # blocks
    micro_batches: tuple[bool, ...]  # of an update: whether each is averaged
    clip: float | None
    optimizer: str
    dtype: str
    steps: int
    reloads: bool  # the state is read and loaded in the middle
    zero_settings: dict[str, object] = field(default_factory=dict)

    @property
    def uses_all_once(self) -> bool:
        """Whether every parameter is used on every rank, exactly once."""
        every = tuple(range(len(self.blocks)))
        whole = all(tuple(sorted(calls)) == every for calls in self.calls)
        return whole and not self.ties and self.outside is None and BLOCKS.index(Gated) not in self.blocks


def plan_of(seed: int, size: int, stage: int) -> Plan:
    """Return the plan of a number, without what the stage (0: DataParallel) cannot do."""
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
    if chance.random() < 0.3:  # each rank leaves some out, or runs them in another order
        calls = [tuple(chance.sample(common, max(1, len(common) - chance.randint(0, 2)))) for _ in range(size)]
    kind = chance.choice(["", "", "other", "reentrant", "mixed"])
    checkpoints = [chance.choice(["", "other", "reentrant"]) if kind == "mixed" else kind for _ in every]
    linear = [block for block in every if BLOCKS[blocks[block]] in (Plain, WithoutBias)]
    ties = [tuple(chance.sample(linear, 2))] if len(linear) > 2 and chance.random() < 0.3 else []
    outside = chance.choice(linear) if linear and chance.random() < 0.3 else None
    frozen = chance.sample(every, 1) if chance.random() < 0.3 else []
    micro_batches = [chance.random() < 0.5 for _ in range(chance.choice([0, 0, 0, 1, 2]))]
    plan = Plan(
        seed, blocks, tuple(calls), tuple(checkpoints), tuple(ties), outside, tuple(frozen), (*micro_batches, True),
        clip=chance.choice([None, None, 0.05]), optimizer=chance.choice(["sgd", "momentum", "adam"]),
        dtype="float32" if chance.random() < 0.1 else "float64", steps=chance.randint(2, 3),
        reloads=chance.random() < 0.2,
        zero_settings={
            "prefetch": chance.random() < 0.7, "free_after_forward": chance.random() < 0.7,
            "check_nan": chance.random() < 0.2, "units": chance.choice([None, None, "linear", "none"]),
        },
    )  # fmt: skip
    return _possible(plan, stage)


def _possible(plan: Plan, stage: int) -> Plan:
    if stage == 3:
        plan = replace(plan, outside=None, calls=(plan.calls[0],) * len(plan.calls))
    if not plan.uses_all_once:
        if stage == 0:  # see docs/parallel/data_parallel.md
            plan = replace(plan, checkpoints=tuple(each and "other" for each in plan.checkpoints))
        else:  # a parameter without a gradient counts as one of zero: see docs/parallel/zero.md
            plan = replace(plan, optimizer="sgd")
    return plan


class Model(nn.Module):
    """The model of a plan; ``rank`` says whose calls it makes."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        torch.manual_seed(plan.seed)
        self.plan, self.rank = plan, 0
        self.blocks = nn.ModuleList([BLOCKS[kind]() for kind in plan.blocks])
        self.head = nn.Linear(WIDTH, 2)
        for one, two in plan.ties:
            self.blocks[one].weight = self.blocks[two].weight
        for block in plan.frozen:
            self.blocks[block].requires_grad_(False)
        self.to(getattr(torch, plan.dtype))

    def forward(self, x: Tensor) -> Tensor:
        if self.plan.outside is not None:
            x = functional.linear(x, self.blocks[self.plan.outside].weight).sin()
        for number in self.plan.calls[self.rank]:
            block, kind = self.blocks[number], self.plan.checkpoints[number]
            x = checkpoint(block, x, use_reentrant=kind == "reentrant") if kind else block(x)
        return self.head(x)


def make_optimizer(plan: Plan, parameters: object) -> torch.optim.Optimizer:
    """Return the optimiser of a plan."""
    if plan.optimizer == "adam":  # with a large eps: a gradient that is zero but for rounding gives a small step
        return torch.optim.AdamW(parameters, 0.05, eps=0.01)
    return torch.optim.SGD(parameters, 0.1, momentum=0.9 if plan.optimizer == "momentum" else 0.0)


def loss_of(model: nn.Module, plan: Plan, step: int, micro_batch: int, rank: int) -> Tensor:
    """Return the loss of a rank on its batch."""
    source = torch.Generator().manual_seed(plan.seed * 1000 + step * 100 + micro_batch * 10 + rank)
    x = torch.randn(ROWS, WIDTH, generator=source, dtype=torch.float64).to(getattr(torch, plan.dtype))
    return model(x.requires_grad_()).square().mean()


def train_alone(plan: Plan) -> dict[str, Tensor]:
    """Return the state that one process comes to which computes the losses of all ranks."""
    model = Model(plan)
    optimizer = make_optimizer(plan, [each for each in model.parameters() if each.requires_grad])
    for step in range(plan.steps):
        optimizer.zero_grad()
        for micro_batch in range(len(plan.micro_batches)):
            for rank in range(len(plan.calls)):
                model.rank = rank
                (loss_of(model, plan, step, micro_batch, rank) / len(plan.calls)).backward()
        if plan.clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), plan.clip)
        optimizer.step()
    return model.state_dict()
