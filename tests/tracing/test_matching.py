from __future__ import annotations

from stories import call, op, rank_call, ring_of_three
from unisono.tracing.matching import messages_of


def test_messages_are_received_in_the_order_of_sending():
    sends = [op(0, "send", 10 * n, 10 * n + 5, to=[1], instruction=n, step=n) for n in range(3)]
    receives = [op(1, "receive", 100 * n, 100 * n + 5, sources=[0], instruction=n, step=n) for n in range(3)]
    messages = messages_of(call(rank_call(0, 0, 25, *sends), rank_call(1, 0, 205, *receives)))
    assert [(one.src, one.dst, one.number, one.sent.step, one.received.step) for one in messages] == [
        (0, 1, 0, 0, 0), (0, 1, 1, 1, 1), (0, 1, 2, 2, 2),
    ]  # fmt: skip


def test_pairs_and_passes_do_not_mix():
    there = [op(0, "send", n, n + 1, to=[1, 2], number_of_pass=n) for n in range(2)]
    here = {rank: [op(rank, "receive", n, n + 1, sources=[0], number_of_pass=n) for n in range(2)] for rank in (1, 2)}
    one = call(rank_call(0, 0, 2, *there), rank_call(1, 0, 2, *here[1]), rank_call(2, 0, 2, *here[2]))
    one.ops_in_pass.update({0: 1, 1: 1, 2: 1})
    messages = messages_of(one)
    assert len(messages) == 4
    for message in messages:
        assert message.sent.number_of_pass == message.received.number_of_pass
        assert message.received.rank == message.dst


def test_an_incomplete_pass_is_omitted():
    """Otherwise the second message would be taken for the first."""
    late = [op(0, "send", 5, 6, to=[1], instruction=1)]  # instruction 0 was dropped
    receives = [op(1, "receive", n, n + 1, sources=[0], instruction=n) for n in range(2)]
    one = call(rank_call(0, 0, 6, *late), rank_call(1, 0, 2, *receives))
    one.ops_in_pass[0] = 2
    assert messages_of(one) == []


def test_a_message_has_arrived_when_its_receiver_has_it_even_if_the_sender_is_still_busy():
    passes_on = op(0, "receive", 0, 50, to=[1])
    one = call(rank_call(0, 0, 50, passes_on), rank_call(1, 0, 30, op(1, "receive", 20, 30, sources=[0])))
    assert messages_of(one)[0].sent_ns == 20


def test_a_ring_has_a_message_for_each_hop():
    assert [(one.src, one.dst) for one in messages_of(ring_of_three())] == [(1, 2), (2, 0)]
