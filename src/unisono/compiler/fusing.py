"""Merges consecutive instructions.

- Consecutive receive-reduces into the same chunks become one, which adds all messages at once
  (schedule/accumulation.py; it is part of the meaning of a program).
- The send of a rank's own part and the copy of it to the output become one.
- A receive, or a receive-reduce, and the send that passes its result on become one: the result goes straight from
  one channel into the next.

A fused instruction holds the incoming message until there is room for the outgoing one, so a channel must be one
message deeper than the proof says; the engine's channels are (docs/adr/0008, docs/adr/0034).
"""

from __future__ import annotations

from unisono.compiler.instructions import COPY, RECEIVE, REDUCE, SEND, BufferPart, Instruction, Operand
from unisono.schedule.accumulation import may_continue


def fuse(instructions: list[Instruction]) -> list[Instruction]:
    """Return the same program in fewer instructions."""
    fused: list[Instruction] = []
    for instruction in instructions:
        last = fused[-1] if fused else None
        if last is not None and _continues_accumulation(last, instruction):
            fused[-1] = last.with_(
                sources=last.sources + instruction.sources, later_steps=(*last.later_steps, instruction.step)
            )
        elif last is not None and _passes_on(last, instruction):
            fused[-1] = last.with_(to=instruction.to, sent_step=instruction.step)
        else:
            fused.append(instruction)
    return _keep_while_sending(fused)


def _keep_while_sending(instructions: list[Instruction]) -> list[Instruction]:
    """Let the send of this rank's own part also write it to the output, so that it is read only once."""
    if not instructions or instructions[-1].kind != COPY:
        return instructions
    *before, last = instructions
    for at, instruction in enumerate(before):
        same = [operand.left for operand in instruction.operands] == [operand.left for operand in last.operands]
        if instruction.kind != SEND or not same or _overwritten(before[at + 1 :], last.operands):
            continue
        if not _touched(before, last.operands):
            return [*before[:at], instruction.with_(operands=last.operands), *before[at + 1 :]]
    return instructions


def _overwritten(instructions: list[Instruction], operands: tuple[Operand, ...]) -> bool:
    """Return whether any instruction writes a part that the operands read."""
    read = {operand.left for operand in operands}
    return any(operand.out in read for instruction in instructions for operand in instruction.operands)


def _touched(instructions: list[Instruction], operands: tuple[Operand, ...]) -> bool:
    """Return whether any instruction reads or writes a part that the operands write."""
    written = {operand.out for operand in operands}
    return any(
        part in written
        for instruction in instructions
        for operand in instruction.operands
        for part in (operand.left, operand.right, operand.out)
    )


def _written(operands: tuple[Operand, ...]) -> list[BufferPart | None]:
    return [operand.out for operand in operands]


def _continues_accumulation(first: Instruction, second: Instruction) -> bool:
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
