"""A program that needs deeper channels is proved at the depth that it declares, and runs on real ranks."""

from __future__ import annotations

import numpy as np
import pytest

from instruction_waiting import completes
from unisono import algorithm, prove, recv, recv_reduce, send
from unisono.algorithms.user_files import resolve
from unisono.cli.main import main
from unisono.collectives import all_gather, all_reduce
from unisono.compiler import geometry, lower
from unisono.drawing.scene import scene_of
from unisono.errors import DeadlockError, UsageError
from unisono.launch.spawn import spawn
from unisono.schedule.schedule import DEEPEST
from unisono.schedule.text import format_schedule, parse_schedule
from unisono.verifier import messages, proved

SIZES = (2, 3, 5, 8)


def burst_ring(burst: int):
    """Return a ring whose chunks are cut into pieces: a rank sends all pieces before it receives the first."""

    @algorithm(all_reduce, chunks=lambda size: size * burst, depth=burst)
    def ring_of_bursts(rank, size):
        right, left = (rank + 1) % size, (rank - 1) % size
        for receive, hops in ((recv_reduce, range(1, size)), (recv, range(size - 1))):
            for hop in hops:
                for piece in range(burst):
                    yield send((rank - hop) % size * burst + piece, dst=right)
                for piece in range(burst):
                    yield receive((rank - hop - 1) % size * burst + piece, src=left)

    return ring_of_bursts


def burst_to_all(burst: int):
    """Return an all-gather in which a rank sends every piece to all others before it receives the first."""

    @algorithm(all_gather, chunks=lambda size: size * burst, depth=burst)
    def bursts_to_all(rank, size):
        peers = [(rank + distance) % size for distance in range(1, size)]
        for piece in range(burst):
            yield tuple(send(rank * burst + piece, dst=peer) for peer in peers)
        for piece in range(burst):
            yield tuple(recv(peer * burst + piece, src=peer) for peer in reversed(peers))

    return bursts_to_all


@pytest.mark.parametrize("burst", range(1, DEEPEST + 1))
@pytest.mark.parametrize("make", [burst_ring, burst_to_all])
def test_a_program_is_proved_at_the_depth_that_it_declares_and_at_no_smaller_one(make, burst):
    for size in SIZES:
        schedule = make(burst).schedule(size)
        assert prove(schedule).depth == burst
        if burst > 1:
            with pytest.raises(DeadlockError) as caught:
                prove(schedule, depth=burst - 1)
            assert caught.value.id == messages.DEPTH_HELPS.id
            assert caught.value.parameters["depth"] == burst
            assert f"@algorithm(..., depth={burst})" in caught.value.hint


@pytest.mark.parametrize("burst", range(1, DEEPEST + 1))
@pytest.mark.parametrize("make", [burst_ring, burst_to_all])
def test_compiled_programs_complete_with_three_messages_more_than_declared(make, burst):
    for size in SIZES:
        found = proved(make(burst).schedule(size))
        programs = [lower(found, rank) for rank in range(size)]
        assert completes(programs, depth=burst + 3), size


def test_the_channels_of_the_engine_are_deep_enough_for_every_depth_that_can_be_declared():
    assert geometry.DEPTH >= DEEPEST + 3


def exchange(comm):
    results = []
    for burst in (2, DEEPEST):
        for count in (1, 1000, 300_000):  # the last one takes several passes
            x = np.arange(count, dtype=np.float64) * (comm.rank + 1)
            comm.all_reduce(x, algorithm=burst_ring(burst))
            results.append(bool((x == np.arange(count) * sum(range(1, comm.size + 1))).all()))
        out = np.zeros(comm.size * 7, np.int64)
        comm.all_gather(out, np.full(7, comm.rank), algorithm=burst_to_all(burst))
        results.append(out.tolist() == np.repeat(np.arange(comm.size), 7).tolist())
    return results


@pytest.mark.parametrize("size", [2, 3, 5])
def test_programs_that_need_deeper_channels_run_on_real_ranks(size):
    assert spawn(exchange, size, timeout=120.0) == [[True] * 8] * size


@pytest.mark.parametrize("depth", [0, DEEPEST + 1, 1.0, True, None])
def test_a_depth_that_the_engine_does_not_have_cannot_be_declared(depth):
    with pytest.raises(UsageError, match=rf"depth={depth}\); expected .* 1 to {DEEPEST}"):
        algorithm(all_reduce, depth=depth)


def test_the_compiler_rejects_a_proof_for_deeper_channels_than_the_engine_has():
    schedule = burst_ring(2).schedule(3)
    for depth in (DEEPEST + 1, None):
        with pytest.raises(UsageError, match="proved for channels of depth"):
            lower(proved(schedule, depth), 0)


def test_the_text_form_keeps_the_depth():
    text = format_schedule(burst_ring(2).schedule(3))
    assert "\ndepth 2\n" in text
    assert parse_schedule(text).depth == 2
    assert "depth" not in format_schedule(burst_ring(1).schedule(3))


FILE = """
from unisono import algorithm, recv_reduce, send
from unisono.collectives import all_reduce

@algorithm(all_reduce, chunks=2, depth=2, serves=lambda size: size == 2)
def eager(rank, size):
    for chunk in range(2):
        yield send(chunk, dst=1 - rank)
    for chunk in range(2):
        yield recv_reduce(chunk, src=1 - rank)
"""


def test_show_and_draw_use_the_declared_depth(tmp_path, capsys):
    path = tmp_path / "eager.py"
    path.write_text(FILE)
    assert main(["show", str(path), "-n", "2", "--data"]) == 0
    assert "NOT PROVED" not in capsys.readouterr().out
    eager = resolve(str(path))
    scene = scene_of(eager.schedule(2), eager)
    assert scene.get("failure") is None
    assert scene["levels"] == 4
