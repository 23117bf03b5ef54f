"""A save is complete or absent, whatever interrupts it; a load never mixes two saves."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.errors import UnisonoError, UsageError  # noqa: E402
from unisono.parallel import Zero, save_folder  # noqa: E402


def make(group, value, stage=2):
    """Return a model whose parameters and optimiser state all have the value that identifies a save."""
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    for parameter in model.parameters():
        nn.init.constant_(parameter, value)
    zero = Zero(model, group, optimizer=lambda shards: torch.optim.SGD(shards, 0.5, momentum=0.9), stage=stage)
    for flat in zero.trained:
        zero.optimizer.state[flat.master]["momentum_buffer"] = torch.full_like(flat.master.data, value)
    return zero


def save(group, folder, value):
    make(group, value).save_shards(folder)


def loaded(folder):
    """Return the value that a folder loads, on one rank; raise its UsageError here."""
    value, problem = run_groups(try_to_load, 1, folder)[0]
    if problem:
        raise UsageError(problem)
    return value


def try_to_load(group, folder):
    try:
        return load(group, folder), ""
    except UsageError as error:
        return None, str(error)


def load(group, folder):
    zero = make(group, 0.0)
    zero.load_shards(folder)
    values = {value.item() for tensor in zero.state_dict().values() for value in tensor.flatten()}
    states = zero.optimizer_state_dict()["state"].values()
    values |= {value.item() for state in states for value in state["momentum_buffer"].flatten()}
    assert len(values) == 1, f"a mixture of {values}"
    return values.pop()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "shards"


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("before", "after"), [(3, 2), (2, 3), (1, 3)])
def test_a_different_number_of_ranks_can_save_into_the_same_folder(folder, before, after):
    run_groups(save, before, folder, 1.0)
    run_groups(save, after, folder, 2.0)
    assert run_groups(load, 2, folder) == [2.0, 2.0]
    assert names_in(folder) == ["save.json", *(f"shard-{rank}-of-{after}.pt" for rank in range(after))]


def test_a_file_of_another_save_is_not_loaded(folder):
    run_groups(save, 2, folder, 1.0)
    old = shutil.copy(folder / "shard-1-of-2.pt", folder / "old")
    run_groups(save, 2, folder, 2.0)
    os.replace(old, folder / "shard-1-of-2.pt")
    with pytest.raises(UsageError, match=r"shard-1-of-2\.pt is missing or belongs to another save"):
        loaded(folder)


# ---- a save that is interrupted ----------------------------------------------------------------------------------


class Interruption:
    """Lets a rank change a folder with ``count`` calls, and calls ``strike`` before or after the next one."""

    def __init__(self, count, strike, after):
        self.left, self.strike, self.after = count, strike, after

    def around(self, call):
        def interrupted(*arguments, **settings):
            self.left -= 1
            if self.left != -1:
                return call(*arguments, **settings)
            if self.after:
                call(*arguments, **settings)
            return self.strike()

        return interrupted

    def install(self, patch):
        patch.setattr(save_folder, "open", self.around(open), raising=False)
        patch.setattr(save_folder.torch, "save", self.around(torch.save))
        patch.setattr(os, "fsync", self.around(os.fsync))
        patch.setattr(os, "replace", self.around(os.replace))
        patch.setattr(Path, "unlink", self.around(Path.unlink))


def save_interrupted(group, folder, rank, count, strike, after):
    """Return the error message of the rank (empty without an error), and the number of calls that were left."""
    zero = make(group, 2.0)
    interruption = Interruption(count if group.rank == rank else 10**9, strike, after)
    with pytest.MonkeyPatch.context() as patch:
        interruption.install(patch)
        try:
            zero.save_shards(folder)
        except UnisonoError as error:
            return str(error), interruption.left
    return "", interruption.left


def no_space():
    raise OSError(28, "No space left on device")


def die():
    os._exit(9)


def prepared(tmp_path):
    """Return a folder with a complete save of three ranks, and the leftovers of an interrupted one."""
    folder = tmp_path / "first"
    run_groups(save, 3, folder, 1.0)
    (folder / f"shard-0-of-2.{'0' * 32}.part").write_bytes(b"left over")
    return folder


def copy(group, first, folder):
    if group.rank == 0:
        shutil.copytree(first, folder)
    group.all_gather_object("copied")


def failures(group, first, rank, after):
    """Fill the disk at each call that changes the folder in turn; return what loads, the error and the files."""
    found = []
    left = -1
    while left < 0:
        folder = first.parent / f"{rank}-{after}-{len(found)}"
        copy(group, first, folder)
        message, mine = save_interrupted(group, folder, rank, len(found), no_space, after)
        left = group.all_gather_object(mine)[rank]
        value, names = load(group, folder), names_in(folder)
        group.all_gather_object("listed")
        save(group, folder, 3.0)
        assert load(group, folder) == 3.0
        assert names_in(folder) == ["save.json", "shard-0-of-2.pt", "shard-1-of-2.pt"]
        found.append((value, message, names))
        group.all_gather_object("done")
    return found


@pytest.mark.campaign
@pytest.mark.parametrize("after", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_save_that_fails_on_one_rank_is_absent_or_complete(tmp_path, rank, after, record_property):
    """The disk is full at each call that changes the folder in turn, before the call or after it."""
    ranks = run_groups(failures, 2, prepared(tmp_path), rank, after)
    assert ranks[0] == ranks[1], "ranks raised different errors"
    assert len(ranks[0]) == (14 if rank == 0 else 6)
    for value, message, names in ranks[0]:
        if "nothing was saved" in message:
            assert value == 1.0
            assert f"rank {rank} reports: OSError: [Errno 28] No space left on device" in message
            assert not [name for name in names if name.endswith(".part")], "partial files were left behind"
        else:
            assert value == 2.0
            assert not message or "holds the new save, but a file could not be renamed" in message
    assert {value for value, _, _ in ranks[0]} == {1.0, 2.0}
    assert ranks[0][-1][1] == "", "the last save was not interrupted: all calls were tried"
    record_property("faults", len(ranks[0]) - 1)


def killed(tmp_path, rank, count, after):
    """Kill a rank during a save; return the value that loads."""
    folder = shutil.copytree(tmp_path / "first", tmp_path / f"{rank}-{count}-{after}")
    with pytest.raises(AssertionError, match=r"exit code 9|ended|PeerLost"):
        run_groups(save_interrupted, 2, folder, rank, count, die, after)
    value = loaded(folder)
    run_groups(save, 2, folder, 3.0)
    assert loaded(folder) == 3.0
    assert names_in(folder) == ["save.json", "shard-0-of-2.pt", "shard-1-of-2.pt"]
    return value


# Rank 0: 1 unlink, 4 to write, 4 to commit (the third replaces save.json), 1 to publish, 3 unlinks. Rank 1: 4 and 1.
COMMITS = 7


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("rank", "count", "after", "expected"),
    [
        (1, 1, False, 1.0), (1, 1, True, 1.0), (0, COMMITS, False, 1.0), (0, COMMITS, True, 2.0),
        (1, 4, False, 2.0), (0, 10, True, 2.0),
    ],
)  # fmt: skip
def test_after_a_rank_is_killed_during_a_save_the_previous_or_the_new_save_loads(
    tmp_path, rank, count, after, expected, record_property
):
    prepared(tmp_path)
    assert killed(tmp_path, rank, count, after) == expected
    record_property("faults", 1)


@pytest.mark.long
@pytest.mark.campaign
def test_a_rank_can_be_killed_at_any_point_of_a_save(tmp_path, record_property):
    prepared(tmp_path)
    faults = 0
    for after in (False, True):
        found = [killed(tmp_path, 0, count, after) for count in range(13)]
        assert found == [1.0] * (COMMITS + 1 - after) + [2.0] * (13 - COMMITS - 1 + after)
        others = [killed(tmp_path, 1, count, after) for count in range(5)]
        assert others == [1.0] * 4 + [2.0]
        faults += len(found) + len(others)
    record_property("faults", faults)


@pytest.mark.campaign
def test_an_interrupted_first_save_cannot_be_loaded(tmp_path, record_property):
    with pytest.raises(AssertionError):
        run_groups(save_interrupted, 2, tmp_path, 0, COMMITS - 2, die, False)
    with pytest.raises(UsageError, match=r"there are no shards in .*; a save was interrupted before it was complete"):
        loaded(tmp_path)
    record_property("faults", 1)


# ---- folders of earlier versions, and loads during a save --------------------------------------------------------


def forget_the_save(folder):
    """Turn a folder into one that an earlier version wrote."""
    (folder / "save.json").unlink()
    for path in folder.iterdir():
        contents = torch.load(path, weights_only=True)
        del contents["save"]
        torch.save(contents, path)


def test_a_folder_of_an_earlier_version_loads(folder):
    run_groups(save, 3, folder, 1.0)
    forget_the_save(folder)
    assert loaded(folder) == 1.0
    run_groups(save, 2, folder, 2.0)
    assert loaded(folder) == 2.0


def test_a_folder_of_an_earlier_version_with_inconsistent_files_is_rejected(folder):
    run_groups(save, 3, folder, 1.0)
    forget_the_save(folder)
    contents = torch.load(folder / "shard-1-of-3.pt", weights_only=True)
    contents["param_groups"][0]["lr"] = 0.25
    torch.save(contents, folder / "shard-1-of-3.pt")
    with pytest.raises(UsageError, match=r"file of rank 1 belongs to another save .* differ in 'param_groups'"):
        loaded(folder)
    shutil.copy(folder / "shard-0-of-3.pt", folder / "shard-0-of-2.pt")
    with pytest.raises(UsageError, match="expected one file for each of the ranks of one run"):
        loaded(folder)


def test_an_unreadable_manifest_or_shard_file_is_named(folder):
    run_groups(save, 2, folder, 1.0)
    whole = (folder / "shard-1-of-2.pt").read_bytes()
    (folder / "shard-1-of-2.pt").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match=r"shard-1-of-2\.pt cannot be read"):
        loaded(folder)
    (folder / "save.json").write_text("{")
    with pytest.raises(UsageError, match=r"save\.json cannot be read"):
        loaded(folder)


def load_during_a_save(group, folder, first):
    manifests = iter([first])
    real = save_folder.read_manifest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(save_folder, "read_manifest", lambda folder: next(manifests, None) or real(folder))
        return load(group, folder)


def test_a_load_during_a_save_reads_the_new_save(folder):
    run_groups(save, 2, folder, 1.0)
    first = save_folder.read_manifest(folder)
    run_groups(save, 3, folder, 2.0)
    assert run_groups(load_during_a_save, 1, folder, first) == [2.0]


def load_beside_another(group, folder, others):
    with pytest.raises(UsageError) as error:
        load(group, others if group.rank == 1 else folder)
    return str(error.value)


def test_ranks_that_find_different_saves_raise(folder, tmp_path):
    run_groups(save, 2, folder, 1.0)
    run_groups(save, 2, tmp_path / "other", 2.0)
    for message in run_groups(load_beside_another, 2, folder, tmp_path / "other"):
        assert "while it was being loaded" in message
