from __future__ import annotations

from collections import Counter

from stories import call, group, op, rank_call, ring_of_three, wait
from unisono.tracing.waiting import blames, paces, waited_ns


def by_pair(found):
    total: Counter[tuple[int, int, str]] = Counter()
    for blame in found:
        total[blame.waiter, blame.culprit, blame.how] += blame.ns
    return dict(total)


def test_a_chain_of_waits_is_caused_by_its_first_rank():
    """Rank 0 waits for 2, which waits for 1, which entered 100 late and then took 10."""
    ring = group(3, ring_of_three(late=1))
    assert waited_ns(ring) == {(0, 2): 120, (2, 1): 110}
    assert by_pair(blames(ring)) == {
        (0, 1, "late"): 100, (0, 1, "slow"): 10, (0, 2, "slow"): 10, (2, 1, "late"): 100, (2, 1, "slow"): 10,
    }  # fmt: skip


def test_no_rank_is_the_cause_of_the_time_until_a_message_is_noticed():
    sent = op(0, "send", 0, 10, to=[1])
    got = op(1, "receive", 50, 60, wait(1, 0, 0, 50), sources=[0])
    assert by_pair(blames(group(2, call(rank_call(0, 0, 10, sent), rank_call(1, 0, 60, got))))) == {
        (1, 0, "slow"): 10
    }


def test_a_rank_that_is_between_calls_is_late():
    before = call(rank_call(0, 0, 1, op(0, "copy", 0, 1)), rank_call(1, 0, 30, op(1, "copy", 0, 30)), number=1)
    got = op(0, "receive", 80, 90, wait(0, 1, 10, 80), sources=[1])
    after = call(rank_call(0, 10, 90, got), rank_call(1, 70, 80, op(1, "send", 70, 80, to=[0])), number=2)
    # 10 to 30: still busy with the call before; 30 to 70: between calls; 70 to 80: sending.
    assert by_pair(blames(group(2, before, after))) == {(0, 1, "slow"): 30, (0, 1, "late"): 40}


def test_waits_for_room_have_causes():
    reader = rank_call(1, 50, 70, op(1, "receive", 60, 70, sources=[0]))
    second = op(0, "send", 70, 80, wait(0, 1, 10, 70, "room"), to=[1])
    assert by_pair(blames(group(2, call(rank_call(0, 0, 80, second), reader)))) == {
        (0, 1, "late"): 40, (0, 1, "slow"): 20,
    }  # fmt: skip


def test_a_rank_without_a_trace_is_the_cause_of_all_waits_for_it():
    got = op(0, "receive", 80, 90, wait(0, 1, 10, 80), sources=[1])
    assert by_pair(blames(group(2, call(rank_call(0, 0, 90, got)), missing=[1]))) == {(0, 1, "late"): 70}


def test_ranks_that_wait_for_each_other_are_analysed_without_a_cycle():
    first = op(0, "reduce", 50, 60, wait(0, 1, 0, 50), sources=[1])
    second = op(1, "reduce", 50, 60, wait(1, 0, 0, 50), sources=[0])
    found = by_pair(blames(group(2, call(rank_call(0, 0, 60, first), rank_call(1, 0, 60, second)))))
    assert found == {(0, 1, "slow"): 50, (1, 0, "slow"): 50}


def test_the_pace_compares_ops_of_equal_kind_and_size():
    calls = []
    for rank, factor in enumerate((1, 1, 3)):
        ops = [op(rank, "send", 0, 100 * factor, to=[0]), op(rank, "copy", 400, 400 + 10 * factor, nbytes=10)]
        calls.append(rank_call(rank, 0, 500, *ops))
    found = paces(group(3, call(*calls)))
    assert found[2] == 3
    assert found[0] == found[1] < 1.01


def test_a_root_with_unique_ops_has_the_same_pace_as_the_others():
    root = rank_call(0, 0, 500, op(0, "send", 0, 500, to=[1, 2]))
    others = [rank_call(rank, 0, 510, op(rank, "receive", 500, 510, sources=[0])) for rank in (1, 2)]
    assert paces(group(3, call(root, *others)))[0] == 1
