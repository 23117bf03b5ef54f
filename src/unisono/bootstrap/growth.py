"""A communicator grows: its ranks and the applicants meet, and get a new one (docs/adr/0072).

Rank 0 sends a plan to all ranks and applicants, and all of them meet as in ``connect()``. Whether the attempt has
succeeded is decided once, by a word in the memory of the old communicator: either all of its ranks continue in the
new one, or all stay.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from unisono.bootstrap import messages
from unisono.bootstrap.admission import Admission, Applicant, apply_at
from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.handshake import Hello
from unisono.bootstrap.job_config import JobConfig, Tuning, job_config, own_resources
from unisono.bootstrap.job_resources import create_memory, geometry_for
from unisono.bootstrap.locality import process_namespace
from unisono.bootstrap.membership import Link, map_memory
from unisono.bootstrap.rendezvous import meet
from unisono.bootstrap.rendezvous_address import AbstractAddress
from unisono.bootstrap.uncaught_errors import install_excepthook
from unisono.errors import CommError, PeerLost, UsageError

RENDEZVOUS_S = 60.0
LoadTuning = Callable[[], Tuning]


class Plan(NamedTuple):
    """The description of the new communicator; ``members`` of its ranks are those of the old one, in their order."""

    members: int
    job_ranks: list[int]
    name: str  # of the address at which all meet
    secret: str
    timeout_s: float


def grow_link(
    link: Link, communicator: Any, expected: int | None, timeout_s: float, load_tuning: LoadTuning
) -> Link | None:
    """Return the link of the ranks of ``link`` and of those that join, or None if no process wants to join."""
    if link.hosts.count > 1 or link.resources.courier is not None:
        raise UsageError(messages.GROW_ON_SEVERAL_HOSTS(hosts=link.hosts.count))
    link.growths += 1
    if link.rank == 0:
        plan, applicants = _invite(link, expected, timeout_s)
        _share(communicator, plan, timeout_s)
        for index, applicant in enumerate(applicants):
            assert link.resources.admission is not None
            link.resources.admission.release(applicant, {"rank": plan.members + index, **plan._asdict()})
    else:
        plan = _share(communicator, None, timeout_s)
    if len(plan.job_ranks) == plan.members:
        return None
    return _move(link, plan, load_tuning)


def _invite(link: Link, expected: int | None, timeout_s: float) -> tuple[Plan, list[Applicant]]:
    """Wait for applicants; return the plan for them."""
    if link.resources.admission is None:
        link.resources.admission = Admission(link.config.join_address, link.job_ranks[0])
    ends_s = time.monotonic() + timeout_s
    applicants = link.resources.admission.wait_for(expected, ends_s, link.endpoint.raise_if_broken)
    job_ranks = ranks_for(link.job_ranks, [applicant.hello.rank for applicant in applicants])
    name, secret = secrets.token_hex(8), secrets.token_hex(32)
    return Plan(link.size, job_ranks, name, secret, link.endpoint.timeout_s), applicants


def ranks_for(members: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """Return the ranks in the job of all ranks: those that applicants want, or the lowest free ones."""
    found = list(members)
    for rank in wanted:
        free = next(number for number in range(len(found) + 1) if number not in found)
        found.append(rank if rank >= 0 and rank not in found else free)
    return found


def _share(communicator: Any, plan: Plan | None, timeout_s: float) -> Plan:
    """Return the plan of rank 0 on all ranks; the others wait while rank 0 waits for applicants."""
    limit_s = timeout_s + communicator.timeout
    body = np.frombuffer(json.dumps(plan).encode(), np.uint8).copy()
    length = np.array([len(body)])
    communicator.broadcast(length, timeout=limit_s)
    body = body if plan is not None else np.empty(int(length[0]), np.uint8)
    communicator.broadcast(body)
    return Plan(*json.loads(body.tobytes()))


def _move(link: Link, plan: Plan, load_tuning: LoadTuning) -> Link:
    """Meet the applicants in new memory; if that fails, the ranks stay where they are, and the error is raised."""
    made, problem = None, None
    try:
        made, rendezvous = _map(link.resources.identity, link.rank, plan, link.config, load_tuning)
        rendezvous.confirm(None)
    except CommError as error:
        problem = error
    has_grown = link.endpoint.settle_growth(link.growths, problem is None)
    if made is None or not has_grown:
        if made is not None:
            made.close()
        raise problem or CommError(messages.GROWTH_FAILED(rank=link.rank), rank=link.rank)
    with suppress(CommError):  # a rank was lost since: the next call says so
        made.endpoint.meet(RENDEZVOUS_S)
    made.parent_ranks = [*range(link.size), *[-1] * (made.size - link.size)]
    made.growths = 0
    made.resources.admission, link.resources.admission = link.resources.admission, None
    return made


def _map(
    identity: RankIdentity | None, rank: int, plan: Plan, config: JobConfig | None, load_tuning: LoadTuning
) -> tuple[Link, Any]:
    """Meet the other ranks and map the new memory; return the link, and the rendezvous, which is to be confirmed."""
    size = len(plan.job_ranks)
    identity = replace(identity or RankIdentity(0, 1, 0, 1, "alone", ""), by_hand=False)
    identity = replace(identity, rank=rank, size=size, local_rank=rank, local_size=size)

    def configure(resources: list[dict[str, Any]]) -> tuple[int, dict[str, Any]]:
        assert config is not None  # rank 0 has grown the communicator
        made = job_config([resources], config.staging_bytes, load_tuning(), join_address=config.join_address)
        return create_memory(size, geometry_for(config.staging_bytes, several_hosts=False), rank), made

    address = AbstractAddress(f"growth-{plan.name}", plan.secret)
    rendezvous = meet(identity, address, own_resources(), configure, min(RENDEZVOUS_S, plan.timeout_s))
    found = JobConfig(**rendezvous.config)
    link = map_memory(identity, rendezvous, found, plan.timeout_s)
    link.name_ranks(plan.job_ranks)
    return link, rendezvous


def join_link(
    join_address: str, wanted_rank: int, timeout_s: float, identity: RankIdentity | None, load_tuning: LoadTuning,
    poll: Callable[[], None],
) -> Link:  # fmt: skip
    """Join the job with this address, as soon as its ranks admit applicants; return the link.

    ``wanted_rank`` is the rank in the job that this process would like to have, or -1; ``poll`` is called regularly.
    """
    ends_s = time.monotonic() + timeout_s
    while True:
        left_s = max(0.0, ends_s - time.monotonic())
        hello = Hello(wanted_rank, 0, own_resources(), timeout_s, left_s, process_namespace(), {})
        answer = apply_at(join_address, hello, ends_s, poll)
        rank = answer.pop("rank")
        try:
            link, rendezvous = _map(identity, rank, Plan(**answer), None, load_tuning)
            try:
                rendezvous.confirm(None)
                link.endpoint.meet(RENDEZVOUS_S)
            except BaseException:
                link.close()
                raise
        except PeerLost:  # the attempt has failed; the job goes on
            continue
        install_excepthook(link.rank, link.processes, link.config.token)
        return link
