"""The schedule of a call that names an algorithm, and the text and the length of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.algorithms.declaration import Algorithm
from unisono.algorithms.host_options import host_options
from unisono.algorithms.user_files import WrittenSchedule, resolve
from unisono.collectives import Collective
from unisono.comm import messages
from unisono.comm.call_request import CallRequest, GivenSchedule
from unisono.compiler import Hosts
from unisono.errors import UsageError
from unisono.schedule import Schedule


def named_algorithm(
    collective: Collective, algorithm: Any, hosts: Hosts | None
) -> tuple[Algorithm | GivenSchedule, Mapping[str, Any]]:
    """Return the algorithm that a call names, and its options on these hosts.

    ``algorithm`` is a name, an Algorithm or a GivenSchedule.
    """
    if isinstance(algorithm, str):
        named = resolve(algorithm, collective)  # a built-in algorithm, or one of a user's file
        algorithm = GivenSchedule(named.written) if isinstance(named, WrittenSchedule) else named
    return algorithm, host_options(algorithm, hosts) if isinstance(algorithm, Algorithm) else {}


def label_of(request: CallRequest, algorithm: str, device: str = "") -> str:
    """Return the text of a call in errors and traces; ``device`` is that of its arrays, where it is not the CPU."""
    collective, lengths = request.collective, request.lengths
    count = sum(lengths.input) if lengths.known_to_all else "unequal"
    words = [f"{count} {request.dtype}"] if collective.carries_data else []
    words += [f"op={request.op}"] if request.op else []
    words += [f"root={request.root}"] if request.root is not None else []
    words += [f"codec={request.codec}"] if request.codec is not None else []
    words += [f"algorithm={algorithm}"]
    words += [f"device={device}"] if device else []
    return f"{collective}({', '.join(words)})"


def result_length(request: CallRequest, rank: int, size: int) -> int:
    """Return the number of elements of this rank's result."""
    held = len(request.collective.held_after(rank, size, size, request.root or 0))
    if request.collective.blocked and held < size:
        return request.lengths.output[rank] if held else 0
    return sum(request.lengths.output) if held else 0


def schedule_of(
    collective: Collective,
    algorithm: Algorithm | GivenSchedule,
    size: int,
    root: int | None,
    options: Mapping[str, Any],
) -> Schedule:
    """Return the schedule of an algorithm, or the one that was given in its place."""
    if isinstance(algorithm, Algorithm):
        if algorithm.collective is not collective:
            other = algorithm.collective
            raise UsageError(
                messages.ALGORITHM_OF_OTHER_COLLECTIVE(call=collective, algorithm=algorithm, other=other)
            )
        return algorithm.schedule(size, root, **options)
    schedule = algorithm.schedule
    if (schedule.collective, schedule.size, schedule.root) != (collective.name, size, root):
        raise UsageError(
            messages.SCHEDULE_OF_OTHER_CALL(
                call=collective, size=size, root=root, found=schedule.collective, found_size=schedule.size,
                found_root=schedule.root,
            )
        )  # fmt: skip
    return schedule
