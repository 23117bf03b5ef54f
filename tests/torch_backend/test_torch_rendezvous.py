"""The rendezvous of a group tolerates or reports interference: other users, stores of other jobs, containers."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import time
from datetime import timedelta
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
from fault_ranks import SOON_S, Rank, job, run  # noqa: E402

from containers import NEW_NETWORK, NEW_PROCESSES, enter_new, needs_namespaces  # noqa: E402
from unisono.bootstrap.handshake import preamble  # noqa: E402
from unisono.torch_backend.store_rendezvous import PROBLEM, WHERE  # noqa: E402

pytestmark = pytest.mark.usefixtures("fork_server")

OTHER_USER = 65534
needs_root = pytest.mark.skipif(
    os.getuid() != 0, reason="SKIPPED, NOT TESTED: connections of another user (only root can become another user)"
)


def join_late(rank: Rank, late: int) -> float:
    """Join; the rank ``late`` waits for the test before it joins."""
    rank.report("started")
    if rank.rank == late:
        while not (rank.folder / "go").exists():
            time.sleep(0.01)
    began_s = time.monotonic()
    rank.join(timeout_s=30.0)
    x = torch.ones(3)
    dist.all_reduce(x)
    assert torch.equal(x, torch.full((3,), 2.0))
    dist.destroy_process_group()
    return time.monotonic() - began_s


def keys_of_group(folder):
    """Return the store of the default group, including the prefixes that torch adds to its keys."""
    store = dist.FileStore(str(folder / "store"), 2)
    return dist.PrefixStore("cpu/", dist.PrefixStore("0/", store))


def address_of(folder):
    """Wait until rank 0 has written its address to the store; return the address."""
    store = keys_of_group(folder)
    store.wait([WHERE], timedelta(seconds=20))
    return json.loads(store.get(WHERE))


def other_user(name, secret, kind):
    """Start a process of another user that connects to the address, whose name it reads in /proc/net/unix."""
    child = os.fork()
    if child:
        return child
    try:
        os.setgid(OTHER_USER)
        os.setuid(OTHER_USER)
        assert f"@unisono-{name}" in Path("/proc/net/unix").read_text(errors="replace")
        lines = []
        ends_s = time.monotonic() + 20
        while time.monotonic() < ends_s:
            line = socket.socket(socket.AF_UNIX)
            line.settimeout(0.2)
            try:
                line.connect(f"\0unisono-{name}")
                if kind == "deep":
                    line.sendall(struct.pack("=I", 200_000) + b"[" * 200_000)
                elif kind == "secret":
                    line.sendall(preamble(secret) + struct.pack("=I", 200_000) + b"[" * 200_000)
                elif kind == "drip":
                    line.sendall(struct.pack("=I", 1 << 20))
            except OSError:
                time.sleep(0.001)
            lines = [*lines[-100:], line]
    finally:
        os._exit(0)


@needs_root
@pytest.mark.parametrize(
    "kind", ["deep", "drip", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("secret", "silent"))]
)
def test_another_user_neither_breaks_nor_delays_the_start_of_a_group(tmp_path, kind):
    with job(tmp_path, join_late, 2, 1) as running:
        where = address_of(tmp_path)
        others = [other_user(where["name"], where["secret"], kind) for _ in range(2)]
        try:
            time.sleep(0.5)
            (tmp_path / "go").touch()
            first, second = running.outcomes()
        finally:
            for other in others:
                os.kill(other, signal.SIGKILL)
                os.waitpid(other, 0)
        assert first.value is not None, first.output
        assert second.value < SOON_S


def join_alone(rank: Rank) -> None:
    if rank.rank == 1:
        rank.join(timeout_s=30.0)


@needs_root
def test_an_address_of_another_user_is_rejected_and_receives_no_data(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        os.setegid(OTHER_USER)
        os.seteuid(OTHER_USER)
        try:
            listener.bind(f"\0unisono-false-{os.getpid()}")
            listener.listen(8)  # the peer sees the credentials of this call
        finally:
            os.seteuid(0)
            os.setegid(0)
        store = keys_of_group(tmp_path)
        place = {"name": f"false-{os.getpid()}", "secret": "x", "rank 0": host_of_test()}
        store.set(WHERE, json.dumps(place))
        with job(tmp_path, join_alone) as running:
            running.outcome(1).check_raised("CommError", f"belongs to user {OTHER_USER}; expected user 0")
        listener.settimeout(5)
        line, _ = listener.accept()
        line.settimeout(5)
        assert line.recv(100) == b""
        line.close()


def host_of_test():
    from unisono.bootstrap.locality import host_info

    return host_info()


@pytest.mark.parametrize(
    "value",
    [
        b"[" * 100_000,
        b'{"name": 1, "secret": 2, "rank 0": {}}',
        *(pytest.param(value, marks=pytest.mark.long) for value in (b"[]", b"{}", b"\xff", b"null")),
    ],
)
def test_an_invalid_address_in_the_store_is_rejected_immediately(tmp_path, value):
    keys_of_group(tmp_path).set(WHERE, value)
    with job(tmp_path, join_alone) as running:
        running.outcome(1).check_raised("CommError", "unisono/where is not what rank 0 writes there")


@pytest.mark.parametrize(
    "value",
    [
        b'{"rendezvous": "an older one", "problem": "old"}',
        *(pytest.param(value, marks=pytest.mark.long) for value in (b"[]", b"\xff", b"[" * 100_000)),
    ],
)
def test_an_error_of_an_earlier_rendezvous_does_not_affect_this_one(tmp_path, value):
    keys_of_group(tmp_path).set(PROBLEM, value)
    with job(tmp_path, join_late, 2, 1) as running:
        address_of(tmp_path)
        time.sleep(0.5)  # rank 0 has read the value
        (tmp_path / "go").touch()
        assert all(outcome.value is not None for outcome in running.outcomes())


def test_the_store_of_a_killed_job_can_be_reused(tmp_path):
    with job(tmp_path, join_late, 2, 1) as running:
        old = address_of(tmp_path)
        running.kill(0, signal.SIGKILL)
        running.outcome(0)
        running.kill(1, signal.SIGKILL)
    (tmp_path / "temporary").unlink()
    (tmp_path / "go").unlink(missing_ok=True)
    with job(tmp_path, join_late, 2, 0) as running:  # rank 1 finds the old address first
        running.wait_for("started")
        time.sleep(0.5)
        assert address_of(tmp_path) == old
        (tmp_path / "go").touch()
        for outcome in running.outcomes():
            assert outcome.value is not None, outcome.output


def join_as_rank_0(rank: Rank) -> None:
    rank.report("started")
    if rank.rank == 1:
        address_of(rank.folder)
        store = dist.FileStore(str(rank.folder / "store"), 2)
        dist.init_process_group("unisono", store=store, rank=0, world_size=2, timeout=timedelta(seconds=30))
    rank.join(timeout_s=3.0)


def test_a_second_rank_0_in_one_store_raises_with_the_process_of_the_first(tmp_path):
    with job(tmp_path, join_as_rank_0) as running:
        first, second = running.outcomes()
        second.check_raised("UsageError", f"process {running.pids[0]} is rank 0 in this store already")
        first.check_raised("CollectiveTimeout", "these ranks of 2 have not connected: 1")


def join_in_a_container(rank: Rank, kind: int, inside: int) -> float:
    if rank.rank == inside:
        enter_new(kind)
        if kind == NEW_PROCESSES and (child := os.fork()):
            os.waitpid(child, 0)
            os._exit(1)  # the child has recorded its outcome
    rank.join(timeout_s=30.0)
    total = torch.ones(3)
    dist.all_reduce(total)
    pair = dist.new_group([0, 1])
    if rank.rank < 2:
        dist.all_reduce(total, group=pair)
    dist.barrier()
    return float(total[0])


@needs_namespaces
@pytest.mark.parametrize("inside", [pytest.param(0, marks=pytest.mark.long), 1])
def test_ranks_in_containers_without_a_network_raise_immediately(tmp_path, inside):
    began_s = time.monotonic()
    for outcome in run(tmp_path, join_in_a_container, 3, NEW_NETWORK, inside):
        outcome.check_raised("UsageError", "is in another network namespace (container) than rank 0")
    assert time.monotonic() - began_s < 20  # less than the timeout of 30 s


@needs_namespaces
@pytest.mark.parametrize("inside", [0, 1])
def test_ranks_in_containers_with_a_common_network_meet_over_it(tmp_path, inside):
    outcomes = run(tmp_path, join_in_a_container, 3, NEW_PROCESSES, inside)
    assert [outcome.value for outcome in outcomes] == [6.0, 6.0, 3.0], [outcome.output for outcome in outcomes]


def fail_on_rank_0(rank: Rank) -> None:
    rank.report("started")
    if rank.rank == 0:
        from unisono.bootstrap import membership as link

        def fail(*args: object) -> int:
            raise OSError(24, "Too many open files")

        link.os.memfd_create = fail
    rank.join(timeout_s=30.0)


def test_every_rank_reports_why_rank_0_cannot_create_the_group(tmp_path):
    for outcome in run(tmp_path, fail_on_rank_0, 3):
        outcome.check_raised("CommError", "rank 0 cannot create shared memory: Too many open files")
        assert outcome.about == 0
