"""Proves that all ranks agree when a codec rounds the numbers that are sent.

*Codec*: a way to write numbers in fewer bytes, which *rounds* them. The sender rounds the numbers in its own memory
too, so that both ends continue with the same ones, and rounding a rounded number changes nothing. In symbols: sending
puts R(.) around the content of a slot, on both sides, and R(R(x)) = R(x).

That is not always enough. Where some ranks send their result and others do not, the latter must round theirs once
more at the end. A codec may also round stochastically: two ranks that round the same number then get different ones,
and ranks agree only on numbers that one of them has rounded for all.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from unisono import collectives
from unisono.collectives import Collective
from unisono.errors import GoalError
from unisono.schedule import Chunks, Schedule, freeze
from unisono.schedule.network import run
from unisono.verifier import messages
from unisono.verifier.cache import cache_directory, content_digest, load, store
from unisono.verifier.memory import SymbolicMemory
from unisono.verifier.proved import SEAL, ProvedSchedule, Rounding


class RoundingMemory(SymbolicMemory):
    """Slots whose content is rounded when it is sent."""

    at_random = False

    def send(self, rank: int, chunks: Chunks) -> Any:
        """Return the rounded symbols that are sent; the sender keeps the same."""
        sent = self.read(rank, chunks)
        row = self.rows[rank]
        if isinstance(chunks, int):
            row[chunks] = self._rounded(rank, sent)
            return row[chunks]
        rounded = [self._rounded(rank, symbol) for symbol in sent]
        for chunk, symbol in zip(chunks, rounded, strict=True):
            row[chunk] = symbol
        return rounded

    def _rounded(self, rank: int, symbol: int) -> int:
        return self.symbols.round(symbol, rank if self.at_random else None)

    def round_results(self) -> None:
        """Let every rank round its result."""
        for rank, row in enumerate(self.rows):
            row[: self.schedule.chunks] = [self._rounded(rank, symbol) for symbol in row[: self.schedule.chunks]]

    def difference(self) -> GoalError | None:
        """Return the error for two ranks that disagree, or None."""
        schedule, expression = self.schedule, self.symbols.expression
        first = self.rows[0][: schedule.chunks]
        for rank, row in enumerate(self.rows):
            if row[: schedule.chunks] == first:
                continue
            chunk = next(chunk for chunk in range(schedule.chunks) if row[chunk] != first[chunk])
            return GoalError(
                (messages.ROUNDED_AT_RANDOM if self.at_random else messages.ROUNDED_DIFFERENTLY)(chunk=chunk),
                algorithm=schedule.label, size=schedule.size, rank=rank, chunk=chunk,
                expected=messages.AS_ON_RANK(rank=0, expression=expression(first[chunk], 400)),
                found=expression(row[chunk], 400), hint=messages.ADD_ON_ONE_RANK(),
            )  # fmt: skip
        return None


def count_roundings(schedule: Schedule, at_random: bool = False) -> int:
    """Return the most roundings in the expression of a result, where a codec rounds the data that is sent.

    A rounding counts as often as it stands in the expression of the result: in R(R(a0)+R(a1)) there are three. With p
    ranks there are at most 2p - 1, as the expression of a sum of p inputs has 2p - 1 parts, and R(R(x)) = R(x).
    ``unisono.codecs.error_bound`` takes the number. Raises GoalError if ranks would not agree.
    """
    collective = collectives.find(schedule.collective)
    if not collective.carries_data:
        return 0
    memory, _ = _played_with_codec(schedule, collective, at_random)
    counts = memory.symbols.roundings()
    return max(counts[symbol] for symbol in memory.results())


def prove_rounding(schedule: Schedule, at_random: bool = False) -> Rounding:
    """Prove that all ranks agree, or raise the GoalError that says where they do not; the schedule has been proved.

    ``at_random``: the codec rounds stochastically, differently on every rank.
    """
    collective = collectives.find(schedule.collective)
    about = (schedule.label, schedule.size, at_random)
    if not collective.shares_result:
        return Rounding(*about, last=False)  # every number of the result is on one rank only
    return Rounding(*about, last=_played_with_codec(schedule, collective, at_random)[1])


def _played_with_codec(schedule: Schedule, collective: Collective, at_random: bool) -> tuple[RoundingMemory, bool]:
    """Execute the schedule; return the memory, and whether ranks must round their results once more to agree."""
    memory = RoundingMemory(schedule, collective)
    memory.at_random = at_random
    run(schedule, memory, read_sent=memory.send)
    difference = memory.difference() if collective.shares_result else None
    if difference is None:
        return memory, False
    if not at_random:
        memory.round_results()
        if memory.difference() is None:
            return memory, True
    raise difference


def rounding_of(
    schedule: Schedule, at_random: bool = False, directory: Path | None = None, warns: bool = True
) -> Rounding:
    """Return the proof, from the cache if possible; raise GoalError if ranks disagree."""
    if not collectives.find(schedule.collective).shares_result:
        return prove_rounding(schedule, at_random)  # nothing is executed: there is nothing to store
    directory = directory or cache_directory()
    frozen = freeze(schedule)
    digest = content_digest(frozen, f"rounding{' at random' if at_random else ''}")
    found = load(directory, digest, warns)
    if found is not None and set(found) == {field.name for field in fields(Rounding)}:
        known = Rounding(**found)
        about = (known.algorithm, known.size, known.at_random)
        if type(known.last) is bool and about == (schedule.label, schedule.size, at_random):
            return known
    rounding = prove_rounding(frozen, at_random)
    store(directory, digest, asdict(rounding))
    return rounding


def proved_with_codec(
    proved: ProvedSchedule, at_random: bool = False, directory: Path | None = None, warns: bool = True
) -> ProvedSchedule:
    """Prove for the same steps that all ranks agree with a codec; raise GoalError if they do not."""
    return proved.with_rounding(rounding_of(proved.schedule, at_random, directory, warns), SEAL)
