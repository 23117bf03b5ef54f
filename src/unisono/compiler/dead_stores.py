"""Removes stores that are never read: a sum that was passed on need not be kept."""

from __future__ import annotations

from collections.abc import Iterable

from unisono.compiler.instructions import COMBINE, COPY, RECEIVE, REDUCE, BufferPart, Instruction, Operand


def drop_dead_stores(instructions: list[Instruction], results: Iterable[BufferPart]) -> list[Instruction]:
    """Return the program without stores that are overwritten, or never read, and with the last ones marked final."""
    wanted = set(results)  # parts whose next value belongs to the result
    read_later: set[BufferPart] = set()
    kept: list[Instruction] = []
    for instruction in reversed(instructions):
        operands = []
        for operand in instruction.operands:
            if operand.out is not None:
                if operand.out in read_later or operand.out in wanted:
                    operand = operand._replace(final=operand.out not in read_later)
                    read_later.discard(operand.out)
                    wanted.discard(operand.out)
                elif instruction.kind in (COPY, COMBINE):
                    continue
                else:
                    operand = operand._replace(out=None)
            operands.append(operand)
        if not operands and instruction.operands:
            continue  # a local op without effect
        changed = instruction.with_(operands=tuple(operands))
        if changed.kind == REDUCE and changed.to is None and all(operand.out is None for operand in operands):
            changed = changed.with_(kind=RECEIVE) if len(changed.sources) == 1 else changed
        for operand in changed.operands:
            read_later.update(_read(changed, operand))
        kept.append(changed)
    return kept[::-1]


def _read(instruction: Instruction, operand: Operand) -> list[BufferPart]:
    reads = [] if instruction.kind == RECEIVE else [operand.left]
    return reads + ([operand.right] if operand.right is not None else [])
