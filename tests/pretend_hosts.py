"""Ranks in processes of this machine that are on different hosts as far as the engine knows.

Each pretended host has its own shared memory, and each rank a courier; the couriers connect through the loopback
interface. The rendezvous is left out: the parent process passes on the ports.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from unisono import _engine
from unisono.bootstrap.hosts import HostMap
from unisono.bootstrap.job_config import STAGING_BYTES, JobConfig
from unisono.bootstrap.job_resources import JobResources, SharedCourier, create_memory, geometry_for
from unisono.bootstrap.membership import Link
from unisono.bootstrap.tls import BYTES_PER_KEY, Tls
from unisono.cli import on_hosts
from unisono.cli.main import main
from unisono.comm import Communicator

ADDRESS = "127.0.0.1"
LIMIT_S = 180.0


@dataclass(frozen=True)
class Security:
    """The files of TLS, and the digests of the certificates that couriers expect, by rank; without TLS, none."""

    tls: Tls | None = None
    certificates: Sequence[bytes] = ()
    bytes_per_key: int = BYTES_PER_KEY


def run_on_hosts(
    function: Callable[..., Any], hosts: Sequence[str], *arguments: Any, security: Security | None = None,
    port_of: Callable[[int], int] = lambda port: port,
) -> list[Any]:  # fmt: skip
    """Call ``function(comm, ...)`` on ranks of which rank r is on host ``hosts[r]``; return all results, by rank.

    ``port_of`` returns the port at which others reach a courier that listens on a port.
    """
    size, names = len(hosts), list(dict.fromkeys(hosts))
    memories = {name: create_memory(size, geometry_for(STAGING_BYTES, len(names) > 1), 0) for name in names}
    tickets = [[secrets.token_bytes(32) for _ in hosts] for _ in hosts]
    context = multiprocessing.get_context("fork")
    ends = [context.Pipe() for _ in hosts]
    ranks = [
        context.Process(
            target=_be_rank,
            args=(function, arguments, rank, hosts, memories[hosts[rank]], tickets, ends[rank][1], security),
        )
        for rank in range(size)
    ]
    for process in ranks:
        process.start()
    try:
        connections = [_checked(_received(ours)) for ours, _ in ends]
        connections = [(port_of(port), process) for port, process in connections]
        for ours, _ in ends:
            ours.send(connections)
        results = [_received(ours) for ours, _ in ends]
        for ours, _ in ends:
            ours.send("leave")
        for process in ranks:
            process.join(LIMIT_S)
    finally:
        for process in ranks:
            if process.is_alive():
                process.kill()
            process.join()
        for descriptor in memories.values():
            os.close(descriptor)
        for ours, theirs in ends:
            ours.close()
            theirs.close()
    return [_checked(result) for result in results]


def _checked(result: Any) -> Any:
    if isinstance(result, BaseException):
        raise result
    return result


def run_verb(comm: Communicator, words: Sequence[str]) -> tuple[int, str, str]:
    """Run ``unisono WORDS --in-job`` on a rank; return the exit code, the standard output and the standard error."""
    output, errors = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        patch.setattr(on_hosts, "joined_job", lambda _: contextlib.nullcontext(comm))
        code = main([*words, "--in-job"])
    return code, output.getvalue(), errors.getvalue()


def _received(connection: Any) -> Any:
    if not connection.poll(LIMIT_S):
        raise TimeoutError(f"no answer from a rank in {LIMIT_S:.0f} s")
    return connection.recv()


def _be_rank(
    function: Callable[..., Any], arguments: Any, rank: int, hosts: Sequence[str], memory: int,
    tickets: list[list[bytes]], connection: Any, security: Security | None,
) -> None:  # fmt: skip
    try:
        size, names = len(hosts), list(dict.fromkeys(hosts))
        near = [peer for peer in range(size) if hosts[peer] == hosts[rank]]
        courier = _engine.Courier(rank, size, ADDRESS, 0, 0)
        security = security or Security()
        if security.tls is not None:
            courier.use_tls(*security.tls.paths, security.bytes_per_key)
        connection.send((courier.port, os.getpid()))
        known = _received(connection)
        far = [peer not in near for peer in range(size)]
        courier.know_peers(
            [ADDRESS if is_far else "" for is_far in far],
            [port if is_far else 0 for is_far, (port, _) in zip(far, known, strict=True)], list(hosts),
            [tickets[rank][peer] if is_far else b"" for peer, is_far in enumerate(far)],
            [tickets[peer][rank] if is_far else b"" for peer, is_far in enumerate(far)],
            list(security.certificates) or [b""] * size,
        )  # fmt: skip
        link = Link(
            JobResources(os.dup(memory), None, SharedCourier(courier)), 0, rank,
            [0 if is_far else process for is_far, (_, process) in zip(far, known, strict=True)],
            JobConfig(STAGING_BYTES, oversubscribed=True), LIMIT_S / 2,
            hosts=HostMap(tuple(names), tuple(names.index(host) for host in hosts)),
        )  # fmt: skip
        with Communicator(link) as comm:
            connection.send(function(comm, *arguments))
            _received(connection)
    except BaseException as error:
        connection.send(error)
        raise
