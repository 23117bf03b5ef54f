"""Training in shards matches training in one process, and torch's fully_shard."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from models import batch, furthest, loss_of, make, share, train, trained_alone  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.device_mesh import DeviceMesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from worlds import run_groups  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402
from unisono.parallel import SyncBatchNorm, Zero  # noqa: E402

NAMES = ("mlp", "transformer", "conv")


def larger(*cases):
    """Return cases that only ``make stress`` runs: smaller ones of the same kind come first."""
    return [pytest.param(*case, marks=pytest.mark.long) for case in cases]


def momentum(shards):
    return torch.optim.SGD(shards, 0.1, momentum=0.9, weight_decay=1e-3)


def model_of(name, group, dtype=torch.float64):
    """Return a model whose batch norms see the batches of all ranks."""
    return SyncBatchNorm.convert(make(name, dtype), group)


def every_stage(group, dtype):
    """Return the difference of each stage from one process, for each model."""
    found = {}
    for name in NAMES:
        expected = trained_alone(name, dtype=dtype)
        for stage in (1, 2, 3):
            zero = Zero(model_of(name, group, dtype), group, optimizer=momentum, stage=stage)
            train(zero, name, rank=group.rank, size=group.size, optimizer=zero)
            found[name, stage] = furthest(zero.state_dict(), expected)
    return found


@pytest.mark.parametrize(
    ("size", "kind"),
    [
        (1, "comm"),
        (2, "comm"),
        (1, "gloo"),
        *larger((3, "comm"), (4, "comm"), (2, "gloo"), (2, "unisono")),
        pytest.param(3, "gloo", marks=pytest.mark.long),
    ],
)
def test_twenty_steps_of_every_stage_match_one_process(kind, size):
    for found in run_groups(every_stage, size, torch.float64, kind=kind):
        assert len(found) == 9
        assert max(found.values()) < 1e-10, found


@pytest.mark.slow
def test_in_float32_the_difference_from_one_process_is_only_rounding():
    for found in run_groups(every_stage, 3, torch.float32):
        assert max(found.values()) < 1e-5, found  # measured: 3e-7


def run_page(code):
    space = {}
    exec(code, space)
    return {name: tuple(value.shape) for name, value in space["state"].items()}


def test_the_python_code_of_the_page_runs():
    text = (Path(__file__).parents[2] / "docs" / "parallel" / "zero.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    for state in run_ranks(run_page, 3, code, init=False):
        assert state["7.weight"] == (64, 64)
        assert len(state) == 16


def in_hybrid(group, shards, stage):
    inner = group.split(group.rank // shards, key=group.rank)
    across = group.split(group.rank % shards, key=group.rank)
    found = {}
    for name in NAMES:
        zero = Zero(model_of(name, group), inner, replicate=across, optimizer=momentum, stage=stage)
        train(zero, name, rank=group.rank, size=group.size, optimizer=zero)
        found[name] = furthest(zero.state_dict(), trained_alone(name))
    return found


@pytest.mark.parametrize(
    ("size", "shards", "stage", "kind"),
    [
        (3, 1, 3, "comm"),
        (3, 3, 2, "comm"),
        *larger((4, 2, 3, "comm"), (4, 2, 2, "comm"), (4, 2, 1, "comm"), (4, 2, 3, "gloo")),
    ],
)
def test_hybrid_sharding_matches_one_process(size, shards, stage, kind):
    for found in run_groups(in_hybrid, size, shards, stage, kind=kind):
        assert max(found.values()) < 1e-10, found


def beside_fully_shard(name):
    rank, size = dist.get_rank(), dist.get_world_size()
    ours = Zero(model_of(name, None), optimizer=momentum)
    theirs = model_of(name, None)
    mesh = DeviceMesh.from_group(dist.group.WORLD, "cpu")
    for child in theirs.blocks if name == "transformer" else theirs:
        if list(child.parameters()):
            fully_shard(child, mesh=mesh)
    fully_shard(theirs, mesh=mesh)
    optimizer = momentum(theirs.parameters())
    furthest_apart = 0.0
    for step in range(20):
        inputs, targets = (share(part, rank, size) for part in batch(name, step))
        for model, stepper in ((ours, ours), (theirs, optimizer)):
            stepper.zero_grad()
            loss_of(model, inputs, targets).backward()
            stepper.step()
        state = theirs.state_dict()
        expected = {
            key: value.full_tensor() if hasattr(value, "full_tensor") else value for key, value in state.items()
        }
        furthest_apart = max(furthest_apart, furthest(ours.state_dict(), expected))
    return furthest_apart


@pytest.mark.parametrize(("name", "size"), [("mlp", 2), *larger(("transformer", 2), ("conv", 2), ("transformer", 3))])
def test_stage_3_matches_fully_shard_after_every_step(name, size):
    assert max(run_ranks(beside_fully_shard, size, name, backend="gloo")) < 1e-12


OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, 0.1),
    "adam": lambda parameters: torch.optim.Adam(parameters, 1e-3),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, 1e-3),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, 1e-3),
}


def with_optimizers(group):
    found = {}
    for name, make_optimizer in OPTIMIZERS.items():
        alone = make("mlp")
        train(alone, "mlp", 5, optimizer=make_optimizer(alone.parameters()))
        for stage in (2, 3):
            zero = Zero(make("mlp"), group, optimizer=make_optimizer, stage=stage)
            train(zero, "mlp", 5, rank=group.rank, size=group.size, optimizer=zero)
            found[name, stage] = furthest(zero.state_dict(), alone.state_dict())
    return found


def test_every_elementwise_optimiser_works():
    for found in run_groups(with_optimizers, 2):
        assert max(found.values()) < 1e-9, found


def word(name, parameter):
    return "matrix" if parameter.dim() == 2 else "vector"


def decaying(group):
    """Train with weight decay for matrices only."""
    alone, found = make("transformer"), {}

    def by_word(parameters):
        kinds = {"matrix": [], "vector": []}
        for parameter in parameters:
            kinds[parameter.label if hasattr(parameter, "label") else word("", parameter)].append(parameter)
        groups = [{"params": kinds["matrix"], "weight_decay": 0.5}, {"params": kinds["vector"]}]
        return torch.optim.SGD(groups, 0.1, momentum=0.9)

    plain = by_word(alone.parameters())
    train(alone, "transformer", 3, optimizer=plain)
    for stage in (1, 2, 3):
        zero = Zero(make("transformer"), group, optimizer=by_word, label=word, stage=stage)
        train(zero, "transformer", 3, group.rank, group.size, optimizer=zero)
        found[stage] = furthest(zero.state_dict(), alone.state_dict())
        theirs, ours = plain.state_dict()["param_groups"], zero.optimizer_state_dict()["param_groups"]
        assert [group["weight_decay"] for group in ours] == [group["weight_decay"] for group in theirs] == [0.5, 0]
        assert [len(group["params"]) for group in ours] == [len(group["params"]) for group in theirs]
    return found


def test_parameters_with_different_labels_can_have_different_settings():
    for found in run_groups(decaying, 3):
        assert max(found.values()) < 1e-10, found


def accumulating(group):
    """Train on batches in two halves; of every second batch, the first half without sync."""
    found = {}
    alone = make("mlp")
    train(alone, "mlp", 4)
    for stage in (1, 2, 3):
        zero = Zero(make("mlp"), group, optimizer=momentum, stage=stage)
        for step in range(4):
            zero.zero_grad()
            for half in (0, 1):
                rows = [share(part, half, 2) for part in batch("mlp", step)]
                inputs, targets = (share(part, group.rank, group.size) for part in rows)
                if half == 0 and step % 2 == 0:
                    with zero.no_sync():
                        (loss_of(zero, inputs, targets) / 2).backward()
                else:
                    (loss_of(zero, inputs, targets) / 2).backward()
            zero.step()
        found[stage] = furthest(zero.state_dict(), alone.state_dict())
    return found


@pytest.mark.parametrize("size", [2, 3])
def test_gradients_accumulate_over_passes_with_and_without_sync(size):
    for found in run_groups(accumulating, size):
        assert max(found.values()) < 1e-10, found


def clipping(group):
    alone = make("mlp")
    optimizer = momentum(alone.parameters())
    losses, found = [], {}
    for step in range(4):
        optimizer.zero_grad()
        loss_of(alone, *batch("mlp", step)).backward()
        losses.append(float(nn.utils.clip_grad_norm_(alone.parameters(), 0.1)))
        optimizer.step()
    for stage in (1, 2, 3):
        zero = Zero(make("mlp"), group, optimizer=momentum, stage=stage)
        for step in range(4):
            zero.zero_grad()
            loss_of(zero, *(share(part, group.rank, group.size) for part in batch("mlp", step))).backward()
            assert float(zero.clip_grad_norm(0.1)) == pytest.approx(losses[step], rel=1e-10)
            zero.step()
        found[stage] = furthest(zero.state_dict(), alone.state_dict())
    assert losses[0] > 0.1
    return found


def test_clipping_uses_the_norm_of_all_gradients_of_all_ranks():
    for found in run_groups(clipping, 3):
        assert max(found.values()) < 1e-10, found


class Checkpointed(nn.Module):
    """The transformer with blocks that are recomputed in the backward pass: separately or together."""

    def __init__(self, model, reentrant, together):
        super().__init__()
        self.model, self.reentrant, self.together = model, reentrant, together

    def forward(self, words):
        model = self.model
        x = model.word(words) + model.place.weight[: words.shape[1]]
        parts = [lambda x: _through(model.blocks, x)] if self.together else model.blocks
        for part in parts:
            x = checkpoint(part, x, use_reentrant=self.reentrant)
        return model.head(model.norm(x))


def _through(blocks, x):
    for block in blocks:
        x = block(x)
    return x


def checkpointed(group, stage):
    found = {}
    expected = trained_alone("transformer", 3)
    for reentrant in (False, True):
        for together in (False, True):
            model = make("transformer")
            model.blocks.append(make("transformer").blocks[0])
            alone = make("transformer")
            alone.blocks.append(make("transformer").blocks[0])
            train(alone, "transformer", 3)
            expected = {f"model.{name}": value for name, value in alone.state_dict().items()}
            zero = Zero(Checkpointed(model, reentrant, together), group, optimizer=momentum, stage=stage)
            train(zero, "transformer", 3, rank=group.rank, size=group.size, optimizer=zero)
            found[reentrant, together] = furthest(zero.state_dict(), expected)
    return found


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_activations_can_be_recomputed(stage):
    for found in run_groups(checkpointed, 2, stage):
        assert max(found.values()) < 1e-10, found
