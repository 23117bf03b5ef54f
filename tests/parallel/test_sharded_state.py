"""A sharded model can be saved and loaded as a whole for one process, and in shards for any number of ranks."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from models import batch, furthest, loss_of, make, share, train  # noqa: E402
from torch import nn  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.errors import UsageError  # noqa: E402
from unisono.parallel import Zero  # noqa: E402


def adamw(shards):
    return torch.optim.AdamW(shards, 1e-2)


def steps(model, optimizer, numbers, rank=0, size=1):
    for step in numbers:
        inputs, targets = (share(part, rank, size) for part in batch("mlp", step))
        optimizer.zero_grad()
        loss_of(model, inputs, targets).backward()
        optimizer.step()


def trained_for(count):
    model = make("mlp")
    optimizer = adamw(model.parameters())
    steps(model, optimizer, range(count))
    return model, optimizer


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "shards"


def to_one_process(group, stage):
    zero = Zero(make("mlp"), group, optimizer=adamw, stage=stage)
    steps(zero, zero, range(3), group.rank, group.size)
    model = make("mlp")
    optimizer = torch.optim.AdamW(model.parameters(), 5.0)  # the state overwrites the learning rate
    model.load_state_dict(zero.state_dict())
    optimizer.load_state_dict(zero.optimizer_state_dict())
    steps(model, optimizer, range(3, 6))
    return furthest(model.state_dict(), trained_for(6)[0].state_dict())


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_one_process_can_resume_the_training_of_several_ranks(stage):
    assert max(run_groups(to_one_process, 3, stage)) < 1e-9


def from_one_process(group, stage):
    model, optimizer = trained_for(3)
    zero = Zero(make("mlp"), group, optimizer=lambda shards: torch.optim.AdamW(shards, 5.0), stage=stage)
    zero.load_state_dict(model.state_dict())
    zero.load_optimizer_state_dict(optimizer.state_dict())
    steps(zero, zero, range(3, 6), group.rank, group.size)
    return furthest(zero.state_dict(), trained_for(6)[0].state_dict())


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_several_ranks_can_resume_the_training_of_one_process(stage):
    assert max(run_groups(from_one_process, 3, stage)) < 1e-9


def save(group, folder, stage, settings):
    zero = Zero(make("mlp"), group, optimizer=adamw, stage=stage, **settings)
    steps(zero, zero, range(3), group.rank, group.size)
    zero.save_shards(folder)


def load_and_resume(group, folder, stage, settings):
    model = make("mlp")
    nn.init.zeros_(model[0].weight)
    zero = Zero(model, group, optimizer=lambda shards: torch.optim.AdamW(shards, 5.0), stage=stage, **settings)
    zero.load_shards(folder)
    steps(zero, zero, range(3, 6), group.rank, group.size)
    return furthest(zero.state_dict(), trained_for(6)[0].state_dict())


ONE_UNIT = {"units": lambda name, module: False}


@pytest.mark.parametrize(
    ("savers", "save_stage", "save_settings", "loaders", "load_stage", "load_settings"),
    [
        (3, 3, {}, 3, 3, {}),
        (3, 3, {}, 2, 3, {}),
        (2, 3, {}, 3, 3, {}),
        (1, 2, {}, 4, 3, {}),
        (4, 3, {}, 1, 1, {}),
        (2, 1, {}, 2, 2, {}),
        (3, 3, {}, 2, 3, ONE_UNIT),
        (2, 2, ONE_UNIT, 3, 3, {}),
    ],
)
def test_shards_can_be_loaded_with_different_ranks_stages_and_units(
    folder, savers, save_stage, save_settings, loaders, load_stage, load_settings
):
    run_groups(save, savers, folder, save_stage, save_settings)
    assert len(list(folder.glob("shard-*.pt"))) == len(list(folder.iterdir())) - 1 == savers  # and save.json
    assert max(run_groups(load_and_resume, loaders, folder, load_stage, load_settings)) < 1e-9


def file_sizes(group, folder):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(100, 100), nn.Linear(100, 100))
    zero = Zero(model, group, optimizer=adamw, stage=2)
    zero.save_shards(folder)


def test_a_file_holds_only_one_shard(folder):
    """In stage 2 the shard is a view of a longer vector, and torch.save would write the whole vector."""
    run_groups(file_sizes, 2, folder)
    for path in folder.iterdir():
        assert path.stat().st_size < 20_200 * 4 / 2 + 8_000


def save_in_hybrid(group, folder):
    inner, across = group.split(group.rank // 2), group.split(group.rank % 2)
    zero = Zero(make("mlp"), inner, replicate=across, optimizer=adamw)
    steps(zero, zero, range(3), group.rank, group.size)
    zero.save_shards(folder)
    return furthest(zero.state_dict(), trained_for(3)[0].state_dict())


def test_only_one_of_several_replicas_writes(folder):
    assert max(run_groups(save_in_hybrid, 4, folder)) < 1e-9
    assert sorted(path.name for path in folder.iterdir()) == ["save.json", "shard-0-of-2.pt", "shard-1-of-2.pt"]
    assert max(run_groups(load_and_resume, 1, folder, 3, {})) < 1e-9


def test_missing_shards_and_shards_of_a_different_model_are_named(folder):
    run_groups(save, 2, folder, 3, {})
    error = run_groups(load_into_another_model, 1, folder)[0]
    assert "'2.bias', expected shape [14], found shape [13]" in error
    (folder / "shard-0-of-2.pt").unlink()
    assert "has shard-1-of-2.pt; expected one file for each" in run_groups(load_incomplete, 1, folder)[0]
    assert "no shards" in run_groups(load_incomplete, 1, folder / "nothing")[0]


def load_into_another_model(group, folder):
    other = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 14), nn.Tanh(), nn.Linear(14, 5)).double()
    with pytest.raises(UsageError) as error:
        Zero(other, group, optimizer=adamw).load_shards(folder)
    return str(error.value)


def load_incomplete(group, folder):
    with pytest.raises(UsageError) as error:
        Zero(make("mlp"), group, optimizer=adamw).load_shards(folder)
    return str(error.value)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(5, 4)
        self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.word.weight


def keys_of(group, mixed):
    torch.manual_seed(0)
    plain = Tied()
    expected = {name: value.clone() for name, value in plain.state_dict().items()}
    zero = Zero(plain, group, optimizer=adamw, mixed_precision=mixed)
    found = zero.state_dict()
    assert list(found) == list(expected)
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert all(found[name].dtype == expected[name].dtype for name in expected)
    with pytest.raises(UsageError, match=r"missing keys: \['word.weight'\]"):
        zero.load_state_dict({name: value for name, value in found.items() if name != "word.weight"})
    with pytest.raises(UsageError, match=r"blocks.0.bias has the shape \(3,\); expected \(4,\)"):
        zero.load_state_dict({**found, "blocks.0.bias": torch.zeros(3)})
    zero.load_state_dict({"blocks.0.bias": torch.ones(4), "norm.running_mean": torch.ones(4)}, strict=False)
    changed = zero.state_dict()
    return [name for name in expected if not torch.equal(changed[name], expected[name])]


@pytest.mark.parametrize("mixed", [None, torch.bfloat16], ids=["float32", "mixed"])
def test_the_state_has_the_keys_and_values_of_the_unwrapped_module(mixed):
    assert run_groups(keys_of, 3, mixed) == [["blocks.0.bias", "norm.running_mean"]] * 3


def parameters_shown(group):
    model = make("mlp")
    expected = [parameter.detach().clone() for parameter in model.parameters()]
    zero = Zero(model, group, optimizer=adamw)
    assert all(bool(parameter.isnan().all()) for parameter in zero.parameters())
    with zero.whole_parameters():
        assert all(torch.equal(one, two) for one, two in zip(zero.parameters(), expected, strict=True))
        if group.rank == 0:  # on one rank only: this sends nothing
            inputs, _ = batch("mlp", 0)
            assert torch.equal(zero.module(inputs), make("mlp")(inputs))
    assert all(bool(parameter.isnan().all()) for parameter in zero.parameters())
    assert [parameter.shape for parameter in zero.parameters()] == [one.shape for one in expected]
    return True


def test_parameters_have_their_values_inside_the_block_and_nan_outside():
    assert run_groups(parameters_shown, 2) == [True, True]


def schedule(group):
    zero = Zero(make("mlp"), group, optimizer=adamw)
    scheduler = torch.optim.lr_scheduler.StepLR(zero.optimizer, 1, 0.5)
    train(zero, "mlp", 1, group.rank, group.size, optimizer=zero)
    scheduler.step()
    return zero.optimizer_state_dict()["param_groups"][0]["lr"]


def test_a_torch_scheduler_changes_the_learning_rate():
    assert run_groups(schedule, 1) == [0.005]
