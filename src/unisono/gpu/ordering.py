"""Turns compiled instructions into atoms, in an order in which all ranks could execute them one after another.

The order respects the programs: a chunk is read after it was sent, and memory that was sent by *pull* is not
overwritten before every receiver has read it. Where the ranks would block each other that way, the messages for which
a writer waits are staged instead, and the ordering begins again.

Only the reads and writes of the atoms count from there on (hazards.py): any execution that respects their
dependencies gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from unisono.compiler.instructions import COMBINE, INPUT, RECEIVE, REDUCE, SEND, WORK, Instruction, Operand
from unisono.errors import InternalError
from unisono.gpu import messages, program
from unisono.gpu.matching import Matched, Message
from unisono.gpu.places import Atom, Place, place_of
from unisono.gpu.transports import Movers, Transport, Transports, transports_of

Pulled = tuple[Message, int]  # a chunk of a message


@dataclass
class Ordered:
    """The atoms of all ranks in an executable order, and the scratch slots of each rank."""

    atoms: list[Atom]
    plain_slots: list[int]
    encoded_slots: list[int]


def order(matched: Matched, encodes: bool, aliased: bool, movers: Movers = Movers.SENDERS) -> Ordered:
    """Return the atoms.

    ``encodes``: a codec encodes messages; ``aliased``: an input may lie in the output.
    """
    transports = transports_of(matched, encodes, aliased, movers)
    while True:
        run = _Run(matched, transports, encodes, aliased)
        blocking = run.execute()
        if not blocking:
            return Ordered(run.atoms, run.plain_slots, run.encoded_slots)
        for message, chunk in blocking:
            for receiver in message.receivers:
                if transports[message, chunk, receiver] is Transport.PULL:
                    transports[message, chunk, receiver] = Transport.STAGED


def memory(place: Place, aliased: bool) -> Hashable:
    """Return what distinguishes memory: two places with the same key may be the same bytes."""
    if aliased and place.buffer == program.INPUT:
        return (place.rank, program.OUTPUT, place.slot, False)
    return (place.rank, place.buffer, place.slot, place.encoded)


@dataclass
class _Run:
    matched: Matched
    transports: Transports
    encodes: bool
    aliased: bool
    atoms: list[Atom] = field(default_factory=list)

    def __post_init__(self) -> None:
        size = len(self.matched.programs)
        self.positions = [(0, 0)] * size  # instruction and chunk
        self.plain_slots = [_work_slots(instructions) for instructions in self.matched.programs]
        self.encoded_slots = [0] * size
        self.homes: dict[Pulled, Place] = {}  # where a chunk that was sent can be read
        self.sent: set[Pulled] = set()
        self.unread: dict[Hashable, set[tuple[Message, int, int]]] = {}  # by memory: pulls that are still to come

    def execute(self) -> set[Pulled]:
        """Run all programs to their end; return the chunks that block writers if they cannot continue."""
        ranks = range(len(self.matched.programs))
        moved = True
        while moved:
            moved = False
            for rank in ranks:
                while self._advance(rank):
                    moved = True
        if all(self.positions[rank][0] == len(self.matched.programs[rank]) for rank in ranks):
            return set()
        blocking = {(m, chunk) for rank in ranks for m, chunk, _ in self._blocking(rank)}
        if not blocking:
            raise InternalError(messages.STUCK())
        return blocking

    def _advance(self, rank: int) -> bool:
        """Execute the next chunk of a rank if that is possible."""
        index, chunk = self.positions[rank]
        if index == len(self.matched.programs[rank]):
            return False
        instruction = self.matched.programs[rank][index]
        incoming = self.matched.received[rank].get(index, [])
        if any((message, chunk) not in self.sent for message in incoming):
            return False
        if not instruction.operands:
            self._pass_token(rank, index, incoming)
            self.positions[rank] = (index + 1, 0)
            return True
        atom = self._atom(rank, index, chunk)
        own = {(message, chunk, rank) for message in incoming}
        if any(self.unread.get(memory(place, self.aliased), set()) - own for place in atom.destinations):
            return False
        self._execute(atom, rank, index, chunk, incoming)
        last = chunk + 1 == len(instruction.operands)
        self.positions[rank] = (index + 1, 0) if last else (index, chunk + 1)
        return True

    def _blocking(self, rank: int) -> set[tuple[Message, int, int]]:
        """Return the pulls for which the next write of a rank waits."""
        index, chunk = self.positions[rank]
        if index == len(self.matched.programs[rank]):
            return set()
        incoming = self.matched.received[rank].get(index, [])
        if any((message, chunk) not in self.sent for message in incoming):
            return set()
        own = {(message, chunk, rank) for message in incoming}
        atom = self._atom(rank, index, chunk)
        found = set()
        for place in atom.destinations:
            found |= self.unread.get(memory(place, self.aliased), set()) - own
        return found

    def _execute(self, atom: Atom, rank: int, index: int, chunk: int, incoming: list[Message]) -> None:
        if atom.destinations:
            self.atoms.append(atom)
        for message in incoming:
            home = self.homes.get((message, chunk))
            if home is not None:
                self.unread.get(memory(home, self.aliased), set()).discard((message, chunk, rank))
        outgoing = self.matched.sent[rank].get(index)
        if outgoing is None:
            return
        self.sent.add((outgoing, chunk))
        staged = self._slot(rank, outgoing, chunk)
        if staged is not None:
            if staged.encoded:
                self.encoded_slots[rank] += 1
            else:
                self.plain_slots[rank] += 1
            self.homes[outgoing, chunk] = staged
            return
        pulls = self._receivers(outgoing, chunk, Transport.PULL)
        if pulls:
            operand = self.matched.programs[rank][index].operands[chunk]
            home = self._home(rank, self.matched.programs[rank][index], operand)
            self.homes[outgoing, chunk] = home
            unread = self.unread.setdefault(memory(home, self.aliased), set())
            unread.update((outgoing, chunk, to) for to in pulls)

    def _pass_token(self, rank: int, index: int, incoming: list[Message]) -> None:
        """Receive or send empty messages: what counts is the order in which they arrive."""
        message = self.matched.sent[rank].get(index)
        token: Hashable = ("arrived", rank)
        sent = () if message is None else (message,)
        reads = (*incoming, *(() if incoming else (token,)))
        self.atoms.append(Atom(rank, reads=reads, writes=(*sent, *((token,) if incoming else ()))))
        self.sent.update((each, 0) for each in sent)

    def _atom(self, rank: int, index: int, chunk: int) -> Atom:
        """Return the move of one chunk; without destinations where nothing has to be moved."""
        instruction = self.matched.programs[rank][index]
        operand = instruction.operands[chunk]
        message = self.matched.sent[rank].get(index)
        incoming = self.matched.received[rank].get(index, [])
        sources = [place_of(rank, operand.left)] if instruction.kind != RECEIVE else []
        sources += [place_of(rank, operand.right)] if operand.right is not None else []
        kept = operand.out is not None
        for each in incoming:
            transport = self.transports[each, chunk, rank]
            if transport is Transport.PUT:  # it lies in the output already
                assert operand.out is not None
                sources.append(place_of(rank, operand.out))
                kept = False
            elif transport is not Transport.UNUSED:
                sources.append(self.homes[each, chunk])
        destinations = [place_of(rank, operand.out)] if kept and operand.out is not None else []
        if message is not None:
            destinations += self._sent_to(rank, instruction, operand, message, chunk, kept)
        copies = instruction.kind not in (REDUCE, COMBINE)
        if copies and not self.encodes:
            destinations = [place for place in destinations if place != sources[0]]
        flags = 0 if copies else program.REDUCE
        if any(place.encoded for place in destinations):
            flags |= program.ROUND
        return Atom(rank, tuple(sources), tuple(destinations), flags)

    def _sent_to(
        self, rank: int, instruction: Instruction, operand: Operand, message: Message, chunk: int, kept: bool
    ) -> list[Place]:
        """Return where a move has to write so that the receivers get a chunk."""
        found = []
        for receiver in self._receivers(message, chunk, Transport.PUT):
            out = self.matched.programs[receiver][message.taken[receiver]].operands[chunk].out
            assert out is not None
            found.append(place_of(receiver, out))
        staged = self._slot(rank, message, chunk)
        if staged is not None:
            found.append(staged)
        elif self._receivers(message, chunk, Transport.PULL) and instruction.kind != SEND and operand.out is None:
            found.append(self._home(rank, instruction, operand))
        return found

    def _home(self, rank: int, instruction: Instruction, operand: Operand) -> Place:
        """Return where the receivers read a chunk that this rank sends by pull.

        A sum that is passed on is often not kept; then it may replace its first operand, which is not needed again.
        """
        if instruction.kind != SEND and operand.out is not None:
            return place_of(rank, operand.out)
        return place_of(rank, operand.left)

    def _slot(self, rank: int, message: Message, chunk: int) -> Place | None:
        """Return the scratch slot of a chunk that is staged, None if it is not."""
        instruction = self.matched.programs[rank][message.index]
        operand = instruction.operands[chunk]
        homeless = instruction.kind != SEND and operand.out is None and operand.left.buffer == INPUT
        staged = self._receivers(message, chunk, Transport.STAGED)
        if not staged and not (homeless and self._receivers(message, chunk, Transport.PULL)):
            return None
        slot = self.encoded_slots[rank] if self.encodes else self.plain_slots[rank]
        return Place(rank, program.SCRATCH, slot, operand.left.length_of, self.encodes)

    def _receivers(self, message: Message, chunk: int, transport: Transport) -> list[int]:
        return [to for to in message.receivers if self.transports[message, chunk, to] is transport]


def _work_slots(instructions: tuple[Instruction, ...]) -> int:
    parts = [
        part
        for instruction in instructions
        for operand in instruction.operands
        for part in (operand.left, operand.right, operand.out)
        if part is not None and part.buffer == WORK
    ]
    return 1 + max((part.slot for part in parts), default=-1)
