"""Units that run several times under both kinds of checkpoints train like one process in every stage of Zero."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

from block_models import Blocks, make, sgd, train, train_alone  # noqa: E402
from models import furthest  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.parallel import Zero  # noqa: E402


class Net(Blocks):
    """Blocks that the function ``pattern`` runs; ``kinds``: whether the outer and inner checkpoints are reentrant."""

    def __init__(self, pattern, kinds):
        super().__init__()
        self.pattern, (self.outer, self.inner) = pattern, kinds

    def forward(self, x):
        return self.pattern(self, x, list(self.blocks))

    def run_again(self, x, blocks):
        return checkpoint(self.run, x, blocks, use_reentrant=self.outer)


def groups_twice(net, x, blocks):
    """Run a checkpoint of some blocks twice: the second call is open when the backward pass of the first begins."""
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


PATTERNS = (groups_twice, plain_then_checkpointed, checkpointed_then_plain, twice_in_one_checkpoint, nested_twice)
KINDS = [(outer, inner) for outer in (True, False) for inner in (True, False)]


def differences(group, pattern, settings):
    """Return the largest difference from one process for each kind of checkpoint."""
    warnings.simplefilter("ignore")  # torch warns about reentrant checkpoints
    largest = []
    for kinds in KINDS:
        zero = Zero(make(Net, pattern, kinds), group, optimizer=sgd, **settings)
        state = train(zero, zero, group.rank, group.size)
        largest.append(furthest(state, train_alone(Net, pattern, kinds)))
    return largest


@pytest.mark.parametrize(
    "settings",
    [
        {"stage": 1}, {"stage": 3}, pytest.param({"stage": 2}, marks=pytest.mark.long),
        pytest.param({"stage": 3, "free_after_forward": False}, marks=pytest.mark.long),
        pytest.param({"stage": 3, "prefetch": False}, marks=pytest.mark.long),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("pattern", PATTERNS)
def test_units_that_run_twice_under_checkpoints_train_like_one_process(pattern, settings):
    for largest in run_groups(differences, 2, pattern, settings):
        assert len(largest) == len(KINDS)
        assert max(largest) < 1e-10
