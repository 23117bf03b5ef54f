"""One look at the arguments of a call, for all collectives: which arrays, how long, do they fit together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from unisono.collectives import NOTHING, OWN, Collective
from unisono.comm.arrays import NO_ARRAY, Array, array_of
from unisono.compiler import Lengths
from unisono.errors import UsageError


class Arguments(NamedTuple):
    """The arrays of a call, and the lengths that follow from them."""

    input: Array
    output: Array
    dtype: str
    lengths: Lengths

    @classmethod
    def nothing(cls) -> Arguments:
        """Return the arguments of a call without arrays."""
        return cls(NO_ARRAY, NO_ARRAY, "uint8", Lengths((0,), (0,)))


def arguments_of(
    collective: Collective, rank: int, size: int, root: int | None, out: Any, array: Any,
    sizes: Sequence[int] | None, out_sizes: Sequence[int] | None,
) -> Arguments:  # fmt: skip
    """Check what was given to a call; raise UsageError before any byte has moved."""
    is_root = root is None or rank == root
    before = collective.before.root if is_root else collective.before.others
    after = collective.after.root if is_root else collective.after.others
    if collective.single_array:
        # The ranks that get no result pass their array too: as long as the others', but it is not written.
        given = array_of(out, f"{collective}: the array", writable=after is not NOTHING)
        return Arguments(given, given, given.dtype, Lengths((given.length,), (given.length,)))

    output = _part(collective, "out", out, after is not NOTHING, True)
    source = _part(collective, "the input", array, before is not NOTHING, False)
    dtypes = {name: part.dtype for name, part in (("out", output), ("the input", source)) if part is not NO_ARRAY}
    if len(set(dtypes.values())) > 1:
        raise UsageError(
            f"{collective}: out is {output.dtype} and the input is {source.dtype}; expected the same dtype"
        )
    lengths = _lengths(collective, rank, size, sizes, out_sizes, output, source, before, after)
    in_place = before is OWN and output.address + sum(lengths.input[:rank]) * _bytes(source) == source.address
    if output is not NO_ARRAY and source is not NO_ARRAY and output.overlaps(source) and not in_place:
        raise UsageError(
            f"{collective}: out and the input overlap in memory; expected two arrays apart"
            + (", or the input to be this rank's part of out" if before is OWN else "")
        )
    return Arguments(source, output, next(iter(dtypes.values())), lengths)


def _bytes(array: Array) -> int:
    return array.nbytes // array.length if array.length else 0


def _part(collective: Collective, name: str, given: Any, needed: bool, writable: bool) -> Array:
    if not needed:
        if given is not None:
            raise UsageError(
                f"{collective}: {name} is given on a rank that has none; expected None, as it is not the root"
            )
        return NO_ARRAY
    if given is None:
        raise UsageError(f"{collective}: {name} is missing; expected an array on this rank")
    return array_of(given, f"{collective}: {name}", writable)


def _lengths(
    collective: Collective, rank: int, size: int, sizes: Sequence[int] | None, out_sizes: Sequence[int] | None,
    output: Array, source: Array, before: object, after: object,
) -> Lengths:  # fmt: skip
    """Return the length of every block, and look whether the arrays are that long."""
    if not collective.in_place:
        if (sizes is None) != (out_sizes is None):
            raise UsageError(f"{collective}: give both in_sizes and out_sizes, or neither")
        if sizes is not None and out_sizes is not None:
            rows = _checked(collective, "in_sizes", sizes, size), _checked(collective, "out_sizes", out_sizes, size)
            _check_length(collective, "the input", source, sum(rows[0]))
            _check_length(collective, "out", output, sum(rows[1]))
            return Lengths(*rows, equal=False)
        blocks = _equal(collective, size, source)
        _check_length(collective, "out", output, source.length)
        return Lengths(blocks, blocks)
    if sizes is not None:
        name = "out_sizes" if collective.before.others is OWN else "in_sizes"
        blocks = _checked(collective, name, sizes, size)
    else:
        own = source if before is OWN else output if after is OWN else None
        whole = source if before is not OWN and source is not NO_ARRAY else output
        blocks = (own.length,) * size if own is not None else _equal(collective, size, whole)
    for name, array, part in (("the input", source, before), ("out", output, after)):
        if array is not NO_ARRAY:
            _check_length(collective, name, array, blocks[rank] if part is OWN else sum(blocks))
    return Lengths(blocks, blocks)


def _equal(collective: Collective, size: int, array: Array) -> tuple[int, ...]:
    if array.length % size:
        raise UsageError(
            f"{collective}: {array.length} elements do not divide into {size} equal parts; give the sizes of the "
            "parts (in_sizes or out_sizes)"
        )
    return (array.length // size,) * size


def _checked(collective: Collective, name: str, sizes: Sequence[int], size: int) -> tuple[int, ...]:
    found = tuple(int(length) for length in sizes)
    if len(found) != size or min(found) < 0:
        raise UsageError(
            f"{collective}: {name}={list(sizes)}; expected {size} lengths, one for each rank, none negative"
        )
    return found


def _check_length(collective: Collective, name: str, array: Array, expected: int) -> None:
    if array.length != expected:
        raise UsageError(f"{collective}: {name} has {array.length} elements; expected {expected}")
