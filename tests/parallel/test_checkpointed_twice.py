"""Units that run several times, under checkpoints of both kinds, train as in one process: in every stage of Zero."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.parallel import Zero  # noqa: E402

UNITS = 7
ROWS = 6


class Net(nn.Module):
    """Blocks, run by a function; ``kinds`` says whether the outer checkpoint is reentrant, and the inner one."""

    def __init__(self, way, kinds):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(UNITS)])
        self.way, (self.outer, self.inner) = way, kinds

    def forward(self, x):
        return self.way(self, x, list(self.blocks))

    def run(self, x, blocks):
        for block in blocks:
            x = torch.tanh(block(x))
        return x

    def run_again(self, x, blocks):
        return checkpoint(self.run, x, blocks, use_reentrant=self.outer)


def groups_twice(net, x, blocks):
    """Run a checkpoint around some blocks twice: those of the second call are open when the first runs backward."""
    for first in (0, 0, 3, 3, 5):
        x = net.run_again(x, blocks[first : first + 3])
    return x


def plain_then_checkpointed(net, x, blocks):
    return net.run_again(net.run(x, blocks), blocks)


def checkpointed_then_plain(net, x, blocks):
    return net.run(net.run_again(x, blocks), blocks)


def twice_in_one_checkpoint(net, x, blocks):
    return net.run_again(x, [*blocks, blocks[0], blocks[2], *blocks])


def nested_twice(net, x, blocks):
    def part(x):
        for first in (0, 3, 4):
            x = checkpoint(net.run, x, blocks[first : first + 3], use_reentrant=net.inner)
        return x

    for _ in range(2):
        x = checkpoint(part, x, use_reentrant=net.outer)
    return x


WAYS = (groups_twice, plain_then_checkpointed, checkpointed_then_plain, twice_in_one_checkpoint, nested_twice)
KINDS = [(outer, inner) for outer in (True, False) for inner in (True, False)]


def train(model, optimizer, rank=0, size=1):
    source = torch.Generator().manual_seed(1)
    for _ in range(3):
        x = torch.randn(ROWS, 4, generator=source, dtype=torch.float64).chunk(size)[rank].clone().requires_grad_()
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return model.state_dict()


def make(way, kinds):
    torch.manual_seed(0)
    return Net(way, kinds).double()


def sgd(parameters):
    return torch.optim.SGD(parameters, 0.5)


def differences(group, way, settings):
    """Return how far a model is from one process, for each kind of checkpoint."""
    warnings.simplefilter("ignore")  # of reentrant checkpoints
    found = []
    for kinds in KINDS:
        alone = make(way, kinds)
        expected = train(alone, sgd(alone.parameters()))
        zero = Zero(make(way, kinds), group, optimizer=sgd, **settings)
        state = train(zero, zero, group.rank, group.size)
        found.append(max(float((state[name] - value).abs().max()) for name, value in expected.items()))
    return found


@pytest.mark.parametrize(
    "settings",
    [
        {"stage": 1}, {"stage": 3}, pytest.param({"stage": 2}, marks=pytest.mark.long),
        pytest.param({"stage": 3, "free_after_forward": False}, marks=pytest.mark.long),
        pytest.param({"stage": 3, "prefetch": False}, marks=pytest.mark.long),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("way", WAYS)
def test_units_that_run_twice_under_checkpoints_train_as_in_one_process(way, settings):
    for found in run_groups(differences, 2, way, settings):
        assert len(found) == len(KINDS)
        assert max(found) < 1e-10
