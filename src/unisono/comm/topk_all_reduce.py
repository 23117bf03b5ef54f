"""An all-reduce with ``codec="topk:F"``: every rank sends its largest numbers to all, and all add them up.

It is an all-gather of what each rank keeps. When that is done, the pieces are added in the order of the ranks: in a
call that goes on in the background, by whoever learns first that it is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from unisono.codecs import Codec, encode
from unisono.codecs.arrays import floats_of
from unisono.codecs.topk import add_pieces, check_op
from unisono.collectives import all_gather
from unisono.comm.arguments import arguments_of
from unisono.comm.work import Work
from unisono.errors import UsageError

if TYPE_CHECKING:
    from unisono.comm.dispatch import Calls


def all_reduce_largest(
    calls: Calls, array: Any, codec: Codec, op: str, algorithm: Any, async_op: bool, timeout: float | None
) -> Work | None:
    """Make the call; that the array is one of float32 is known."""
    check_op(codec, op)
    if algorithm is not None:
        raise UsageError(
            f"all_reduce: algorithm={algorithm!r} with codec={codec}, which is an all-gather of pieces; leave the "
            "algorithm out"
        )
    size = calls.link.size
    values = floats_of(array, "all_reduce: the array", writable=True)
    mine = encode(values, codec)
    pieces = np.empty(size * mine.size, np.uint8)

    def finish() -> None:
        add_pieces(values, pieces, codec, size, op)

    given = arguments_of(all_gather, calls.link.rank, size, None, pieces, mine, None, None)
    called = f"all_reduce({values.size} float32, op={op}, codec={codec})"
    plan = calls.plan_for(all_gather, given, None, None, None, called=called)
    return calls.run(plan, given.input.address, given.output.address, async_op, timeout, (pieces, mine), finish)
