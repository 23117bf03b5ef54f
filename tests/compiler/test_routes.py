"""The channels of messages where ranks are on several hosts."""

from __future__ import annotations

import pytest

from builders import NAMES
from instruction_waiting import completes
from unisono import algorithm, find, recv, send
from unisono.collectives import broadcast
from unisono.compiler import Lengths, lay_out_call, lower
from unisono.compiler.call_layout import LONGEST_FAR_SEGMENT, LONGEST_SEGMENT
from unisono.compiler.hosts import near_peers
from unisono.compiler.instructions import SEND
from unisono.compiler.routes import Routes, Sending
from unisono.compiler.traffic import sent_bytes
from unisono.verifier import proved

# Ranks of each host: in order, round robin, one host with a single rank, and pairs, in which nothing is shared.
HOSTS = {
    "3+3": ((0, 1, 2), (3, 4, 5)), "round robin": ((0, 2, 4), (1, 3, 5)), "5+1": ((0, 1, 2, 3, 4), (5,)),
    "2+2+2": ((0, 1), (2, 3), (4, 5)), "one per host": tuple((rank,) for rank in range(6)),
}  # fmt: skip


def sends(schedule, rank, hosts):
    return [move for move in Routes(schedule, hosts).linear(rank) if isinstance(move, Sending)]


def test_near_ranks_are_the_others_of_the_host_in_ascending_order():
    assert near_peers(1, 4, None) == (0, 2, 3)
    assert near_peers(2, 5, ((4, 2, 0), (1, 3))) == (0, 4)
    assert near_peers(0, 2, ((0,), (1,))) == ()


@pytest.mark.parametrize("name", NAMES)
def test_one_host_changes_nothing(name):
    found = proved(find(name).schedule(5))
    for rank in range(5):
        assert lower(found, rank) == lower(found, rank, (tuple(range(5)),))


def test_a_chunk_for_everyone_is_written_once_for_the_host_and_sent_to_each_far_rank():
    schedule = find("all_gather/naive").schedule(6)
    for rank, hosts in ((1, HOSTS["3+3"]), (2, HOSTS["round robin"])):
        near = near_peers(rank, 6, hosts)
        assert [sorted(move.to) for move in sends(schedule, rank, hosts)] == [
            *([peer] for peer in [(rank + distance) % 6 for distance in range(1, 6)] if peer not in near), [*near],
        ]  # fmt: skip
    assert [move.to for move in sends(schedule, 5, HOSTS["5+1"])] == [(0,), (1,), (2,), (3,), (4,)]
    assert all(len(move.to) == 1 for move in sends(schedule, 0, HOSTS["2+2+2"]))


@algorithm(broadcast)
def in_two_rounds(rank, size, root=0):
    """The root sends to all ranks but one, and then to all ranks."""
    everyone = [peer for peer in range(size) if peer != root]
    first = [peer for peer in everyone if peer not in (1,)]
    if rank == root:
        yield tuple(send(0, dst=peer) for peer in first)
        yield tuple(send(0, dst=peer) for peer in everyone)
    else:
        if rank in first:
            yield recv(0, src=root)
        yield recv(0, src=root)


def test_only_a_complete_set_of_near_ranks_shares_a_message():
    schedule = in_two_rounds.schedule(6)
    moves = sends(schedule, 0, HOSTS["3+3"])
    assert [move.to for move in moves] == [(3,), (4,), (5,), (2, 1), (2,), (3,), (4,), (5,)]
    routes = Routes(schedule, HOSTS["3+3"])
    assert routes.sent_by(0) == {
        1: [True], 2: [True, False], 3: [False, False], 4: [False, False], 5: [False, False],
    }  # fmt: skip


@pytest.mark.parametrize("hosts", HOSTS.values(), ids=HOSTS)
@pytest.mark.parametrize("name", NAMES)
def test_compiled_programs_complete_in_channels_of_depth_four_on_any_hosts(name, hosts):
    """Sends to far ranks overtake sends of the same chunks to near ones: that needs no more depth than sharing."""
    found = proved(find(name).schedule(6))
    assert completes([lower(found, rank, hosts) for rank in range(6)], depth=4)


@pytest.mark.parametrize("hosts", HOSTS.values(), ids=HOSTS)
@pytest.mark.parametrize(
    "name", ["all_gather/naive", "broadcast/naive", "hierarchical", "all_to_all/pairwise", "direct"]
)
def test_sent_bytes_are_divided_into_near_and_far_ones(name, hosts):
    algorithm = find(name)
    schedule, collective = algorithm.schedule(6), algorithm.collective
    found = proved(schedule)
    lengths = Lengths((7,) * 6, (7,) * 6) if collective.blocked else Lengths((48 * 6,), (48 * 6,))
    chunk = sum(lengths.input) // schedule.chunks
    for rank in range(6):
        near = far = 0
        for step in schedule.program(rank):
            for op in step:
                if op.kind == "send":
                    sent = 4 * chunk * (1 if isinstance(op.chunks, int) else len(op.chunks))
                    is_near = op.other in near_peers(rank, 6, hosts)
                    near, far = near + sent * is_near, far + sent * (not is_near)
        assert sent_bytes(lower(found, rank, hosts), schedule, collective, lengths, lambda n: 4 * n) == (near, far)


def test_segments_between_hosts_are_longer_where_the_staging_area_allows_it():
    schedule = find("ring").schedule(4)
    found, lengths = proved(schedule), Lengths((1 << 26,), (1 << 26,))

    def segment(hosts, staging_bytes):
        lowered = lower(found, 0, hosts)
        layout = lay_out_call(lowered, schedule, find("ring").collective, 0, lengths, 4, staging_bytes)
        return layout.segment_bytes

    several = ((0, 1), (2, 3))
    assert segment(None, 64 << 20) <= LONGEST_SEGMENT
    assert LONGEST_SEGMENT < segment(several, 64 << 20) <= LONGEST_FAR_SEGMENT
    assert segment(several, 1 << 20) < LONGEST_SEGMENT


@pytest.mark.parametrize("hosts", HOSTS.values(), ids=HOSTS)
@pytest.mark.parametrize("name", NAMES)
def test_on_several_hosts_the_staging_area_holds_two_passes_of_every_rank(name, hosts):
    """A message that is written for all near ranks takes its room once; all ranks compute the same number."""
    found = proved(find(name).schedule(6))
    lowered = [lower(found, rank, hosts) for rank in range(6)]
    staged = [sum(len(each.operands) for each in made.instructions if each.to is not None) for made in lowered]
    (most,) = {made.most_sent for made in lowered}
    assert most == max(1, *staged)
    assert most <= lower(found, 0).most_sent


def test_a_far_send_names_its_receiver():
    found = proved(find("all_gather/naive").schedule(4))
    made = lower(found, 0, ((0, 1, 2), (3,)))
    assert [made.receivers(each) for each in made.instructions if each.kind == SEND] == [(3,), (1, 2)]
    assert made.near == (1, 2)


def test_a_receive_from_a_far_rank_reads_its_channel_to_this_rank_alone():
    made = lower(proved(find("all_gather/naive").schedule(4)), 3, ((0, 1, 2), (3,)))
    assert not any(source.to_all for each in made.instructions for source in each.sources)
    made = lower(proved(find("all_gather/naive").schedule(4)), 1, ((0, 1, 2), (3,)))
    assert {s.peer: s.to_all for each in made.instructions for s in each.sources} == {0: True, 2: True, 3: False}
