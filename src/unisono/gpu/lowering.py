"""Lowers the proved programs of all ranks to device programs for any lengths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from unisono import collectives
from unisono.collectives import OWN, Collective
from unisono.compiler import Lowered, lower
from unisono.gpu import program
from unisono.gpu.dividing import divide
from unisono.gpu.hazards import Hazards
from unisono.gpu.matching import match
from unisono.gpu.ordering import order
from unisono.gpu.places import Atom, place_of
from unisono.gpu.steps import PlacedStep, steps_of
from unisono.gpu.transports import Movers
from unisono.schedule import FrozenSchedule
from unisono.verifier import ProvedSchedule, Rounding


@dataclass(frozen=True, eq=False)
class LoweredForDevice:
    """The device programs of all ranks, for any lengths and types."""

    schedule: FrozenSchedule
    collective: Collective
    programs: tuple[tuple[PlacedStep, ...], ...]
    plain_slots: tuple[int, ...]  # of the scratch memory of each rank
    encoded_slots: tuple[int, ...]
    contacts: tuple[tuple[int, ...], ...]  # of each rank: the ranks with which it exchanges anything
    first_content: dict[tuple[int, int], int]  # by rank and plain scratch slot: the slot that it is first as long as

    @property
    def uses_reduction(self) -> bool:
        """Whether any rank combines or divides numbers."""
        combines = program.REDUCE | program.DIVIDE
        return any(move.flags & combines for steps in self.programs for step in steps for move in step.moves)


def lower_for_device(
    proved: ProvedSchedule, divides: bool = False, movers: Movers = Movers.SENDERS
) -> LoweredForDevice:  # fmt: skip
    """Return the device programs of a proved schedule.

    ``divides``: the results are averages. By default, senders write into the outputs of receivers where they can.
    """
    key = (proved.digest, proved.rounding, divides, movers)
    return _kept(key, _Given(proved))


class _Given:
    """A proved schedule that is equal to every other one, so that a cache compares only the key beside it."""

    def __init__(self, proved: ProvedSchedule) -> None:
        self.proved = proved

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Given)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=512)
def _kept(key: tuple[str, Rounding | None, bool, Movers], given: _Given) -> LoweredForDevice:
    proved, (_, _, divides, movers) = given.proved, key
    schedule = proved.schedule
    collective = collectives.find(schedule.collective)
    ranks = range(schedule.size)
    lowered = [lower(proved, rank) for rank in ranks]
    encodes = proved.rounding is not None
    aliased = collective.in_place and collective.blocked and OWN in (collective.before.root, collective.before.others)
    ordered = order(match(lowered), encodes, aliased, movers)
    atoms = ordered.atoms + _last_atoms(lowered, ordered.atoms, encodes, divides, aliased)
    hazards = Hazards(aliased)
    for atom in atoms:
        hazards.add(atom)
    contacts = _contacts(atoms, schedule.size)
    atoms += [hazards.add_end(rank, (atom.level for atom in atoms if atom.rank == rank)) for rank in ranks]
    programs = steps_of(atoms, schedule.size)
    return LoweredForDevice(
        schedule, collective, tuple(map(tuple, programs)), tuple(ordered.plain_slots), tuple(ordered.encoded_slots),
        contacts, _first_content(atoms),
    )  # fmt: skip


def _first_content(atoms: list[Atom]) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for atom in atoms:
        for place in atom.destinations:
            if place.buffer == program.SCRATCH and not place.encoded:
                found.setdefault((place.rank, place.slot), place.length_of)
    return found


def _last_atoms(lowered: list[Lowered], atoms: list[Atom], encodes: bool, divides: bool, aliased: bool) -> list[Atom]:
    """Return what each rank does with its results at the end: round them once more, and divide them."""
    rounded = [place_of(rank, part) for rank, each in enumerate(lowered) for part in each.rounded_last]
    last = [Atom(place.rank, (place,), (place,), program.ROUND) for place in rounded]
    if divides:
        results = [place_of(rank, part) for rank, each in enumerate(lowered) for part in each.results]
        if encodes:  # what travels is the sum, rounded
            last += [Atom(place.rank, (place,), (place,), program.DIVIDE) for place in results]
        else:
            last += divide(atoms, results, aliased)
    return last


def _contacts(atoms: list[Atom], size: int) -> tuple[tuple[int, ...], ...]:
    """Return the ranks whose memory a rank touches, that touch its memory, or with which it synchronizes."""
    pairs: set[tuple[int, int]] = set()
    for atom in atoms:
        pairs.update((atom.rank, place.rank) for place in (*atom.sources, *atom.destinations))
        pairs.update((atom.rank, other.rank) for other in atom.after)
    pairs |= {(peer, rank) for rank, peer in pairs}
    return tuple(tuple(sorted({b for a, b in pairs if a == rank and b != rank})) for rank in range(size))
