"""A program can exit at any point, and a group leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fault_ranks import Rank, run

torch = pytest.importorskip("torch")
dist = torch.distributed

pytestmark = pytest.mark.usefixtures("fork_server")


def exit_after_a_call(rank: Rank, how: str) -> str:
    rank.join()
    x = torch.ones(8)
    if how == "blocking":
        dist.all_reduce(x)
    elif how == "async":
        dist.all_reduce(x, async_op=True).wait()
    elif how == "future":
        dist.all_reduce(x, async_op=True).get_future().wait()
    else:
        net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
        net(x).sum().backward()
    if rank.rank == 1:
        time.sleep(0.3)  # the exit of the first rank must not disturb the last
    return "done"


@pytest.mark.parametrize("how", ["blocking", "async", "future", "ddp"])
def test_a_program_can_exit_without_destroying_the_group(tmp_path, how):
    for outcome in run(tmp_path, exit_after_a_call, 2, how):
        assert (outcome.code, outcome.value) == (0, "done"), outcome.output
        assert "Traceback" not in outcome.output
        assert "Fatal" not in outcome.output


def exit_during_a_call(rank: Rank, how: str) -> str:
    """Exit after rank 0 has started a call that rank 1 never makes."""
    rank.join()
    dist.barrier()
    if rank.rank == 1:
        time.sleep(0.5)
        return "done"
    x = torch.ones(100_000)
    work = dist.all_reduce(x, async_op=True)
    if how == "future":
        future = work.get_future()
        future.then(lambda done: done.value())
        return "done"
    if how == "call in a callback":
        work.get_future().then(lambda done: dist.all_reduce(done.value()[0]))
    if how == "waiting thread":
        threading.Thread(target=work.wait, daemon=True).start()
        time.sleep(0.1)
    return "done"


@pytest.mark.parametrize("how", ["work", "future", "call in a callback", "waiting thread"])
def test_a_program_can_exit_with_calls_that_never_complete(tmp_path, how):
    for outcome in run(tmp_path, exit_during_a_call, 2, how):
        assert (outcome.code, outcome.value) == (0, "done"), f"{outcome.code} {outcome.output}"
        assert "Fatal" not in outcome.output


def exit_while_the_other_waits(rank: Rank) -> None:
    rank.join()
    dist.barrier()
    if rank.rank == 0:
        dist.all_reduce(torch.ones(8))


def test_waiting_for_a_rank_that_has_exited_raises(tmp_path):
    waiting, ended = run(tmp_path, exit_while_the_other_waits)
    waiting.check_raised("PeerLost", "rank 1")
    assert ended.code == 0, ended.output


def drop_works(rank: Rank) -> str:
    """Drop all works; their calls still complete, at the latest when the group is destroyed."""
    rank.join()
    x = [torch.ones(50_000) for _ in range(20)]
    for one in x:
        dist.all_reduce(one, async_op=True)
    dist.destroy_process_group()
    assert all(bool((one == 2).all()) for one in x)
    return "done"


def test_destroying_a_group_completes_pending_calls(tmp_path):
    for outcome in run(tmp_path, drop_works):
        assert outcome.value == "done", outcome.output


# ---- repeated groups ---------------------------------------------------------------------------------------------


def resources() -> dict[str, int]:
    """Count the resources of this process."""
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "maps": len(Path("/proc/self/maps").read_text().splitlines()),
        "memory shared": Path("/proc/self/maps").read_text().count("unisono"),
    }


def settled(before: dict[str, int] | None = None) -> dict[str, int]:
    """Count the resources as soon as they are back to ``before``, or after a while: threads need a moment to exit."""
    import gc

    gc.collect()
    for _ in range(60):
        now = resources()
        if before is not None and all(now[what] <= before[what] for what in now):
            break
        time.sleep(0.1)
    return now


def cycle(rank: Rank, times: int, what: str) -> None:
    for number in range(times):
        if what == "init":
            rank.join(store=f"store-{number}")
            group = None
        else:
            group = dist.new_group()
        x = torch.ones(8)
        dist.all_reduce(x, group=group)
        dist.all_reduce(x, group=group, async_op=True).get_future().then(lambda done: done.value()).wait()
        assert torch.equal(x, torch.full((8,), 4.0))
        dist.destroy_process_group(group)


def create_and_destroy(rank: Rank, what: str, times: int) -> list[dict[str, int]]:
    if what == "new_group":
        rank.join()
    cycle(rank, 20, what)
    before = settled()
    cycle(rank, times, what)
    after = settled(before)
    if what == "new_group":
        dist.destroy_process_group()
    return [before, after]


@pytest.mark.slow
@pytest.mark.parametrize("times", [50, pytest.param(200, marks=pytest.mark.long)])
@pytest.mark.parametrize("what", [pytest.param("init", marks=pytest.mark.long), "new_group"])
def test_many_groups_leave_nothing_behind(tmp_path, what, times):
    for outcome in run(tmp_path, create_and_destroy, 2, what, times):
        assert outcome.code == 0, outcome.output
        before, after = outcome.value
        for name, count in after.items():
            # torch's allocator may use a few more maps; a leak would be one of each kind per group.
            assert count <= before[name] + (20 if name == "maps" else 0), outcome.value


# ---- children ----------------------------------------------------------------------------------------------------


class Numbers(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 16

    def __getitem__(self, place: int) -> torch.Tensor:
        return torch.full((8,), float(place))


def train_with_data_loader(rank: Rank) -> float:
    rank.join()
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1, bias=False))
    sampler = torch.utils.data.DistributedSampler(Numbers(), shuffle=False)
    loader = torch.utils.data.DataLoader(
        Numbers(), batch_size=2, num_workers=2, sampler=sampler, multiprocessing_context="fork"
    )
    for _ in range(2):  # workers exit and new ones are forked while the group exists
        for batch in loader:
            net(batch).mean().backward()
    dist.destroy_process_group()
    return float(net.module.weight.grad[0, 0])


def test_training_with_forked_workers_works_and_the_workers_exit(tmp_path):
    for outcome in run(tmp_path, train_with_data_loader):
        assert outcome.code == 0, outcome.output
        assert outcome.value == pytest.approx(2 * 4 * 7.5)  # two epochs of four batches, of 7.5 on average


def fork_in_the_middle(rank: Rank, how: str) -> int:
    rank.join()
    x = torch.ones(8)
    work = dist.all_reduce(torch.ones(100_000), async_op=True)
    work.get_future()
    child = os.fork()
    if child == 0:
        if how == "os._exit":
            os._exit(0)
        return 0  # through the shutdown of the interpreter, with the parent's group
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    work.wait()
    dist.all_reduce(x)
    assert torch.equal(x, torch.full((8,), 2.0))
    dist.destroy_process_group()
    return 7 if code == 0 else code


@pytest.mark.parametrize("how", ["os._exit", "interpreter shutdown"])
def test_a_forked_child_can_exit_without_disturbing_the_group(tmp_path, how):
    for outcome in run(tmp_path, fork_in_the_middle, 2, how):
        assert (outcome.code, outcome.value) == (0, 7), outcome.output


# ---- Ctrl-C ------------------------------------------------------------------------------------------------------

PROGRAM = """
import os, sys
import torch, torch.distributed as dist
dist.init_process_group("unisono")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
for step in range(10**9):
    net(torch.ones(4, 64)).sum().backward()
    if step == 5:
        open(f"{sys.argv[1]}/running-{dist.get_rank()}-{os.getpid()}", "w").close()
"""


@pytest.mark.slow
def test_ctrl_c_ends_torchrun_and_all_ranks_and_leaves_nothing(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "temporary").mkdir()
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    with (tmp_path / "output").open("wb") as output:
        torchrun = subprocess.Popen(
            [*command, "program.py", str(tmp_path)], cwd=tmp_path, stdout=output, stderr=output, process_group=0,
            env={**os.environ, "TMPDIR": str(tmp_path / "temporary"), "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 90
        while len(list(tmp_path.glob("running-*"))) < 2:
            assert torchrun.poll() is None, (tmp_path / "output").read_text()
            assert time.monotonic() < deadline, (tmp_path / "output").read_text()
            time.sleep(0.05)
        pids = [int(path.name.split("-")[2]) for path in tmp_path.glob("running-*")]
        os.killpg(torchrun.pid, signal.SIGINT)  # as a terminal does
        pressed_at = time.monotonic()
        torchrun.wait(30)
        assert time.monotonic() - pressed_at < 15
    finally:
        torchrun.kill()
        torchrun.wait()
    assert torchrun.returncode != 0
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
    assert list((tmp_path / "temporary").glob("unisono*")) == []
