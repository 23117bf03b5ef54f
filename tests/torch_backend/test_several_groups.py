"""Several groups can be used together: of some ranks, in any order, from several threads, and in succession."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402

SIZES = [2, 4]


def sum_in(group, value):
    tensor = torch.tensor([float(value)])
    dist.all_reduce(tensor, group=group)
    return tensor.item()


def overlapping_groups():
    """Create groups that share ranks, and use them in a different order."""
    members = [[0, 1], [3, 1], [2], [0, 2, 3], [1, 2]]
    groups = [dist.new_group(ranks) for ranks in members]
    rank = dist.get_rank()
    found = {}
    for number in (3, 1, 4, 0, 2):
        if rank in members[number]:
            found[number] = sum_in(groups[number], 10**rank)
    for group in groups[::-1]:
        if group is not dist.GroupMember.NON_GROUP_MEMBER:
            dist.destroy_process_group(group)
    return found, sum_in(None, 1)


def test_groups_that_share_ranks_can_be_used_in_any_order():
    assert run_ranks(overlapping_groups, 4) == [
        ({0: 11, 3: 1101}, 4),
        ({0: 11, 1: 1010, 4: 110}, 4),
        ({2: 100, 3: 1101, 4: 110}, 4),
        ({1: 1010, 3: 1101}, 4),
    ]


def groups_of_members_only():
    """Create only the groups of this rank; the groups of different ranks do not wait for each other."""
    rank = dist.get_rank()
    pair = [0, 1] if rank < 2 else [2, 3]
    group = dist.new_group(pair, use_local_synchronization=True)
    total = sum_in(group, rank)
    if rank in (1, 2):
        total += 100 * sum_in(dist.new_group([1, 2], use_local_synchronization=True), rank)
    return total


def test_a_group_can_be_created_by_its_members_alone():
    assert run_ranks(groups_of_members_only, 4) == [1, 301, 305, 5]


def subgroups():
    mine, all_of_them = dist.new_subgroups(group_size=2)
    other, _ = dist.new_subgroups_by_enumeration([[0, 3], [2, 1]])
    return len(all_of_them), sum_in(mine, 10 ** dist.get_rank()), sum_in(other, 10 ** dist.get_rank())


def test_subgroups_sum_over_their_members():
    assert run_ranks(subgroups, 4) == [(2, 11, 1001), (2, 11, 110), (2, 1100, 110), (2, 1100, 1001)]


def objects():
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = {"rank": rank, "words": ["a"] * (1 + 100 * rank)}
    gathered = [None] * size
    dist.all_gather_object(gathered, mine)
    assert gathered[rank] == mine
    at_root = [None] * size if rank == 1 else None
    dist.gather_object(mine, at_root, dst=1)
    assert at_root == (gathered if rank == 1 else None)
    from_root = [f"from {rank}", rank]
    dist.broadcast_object_list(from_root, src=1)
    handed = [None]
    dist.scatter_object_list(handed, list(range(size)) if rank == 1 else None, src=1)
    if rank == 0:
        dist.send_object_list([mine, "to the last"], dst=size - 1)
    if rank == size - 1:
        received = [None, None]
        dist.recv_object_list(received, src=0)
        assert received == [gathered[0], "to the last"]
    return [entry["rank"] for entry in gathered], [len(entry["words"]) for entry in gathered], from_root, handed


@pytest.mark.parametrize("size", SIZES)
def test_objects_of_any_size_can_be_exchanged(size):
    found = run_ranks(objects, size)
    assert found == [
        (list(range(size)), [1 + 100 * rank for rank in range(size)], ["from 1", 1], [rank]) for rank in range(size)
    ]


def threads_with_groups(count):
    """Let every thread use its own group; the threads start in a different order on each rank."""
    groups = [dist.new_group() for _ in range(count)]
    found = [[] for _ in groups]
    failures = []

    def work(number):
        try:
            for step in range(30):
                tensor = torch.full((1000,), float(step + number))
                handle = dist.all_reduce(tensor, group=groups[number], async_op=step % 2 == 0)
                if handle is not None:
                    handle.wait()
                found[number].append(tensor.sum().item())
                dist.barrier(group=groups[number])
        except Exception as error:
            failures.append(repr(error))

    order = list(range(count)) if dist.get_rank() % 2 else list(range(count))[::-1]
    threads = [threading.Thread(target=work, args=(number,)) for number in order]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    return found


@pytest.mark.parametrize("size", SIZES)
def test_every_thread_can_have_its_own_group(size):
    for found in run_ranks(threads_with_groups, size, 3):
        assert found == [[1000.0 * size * (step + number) for step in range(30)] for number in range(3)]


def create_and_destroy(folder):
    rank, size = dist.get_rank(), dist.get_world_size()
    sums = [sum_in(None, 1)]
    for time in range(3):
        dist.destroy_process_group()
        assert not dist.is_initialized()
        dist.init_process_group(
            "unisono", init_method=f"file://{folder}/{time}", rank=rank, world_size=size,
            timeout=timedelta(seconds=20),
        )  # fmt: skip
        sums.append(sum_in(None, time))
    return sums


@pytest.mark.parametrize("size", SIZES)
def test_a_group_can_be_created_again_after_it_was_destroyed(tmp_path, size):
    assert run_ranks(create_and_destroy, size, str(tmp_path)) == [[size, 0, size, 2 * size]] * size


def by_environment():
    dist.init_process_group("unisono", timeout=timedelta(seconds=20))  # as under torchrun, with a TCPStore
    return sum_in(None, dist.get_rank())


@pytest.mark.parametrize("size", SIZES)
def test_ranks_find_each_other_through_environment_variables(size):
    assert run_ranks(by_environment, size, init=False) == [sum(range(size))] * size
