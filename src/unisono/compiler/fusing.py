"""Makes one instruction of several that follow each other.

- Receive-reduces into the same chunks that follow each other directly become one, which adds all messages at
  once (a run: schedule/accumulation.py; it is part of what a program means).
- A send of this rank's own part, and the copy of it to the output, become one.
- A receive, or a receive-reduce, and the send that passes its result on become one: the result goes straight from
  one channel into the next.

An instruction that passes on keeps the incoming message until there is room for the outgoing one. So a channel must
be a message deeper than the proof says; the engine's are (docs/adr/0008).
"""

from __future__ import annotations

from unisono.compiler.instructions import COPY, RECEIVE, REDUCE, SEND, Instruction, Operand, Place
from unisono.schedule.accumulation import may_continue


def fuse(instructions: list[Instruction]) -> list[Instruction]:
    """Return the same program in fewer instructions."""
    fused: list[Instruction] = []
    for instruction in instructions:
        last = fused[-1] if fused else None
        if last is not None and _continues_run(last, instruction):
            fused[-1] = last.with_(sources=last.sources + instruction.sources)
        elif last is not None and _passes_on(last, instruction):
            fused[-1] = last.with_(to=instruction.to)
        else:
            fused.append(instruction)
    return _keep_while_sending(fused)


def _keep_while_sending(instructions: list[Instruction]) -> list[Instruction]:
    """Let the send that reads this rank's own part write it to the output too: it is then read once."""
    if not instructions or instructions[-1].kind != COPY:
        return instructions
    *before, last = instructions
    for at, instruction in enumerate(before):
        same = [operand.left for operand in instruction.operands] == [operand.left for operand in last.operands]
        if instruction.kind == SEND and same and not _touched(before, last.operands):
            return [*before[:at], instruction.with_(operands=last.operands), *before[at + 1 :]]
    return instructions


def _touched(instructions: list[Instruction], operands: tuple[Operand, ...]) -> bool:
    """Whether any instruction reads or writes what the operands write."""
    written = {operand.out for operand in operands}
    return any(
        place in written
        for instruction in instructions
        for operand in instruction.operands
        for place in (operand.left, operand.right, operand.out)
    )


def _written(operands: tuple[Operand, ...]) -> list[Place | None]:
    return [operand.out for operand in operands]


def _continues_run(first: Instruction, second: Instruction) -> bool:
    return (
        first.kind == second.kind == REDUCE
        and first.to is None
        and _written(first.operands) == _written(second.operands)
        and may_continue([source.peer for source in first.sources], second.sources[0].peer)
    )


def _passes_on(first: Instruction, second: Instruction) -> bool:
    return (
        first.kind in (RECEIVE, REDUCE)
        and second.kind == SEND
        and first.to is None
        and _written(first.operands) == [operand.left for operand in second.operands]
    )
