"""The agreement of the ranks about their GPUs: the mode of execution and the budget of thread blocks.

Every rank states the facts about its GPU, and all ranks derive the same from all facts.

*Kernel mode*: one kernel per call runs the whole program and waits for its peers on the GPU, so the kernels of all
ranks must run at the same time: each rank has a separate GPU, or MPS runs those that share one. *Stream mode*: the
waits are operations of streams, which occupy no GPU; ranks that share a GPU without MPS take turns.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple

from unisono.errors import UsageError
from unisono.gpu import connection_messages as messages
from unisono.message import Message, listed

Mode = Literal["kernel", "stream"]
TABLE_SIZES = (16, 64)  # the numbers of ranks for which kernels are compiled
MOST_RANKS = TABLE_SIZES[-1]
# The kernel is compiled so that two of its blocks fit on a multiprocessor (__launch_bounds__).
BLOCKS_PER_MULTIPROCESSOR = 2
COMMUNICATORS_AT_ONCE = 2  # of a process, whose kernels run at the same time


@dataclass(frozen=True)
class GpuFacts:
    """The facts about the GPU of one rank, as the ranks exchange them."""

    problem: str = ""  # why the rank cannot use it
    board: int = 0  # the offset of the registration board in the shared memory; rank 0 reserves it
    name: str = ""
    uuid: str = ""
    multiprocessors: int = 1
    mps: bool = False
    pipe_directory: str = ""  # of the MPS daemon
    unreachable: tuple[str, ...] = ()  # the GPUs whose memory this one cannot access

    def packed(self) -> bytes:
        """Return the facts as bytes."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def unpacked(cls, data: bytes) -> GpuFacts:
        """Return the facts that a rank has sent."""
        found = json.loads(data)
        return cls(**{**found, "unreachable": tuple(found["unreachable"])})


class Agreement(NamedTuple):
    """What all ranks of a communicator agree on."""

    mode: Mode
    reason: Message  # for the mode
    blocks: int  # the most thread blocks of a call
    most: int  # the ranks for which the kernel is compiled
    board: int


def agree(ranks: Sequence[GpuFacts]) -> Agreement:
    """Return what follows from the facts of all ranks; raise UsageError if their GPUs cannot work together."""
    _check(ranks)
    mode, reason = _mode(ranks)
    most = next(most for most in TABLE_SIZES if len(ranks) <= most)
    return Agreement(mode, reason, _blocks(ranks, mode), most, ranks[0].board)


def _check(ranks: Sequence[GpuFacts]) -> None:
    for rank, facts in enumerate(ranks):
        if facts.problem:
            raise UsageError(messages.PROBLEM_ON_RANK(rank=rank, reason=facts.problem))
    for rank, facts in enumerate(ranks):
        for other, other_facts in enumerate(ranks):
            if other_facts.uuid in facts.unreachable:
                raise UsageError(
                    messages.NO_PEER_ACCESS(
                        rank=rank, device=facts.name, uuid=facts.uuid, other=other, other_device=other_facts.name,
                        other_uuid=other_facts.uuid,
                    )
                )  # fmt: skip


def _by_gpu(ranks: Sequence[GpuFacts]) -> dict[str, list[int]]:
    """Return the ranks on each GPU."""
    found: dict[str, list[int]] = defaultdict(list)
    for rank, facts in enumerate(ranks):
        found[facts.uuid].append(rank)
    return found


def _mode(ranks: Sequence[GpuFacts]) -> tuple[Mode, Message]:
    shared = [members for members in _by_gpu(ranks).values() if len(members) > 1]
    for members in shared:
        if not all(ranks[rank].mps for rank in members):
            return "stream", messages.SHARED_WITHOUT_MPS(ranks=listed(map(str, members)))
        directories = sorted({ranks[rank].pipe_directory for rank in members})
        if len(directories) > 1:
            names = {"ranks": listed(map(str, members)), "directories": listed(directories)}
            return "stream", messages.DIFFERENT_MPS(**names)
    return "kernel", messages.SHARED_UNDER_MPS() if shared else messages.ONE_RANK_PER_GPU()


def _blocks(ranks: Sequence[GpuFacts], mode: Mode) -> int:
    """Return the budget of thread blocks of a call.

    In kernel mode, the blocks of all ranks on a GPU wait for each other: they must fit at the same time, also those
    of a second communicator. In stream mode, a kernel never waits and may fill the GPU.
    """
    budgets = []
    for members in _by_gpu(ranks).values():
        capacity = BLOCKS_PER_MULTIPROCESSOR * min(ranks[rank].multiprocessors for rank in members)
        sharers = COMMUNICATORS_AT_ONCE * len(members) if mode == "kernel" else 1
        budgets.append(max(1, capacity // sharers))
    return min(budgets)
