"""Compiles one rank's program into the engine's instructions."""

from __future__ import annotations

from typing import NamedTuple

from unisono import collectives
from unisono.collectives import Collective
from unisono.compiler import messages
from unisono.compiler.buffer_parts import BufferAssignment
from unisono.compiler.dead_stores import drop_dead_stores
from unisono.compiler.fusing import fuse
from unisono.compiler.hosts import Hosts
from unisono.compiler.instructions import MOST_CHUNKS, WORK, BufferPart, Instruction, Lowered, Operand
from unisono.compiler.lengths import Contents, contents_of
from unisono.compiler.routes import Routes, Sending
from unisono.errors import InternalError, UsageError
from unisono.schedule.schedule import DEEPEST
from unisono.verifier import ProvedSchedule


class Limits(NamedTuple):
    """The extremes over all ranks that the instructions of each rank depend on."""

    largest_message: int  # chunks
    most_sent: int  # chunks in all


def lower(proved: ProvedSchedule, rank: int, hosts: Hosts | None = None) -> Lowered:
    """Compile the program of one rank from proved steps; ``hosts`` are the ranks of each host, by default one host.

    Where the proof includes a codec, the sender keeps the rounded numbers that it sends; if the proof says so, the
    parts of the result that have not been rounded are rounded at the end.
    """
    if type(proved) is not ProvedSchedule:
        raise InternalError(messages.NOT_PROVED(found=type(proved).__name__))
    schedule, proof, rounding = proved.schedule, proved.proof, proved.rounding
    limits = Limits(int(proof.largest_message * schedule.chunks), int(proof.sent * schedule.chunks))
    if limits.largest_message > MOST_CHUNKS:
        raise UsageError(
            messages.MESSAGE_TOO_LONG(algorithm=schedule.label, chunks=limits.largest_message, limit=MOST_CHUNKS)
        )
    if proof.depth is None or proof.depth > DEEPEST:
        depth = messages.UNBOUNDED() if proof.depth is None else proof.depth
        raise UsageError(messages.TOO_DEEP(algorithm=schedule.label, depth=depth, deepest=DEEPEST))
    routes = Routes(schedule, hosts)
    if len(routes.near(rank)) + 1 < schedule.size:
        # Segments between hosts should be long, as every pass waits for the network: nothing is counted twice.
        limits = limits._replace(most_sent=min(limits.most_sent, routes.most_staged()))
    contents = contents_of(schedule, collectives.find(schedule.collective), rank)
    last = rounding is not None and rounding.last
    return lower_steps(routes, rank, limits, contents, rounds=rounding is not None, rounds_last=last)


def lower_steps(
    routes: Routes, rank: int, limits: Limits, contents: Contents | None, rounds: bool = False,
    rounds_last: bool = False,
) -> Lowered:  # fmt: skip
    """Compile the steps of one rank, proved or not; the engine accepts only the result of ``lower``.

    The simulator calls this for programs that are too large to prove. ``contents`` comes from ``contents_of``; None
    where the lengths of scratch slots do not matter. ``rounds``: a codec rounds the data that is sent;
    ``rounds_last``: the results that were not sent are rounded at the end.
    """
    schedule = routes.schedule
    collective = collectives.find(schedule.collective)
    assignment = BufferAssignment(schedule, collective, rank, contents, rounds)
    made = fuse(list(assignment.instructions(routes, rank)))
    results = tuple(assignment.target(slot, slot) for slot in assignment.results) if collective.carries_data else ()
    instructions, parts = _numbered(drop_dead_stores(made, results), results)
    return Lowered(
        instructions=tuple(instructions),
        results=results,
        silent_receivers=_silent_receivers(routes, collective, rank),
        largest_message=max(1, limits.largest_message),
        most_sent=max(1, limits.most_sent),
        near=routes.near(rank),
        parts=parts,
        rounded_last=tuple(assignment.target(slot, slot) for slot in assignment.unrounded_results())
        if rounds_last
        else (),
    )


def _silent_receivers(routes: Routes, collective: Collective, rank: int) -> tuple[int, ...]:
    """Return the ranks to which this rank sends and from which it never receives.

    Where every result depends on every rank this does not matter: no rank finishes unless all take part.
    """
    if not collective.rooted:
        return ()
    sent_to: set[int] = set()
    received_from: set[int] = set()
    for move in routes.linear(rank):
        if isinstance(move, Sending):
            sent_to.update(move.to)
        elif not move[1].is_local:
            received_from.add(int(move[1].other))  # type: ignore[arg-type]
    return tuple(sorted(sent_to - received_from))


def _numbered(
    instructions: list[Instruction], results: tuple[BufferPart, ...]
) -> tuple[list[Instruction], tuple[BufferPart, ...]]:
    """Number the slots of work memory without gaps, and list all parts."""
    used = [
        part
        for instruction in instructions
        for operand in instruction.operands
        for part in (operand.left, operand.right, operand.out)
        if part is not None
    ]
    work = {slot: number for number, slot in enumerate(sorted({p.slot for p in used if p.buffer == WORK}))}

    def moved(part: BufferPart) -> BufferPart:
        return part._replace(slot=work[part.slot]) if part.buffer == WORK else part

    def moved_or_none(part: BufferPart | None) -> BufferPart | None:
        return None if part is None else moved(part)

    renumbered = [
        instruction.with_(
            operands=tuple(
                Operand(moved(operand.left), moved_or_none(operand.right), moved_or_none(operand.out), operand.final)
                for operand in instruction.operands
            )
        )
        for instruction in instructions
    ]
    parts = dict.fromkeys(map(moved, used))
    parts.update(dict.fromkeys(results))
    return renumbered, tuple(parts)
