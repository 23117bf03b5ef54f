"""The plan cache has one key and a limit, drops the least recently used plan, and tells the engine."""

from __future__ import annotations

import numpy as np

import unisono
from unisono import collectives
from unisono.comm.call_request import CallRequest
from unisono.comm.plan_cache import LeastRecentlyUsed, PlanCache
from unisono.compiler import Lengths


def test_the_least_recently_used_value_is_dropped():
    kept = LeastRecentlyUsed(2)
    assert kept.add("a", 1) is None
    assert kept.add("b", 2) is None
    assert kept.get("a") == 1  # now b is the oldest
    assert kept.add("c", 3) == 2
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == (1, None, 3)
    assert len(kept) == 2


def request_of(count, **more):
    return CallRequest(collectives.all_reduce, "sum", dtype="float32", lengths=Lengths((count,), (count,)), **more)


def test_equal_requests_are_one_key_and_schedules_are_compared_by_identity():
    schedule, other = (unisono.find("ring").schedule(2) for _ in range(2))
    keys = {request_of(4).as_key(), request_of(4).as_key(), request_of(5).as_key()}
    assert len(keys) == 2
    keys = {request_of(4, algorithm=each).as_key() for each in (schedule, schedule, other, "ring", None)}
    assert len(keys) == 4


class Plan:
    def __init__(self, number):
        self.number = number


def test_a_dropped_plan_is_forgotten_and_its_record_kept_while_a_recording_runs():
    forgotten = []
    cache = PlanCache(lambda plan: forgotten.append(plan.number), most_plans=2)
    for number in range(3):
        cache.add(request_of(number), Plan(number), f"record {number}")
    assert forgotten == [0]
    assert cache.records() == {1: "record 1", 2: "record 2"}
    cache.begin_recording()
    cache.add(request_of(3), Plan(3), "record 3")
    cache.end_recording()
    assert cache.records() == {1: "record 1", 2: "record 2", 3: "record 3"}
    assert cache.records() == {2: "record 2", 3: "record 3"}
    assert len(cache) == 2


def job_with_a_small_cache(comm):
    """Make more kinds of calls than the cache holds, each twice: the second call takes the fast path."""
    comm.dispatcher.cache = PlanCache(comm.dispatcher.link.endpoint.forget_plan, most_plans=4)
    wrong = 0
    for _ in range(3):
        for count in range(1, 11):
            for async_op in (False, True, True):
                x = np.full(count, 1.0 + comm.rank)
                work = comm.all_reduce(x, async_op=async_op)
                if work is not None:
                    work.wait()
                wrong += int((x != 3.0).sum())
    return wrong, len(comm.dispatcher.cache)


def test_calls_are_correct_when_plans_are_dropped_and_created_again():
    assert unisono.spawn(job_with_a_small_cache, 2, timeout=60) == [(0, 4)] * 2
