"""Communicators have numbers on which all of their ranks agree, also if several threads split at once."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from unisono import spawn
from unisono.bootstrap.job_config import JobConfig, job_config
from unisono.bootstrap.job_resources import SPARE_NUMBER, Numbers, SharedCourier, random_number


def test_a_number_is_claimed_once():
    numbers = Numbers()
    first = numbers.next
    assert first > SPARE_NUMBER
    assert numbers.claim(first)
    assert not numbers.claim(first)
    assert numbers.claim(first + 5)
    assert numbers.next == first + 6


def test_random_numbers_differ_from_all_that_ranks_agree_on_and_leave_one_for_a_duplicate():
    first, second = random_number("0" * 32), random_number("f" * 32)
    assert Numbers().next < 1 << 62 <= first < second + SPARE_NUMBER < 1 << 63
    assert random_number("0" * 14 + "1") == first + SPARE_NUMBER + 1


class ClosedOnce:
    closed = 0

    def close(self):
        self.closed += 1


def test_a_courier_is_closed_with_the_last_of_its_users():
    engine, first, second = ClosedOnce(), Numbers(), Numbers()  # any objects are users
    courier = SharedCourier(engine)
    assert courier.add_user(first)
    assert courier.add_user(second)
    assert courier.add_user(second)
    courier.remove_user(second)
    courier.remove_user(second)
    assert engine.closed == 0
    courier.remove_user(first)
    courier.remove_user(first)
    assert engine.closed == 1
    assert not courier.add_user(second)
    assert engine.closed == 1


def test_a_user_that_is_freed_does_not_keep_a_courier_open():
    engine, user = ClosedOnce(), Numbers()
    courier = SharedCourier(engine)
    courier.add_user(user)
    courier.add_user(Numbers())
    courier.remove_user(user)
    assert engine.closed == 1


def numbers_of_parts(comm):
    """Return the numbers of communicators in the order in which they are made."""
    parts = [comm, comm.duplicate(), comm.duplicate(), comm.split(comm.rank % 2)]
    parts.append(parts[3].split(0))
    parts.append(comm.split(0 if comm.rank == 0 else None))
    parts.append(comm.duplicate())
    return [None if part is None else part._link.number for part in parts]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_all_ranks_of_a_communicator_have_its_number_and_no_other_one_has_it(size):
    numbers = spawn(numbers_of_parts, size)
    for rank in numbers:
        own = [number for number in rank if number is not None]
        assert len(set(own)) == len(own)
        assert [rank[index] for index in (0, 1, 2, 6)] == [numbers[0][index] for index in (0, 1, 2, 6)]
    for rank, own in enumerate(numbers):
        assert own[3:5] == numbers[rank % 2][3:5]


def split_in_two_threads(comm):
    """Split two communicators at the same time, many times; return the numbers of all parts."""
    pair = [comm, comm.duplicate()]
    parts = [[], []]

    def split(index):
        for _ in range(20):
            parts[index].append(pair[index].duplicate())

    threads = [threading.Thread(target=split, args=[index]) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for part in parts[0] + parts[1]:
        x = np.ones(1)
        part.all_reduce(x)
        assert x[0] == comm.size
    return [[part._link.number for part in parts[index]] for index in range(2)]


def test_threads_that_split_at_once_get_different_numbers():
    numbers = spawn(split_in_two_threads, 3)
    assert numbers[0] == numbers[1] == numbers[2]
    both = numbers[0][0] + numbers[0][1]
    assert len(set(both)) == len(both)


def cores(*counts):
    return [[{"cores": list(range(count))} for _ in range(ranks)] for count, ranks in counts]


@pytest.mark.parametrize(
    ("hosts", "oversubscribed", "spare"),
    [
        (cores((4, 4)), False, False),
        (cores((8, 4)), False, True),
        (cores((3, 4)), True, False),
        (cores((8, 4), (4, 4)), False, False),
        (cores((8, 4), (8, 2)), False, True),
        (cores((2, 1), (1, 2)), True, False),
    ],
)
def test_the_host_with_the_fewest_cores_for_each_rank_determines_the_configuration(hosts, oversubscribed, spare):
    config = JobConfig(**job_config(hosts, 1 << 20, {}))
    assert (config.oversubscribed, config.spare_cores) == (oversubscribed, spare)
    assert config.staging_bytes == 1 << 20
