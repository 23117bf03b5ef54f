"""From one rank's program to the engine's instructions."""

from __future__ import annotations

from unisono import collectives
from unisono.collectives import Collective
from unisono.compiler import messages
from unisono.compiler.dead_stores import drop_dead_stores
from unisono.compiler.fusing import fuse
from unisono.compiler.instructions import MOST_CHUNKS, WORK, Instruction, Lowered, Operand, Place
from unisono.compiler.lengths import contents_of
from unisono.compiler.places import Placing
from unisono.compiler.routes import Routes, Sending
from unisono.errors import InternalError, UsageError
from unisono.schedule.schedule import DEEPEST
from unisono.verifier import ProvedSchedule


def lower(proved: ProvedSchedule, rank: int) -> Lowered:
    """Compile the program of one rank: the steps that were proved, and nothing else can be given.

    Where the proof is one with a codec, the sender keeps the rounded numbers of what it sends; and if the proof says
    so, what of the result has not been rounded is so at the end.
    """
    if type(proved) is not ProvedSchedule:
        raise InternalError(messages.NOT_PROVED(found=type(proved).__name__))
    schedule, proof, rounding = proved.schedule, proved.proof, proved.rounding
    largest_message, most_sent = int(proof.largest_message * schedule.chunks), int(proof.sent * schedule.chunks)
    if largest_message > MOST_CHUNKS:
        raise UsageError(
            messages.MESSAGE_TOO_LONG(algorithm=schedule.label, chunks=largest_message, limit=MOST_CHUNKS)
        )
    if proof.depth is None or proof.depth > DEEPEST:
        depth = messages.UNBOUNDED() if proof.depth is None else proof.depth
        raise UsageError(messages.TOO_DEEP(algorithm=schedule.label, depth=depth, deepest=DEEPEST))
    collective = collectives.find(schedule.collective)
    routes = Routes(schedule)
    contents = contents_of(schedule, collective)
    placing = Placing(schedule, collective, rank, None if contents is None else contents[rank], rounding is not None)
    made = fuse(list(placing.instructions(routes, rank)))
    results = tuple(placing.target(slot, slot) for slot in placing.results) if collective.carries_data else ()
    instructions, places = _numbered(drop_dead_stores(made, results), results)
    return Lowered(
        instructions=tuple(instructions),
        results=results,
        silent_receivers=_unheard(routes, collective, rank),
        largest_message=max(1, largest_message),
        most_sent=max(1, most_sent),
        places=places,
        rounded_last=tuple(placing.target(slot, slot) for slot in placing.unrounded_results())
        if rounding is not None and rounding.last
        else (),
    )


def _unheard(routes: Routes, collective: Collective, rank: int) -> tuple[int, ...]:
    """Return whom the rank sends to and never hears of.

    Where everybody's result depends on everybody this does not matter: nobody gets to the end unless all take part.
    """
    if not collective.rooted:
        return ()
    sent_to: set[int] = set()
    heard_of: set[int] = set()
    for move in routes.linear(rank):
        if isinstance(move, Sending):
            sent_to.update(move.to)
        elif not move[1].is_local:
            heard_of.add(int(move[1].other))  # type: ignore[arg-type]
    return tuple(sorted(sent_to - heard_of))


def _numbered(
    instructions: list[Instruction], results: tuple[Place, ...]
) -> tuple[list[Instruction], tuple[Place, ...]]:
    """Number the slots of work memory without gaps, and list all places."""
    used = [
        place
        for instruction in instructions
        for operand in instruction.operands
        for place in (operand.left, operand.right, operand.out)
        if place is not None
    ]
    work = {slot: number for number, slot in enumerate(sorted({p.slot for p in used if p.buffer == WORK}))}

    def moved(place: Place) -> Place:
        return place._replace(slot=work[place.slot]) if place.buffer == WORK else place

    def moved_or_none(place: Place | None) -> Place | None:
        return None if place is None else moved(place)

    renumbered = [
        instruction.with_(
            operands=tuple(
                Operand(moved(operand.left), moved_or_none(operand.right), moved_or_none(operand.out), operand.final)
                for operand in instruction.operands
            )
        )
        for instruction in instructions
    ]
    places = dict.fromkeys(map(moved, used))
    places.update(dict.fromkeys(results))
    return renumbered, tuple(places)
