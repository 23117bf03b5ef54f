"""The arguments of a call, checked the same way for all collectives: the arrays, their lengths, and how they fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from unisono.collectives import NOTHING, OWN, Collective
from unisono.comm import gpu_messages, messages
from unisono.comm.arrays import ANY_DEVICE, NO_ARRAY, Array, array_of, device_name
from unisono.comm.call_request import NO_ELEMENTS, CallRequest
from unisono.compiler import Lengths
from unisono.errors import UsageError
from unisono.message import Message

ARRAY, INPUT, OUTPUT = messages.THE_ARRAY(), messages.THE_INPUT(), messages.THE_OUTPUT()


class Given(NamedTuple):
    """The arrays and sizes of a call, as the caller passed them."""

    out: Any = None
    array: Any = None
    sizes: Sequence[int] | None = None
    out_sizes: Sequence[int] | None = None


class Arguments(NamedTuple):
    """The arrays of a call, and the lengths that follow from them."""

    input: Array
    output: Array
    dtype: str
    lengths: Lengths
    device: int | None = None  # of the arrays; None: the CPU


NO_ARGUMENTS = Arguments(NO_ARRAY, NO_ARRAY, "uint8", NO_ELEMENTS)  # of a barrier


def arguments_of(request: CallRequest, rank: int, size: int, given: Given) -> Arguments:
    """Check the arrays of a call; raise UsageError before any byte moves."""
    collective = request.collective
    if not collective.carries_data:
        return NO_ARGUMENTS
    is_root = request.root is None or rank == request.root
    before = collective.before.root if is_root else collective.before.others
    after = collective.after.root if is_root else collective.after.others
    if collective.single_array:
        # The ranks that get no result pass an array of the same length, which is not written.
        array = array_of(given.out, _name(collective, ARRAY), writable=after is not NOTHING)
        return Arguments(array, array, array.dtype, Lengths((array.length,), (array.length,)), array.device)

    output = _part(collective, OUTPUT, given.out, after is not NOTHING, True)
    source = _part(collective, INPUT, given.array, before is not NOTHING, False)
    dtypes = {part.dtype for part in (output, source) if part is not NO_ARRAY}
    if len(dtypes) > 1:
        raise UsageError(messages.DTYPES_DIFFER(call=collective, output=output.dtype, input=source.dtype))
    device = _device(collective, output, source)
    lengths = _lengths(collective, rank, size, given, output, source, before, after)
    in_place = before is OWN and output.address + sum(lengths.input[:rank]) * _bytes(source) == source.address
    if output is not NO_ARRAY and source is not NO_ARRAY and output.overlaps(source) and not in_place:
        overlap = messages.ARRAYS_OVERLAP_ELSEWHERE if before is OWN else messages.ARRAYS_OVERLAP
        raise UsageError(overlap(call=collective))
    return Arguments(source, output, dtypes.pop(), lengths, device)


def _name(collective: Collective, name: str) -> Message:
    return messages.ARRAY_OF_CALL(call=collective, name=name)


def _device(collective: Collective, output: Array, source: Array) -> int | None:
    """Return the device on which all arrays of a call are; raise UsageError if they are on different ones."""
    given = [array.device for array in (output, source) if array is not NO_ARRAY]
    known = {device for device in given if device != ANY_DEVICE}
    if len(known) > 1 or (None in known and len(set(given)) > 1):
        places = {"output": device_name(output.device), "input": device_name(source.device)}
        raise UsageError(gpu_messages.DEVICES_DIFFER(call=collective, **places))
    return known.pop() if known else ANY_DEVICE


def _bytes(array: Array) -> int:
    return array.nbytes // array.length if array.length else 0


def _part(collective: Collective, name: str, given: Any, needed: bool, writable: bool) -> Array:
    if not needed:
        if given is not None:
            raise UsageError(messages.NOT_ON_THIS_RANK(call=collective, name=name))
        return NO_ARRAY
    if given is None:
        raise UsageError(messages.ARRAY_MISSING(call=collective, name=name))
    return array_of(given, _name(collective, name), writable)


def _lengths(
    collective: Collective, rank: int, size: int, given: Given, output: Array, source: Array, before: object,
    after: object,
) -> Lengths:  # fmt: skip
    """Return the length of every block; raise UsageError unless the arrays have these lengths."""
    sizes, out_sizes = given.sizes, given.out_sizes
    if not collective.in_place:
        if (sizes is None) != (out_sizes is None):
            raise UsageError(messages.GIVE_BOTH_SIZES(call=collective))
        if sizes is not None and out_sizes is not None:
            rows = _checked(collective, "in_sizes", sizes, size), _checked(collective, "out_sizes", out_sizes, size)
            _check_length(collective, INPUT, source, sum(rows[0]))
            _check_length(collective, OUTPUT, output, sum(rows[1]))
            return Lengths(*rows, known_to_all=False)
        blocks = _equal(collective, size, source)
        _check_length(collective, OUTPUT, output, source.length)
        return Lengths(blocks, blocks)
    if sizes is not None:
        name = "out_sizes" if collective.before.others is OWN else "in_sizes"
        blocks = _checked(collective, name, sizes, size)
    else:
        own = source if before is OWN else output if after is OWN else None
        whole = source if before is not OWN and source is not NO_ARRAY else output
        blocks = (own.length,) * size if own is not None else _equal(collective, size, whole)
    for name, array, part in ((INPUT, source, before), (OUTPUT, output, after)):
        if array is not NO_ARRAY:
            _check_length(collective, name, array, blocks[rank] if part is OWN else sum(blocks))
    return Lengths(blocks, blocks)


def _equal(collective: Collective, size: int, array: Array) -> tuple[int, ...]:
    if array.length % size:
        raise UsageError(messages.NOT_DIVISIBLE(call=collective, count=array.length, size=size))
    return (array.length // size,) * size


def _checked(collective: Collective, name: str, sizes: Sequence[int], size: int) -> tuple[int, ...]:
    lengths = tuple(int(length) for length in sizes)
    if len(lengths) != size or min(lengths) < 0:
        raise UsageError(messages.BAD_SIZES(call=collective, name=name, sizes=list(sizes), size=size))
    return lengths


def _check_length(collective: Collective, name: str, array: Array, expected: int) -> None:
    if array.length != expected:
        raise UsageError(messages.WRONG_LENGTH(call=collective, name=name, length=array.length, expected=expected))
