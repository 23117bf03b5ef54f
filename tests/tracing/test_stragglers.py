from __future__ import annotations

from stories import call, group, op, rank_call, ring_of_three, run, wait
from unisono.tracing import slow_rank, summary


def calls_with(late):
    """Return a call for each rank given: that rank enters it late."""
    return [ring_of_three(late=rank, at=1000 * number, number=number + 1) for number, rank in enumerate(late)]


def test_a_rank_that_is_late_in_every_call_is_named():
    slow = slow_rank(group(3, *calls_with([1] * 12)))
    assert slow is not None
    assert (slow.rank, slow.calls, slow.of_calls, slow.late_ns, slow.slow_ns) == (1, 12, 12, 1200, 0)


def test_one_very_late_call_of_another_rank_does_not_hide_it():
    first = call(
        rank_call(0, 0, 100_000, op(0, "receive", 99_990, 100_000, wait(0, 2, 0, 99_990), sources=[2])),
        rank_call(1, 0, 10, op(1, "copy", 0, 10)),
        rank_call(2, 99_980, 99_990, op(2, "send", 99_980, 99_990, to=[0])),
        number=0,
    )
    slow = slow_rank(group(3, first, *calls_with([1] * 12)))
    assert slow is not None
    assert (slow.rank, slow.calls, slow.of_calls) == (1, 12, 13)


def test_ranks_that_are_late_by_turns_are_not_named():
    assert slow_rank(group(3, *calls_with([0, 1, 2] * 4))) is None


def fast_call(number, at):
    """Return a call in which no rank waits."""
    return call(*(rank_call(rank, at, at + 10, op(rank, "copy", at, at + 10)) for rank in range(3)), number=number)


def test_a_rank_that_is_late_in_the_first_of_several_calls_of_every_step_is_named():
    calls = []
    for step in range(6):
        calls.append(ring_of_three(late=1, at=1000 * step, number=10 * step))
        calls += [fast_call(10 * step + more, 1000 * step + 300 + 20 * more) for more in range(1, 5)]
    slow = slow_rank(group(3, *calls))
    assert slow is not None
    assert (slow.rank, slow.calls, slow.of_calls, slow.late_ns) == (1, 6, 30, 600)


def test_a_rank_that_is_late_in_a_few_of_very_many_calls_is_not_named():
    often = [fast_call(number, 1000 * number) for number in range(100)]
    late = [ring_of_three(late=1, at=1000 * number, number=number) for number in range(100, 105)]
    assert slow_rank(group(3, *often, *late)) is None


def test_two_calls_are_too_few_for_a_conclusion():
    assert slow_rank(group(3, *calls_with([1, 1]))) is None


def test_a_root_is_not_slow_because_the_others_wait_for_what_it_sends():
    calls = [
        call(
            rank_call(0, at, at + 100, op(0, "send", at, at + 100, to=[1])),
            rank_call(1, at, at + 110, op(1, "receive", at + 100, at + 110, wait(1, 0, at, at + 100), sources=[0])),
            collective="broadcast", algorithm="naive", number=at,
        )
        for at in range(0, 5000, 1000)
    ]  # fmt: skip
    assert slow_rank(group(2, *calls)) is None


def slow_inside(number, took):
    """Two ranks send to each other; rank 1 needs ``took`` for it, rank 0 needs 10."""
    at = 1000 * number
    end = at + max(took, 10)
    first = op(0, "receive", end, end + 10, wait(0, 1, at + 10, end), sources=[1], instruction=1)
    second = op(1, "receive", end, end + 10, sources=[0], instruction=1)
    return call(
        rank_call(0, at, end + 10, op(0, "send", at, at + 10, to=[1]), first),
        rank_call(1, at, end + 10, op(1, "send", at, at + took, to=[0]), second),
        number=number,
    )


def test_a_rank_that_takes_longer_for_the_same_work_is_named():
    slow = slow_rank(group(2, *(slow_inside(number, 100) for number in range(4))))
    assert slow is not None
    assert (slow.rank, slow.late_ns, slow.slow_ns) == (1, 0, 4 * 90)


def test_the_slow_rank_is_named_in_both_languages():
    recorded = run(group(3, *calls_with([1] * 12)))
    english, chinese = summary(recorded), summary(recorded, "zh")
    assert "rank 1 was slow: the others waited 1.2 µs for it in 12 of 12 calls\nit entered its calls late" in english
    assert "rank 1 较慢：12 次调用中有 12 次，其他 rank 要等它，共等了 1.2 µs\n它进入调用较晚" in chinese


def test_a_rank_that_is_slow_in_calls_is_distinguished_from_one_that_enters_late():
    recorded = run(group(2, *(slow_inside(number, 100) for number in range(4))))
    assert "it was slow inside its calls" in summary(recorded)
    assert "它在调用内部较慢" in summary(recorded, "zh")
