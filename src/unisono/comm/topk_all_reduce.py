"""An all-reduce with ``codec="topk:F"``: every rank sends its largest numbers to all, and all add them up.

It is an all-gather of the numbers that each rank keeps. When it has finished, the pieces are added in the order of
the ranks; in an asynchronous call, by the thread that first learns that it has finished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from unisono.codecs import encode
from unisono.codecs.arrays import floats_of
from unisono.codecs.topk import add_pieces, check_op
from unisono.collectives import all_gather
from unisono.comm import messages
from unisono.comm.arguments import ARRAY, Given, arguments_of
from unisono.comm.call_request import CallRequest
from unisono.comm.work import Work
from unisono.errors import UsageError

if TYPE_CHECKING:
    from unisono.comm.dispatch import Dispatcher


def all_reduce_largest(
    dispatcher: Dispatcher, request: CallRequest, array: Any, async_op: bool, timeout: float | None
) -> Work | None:
    """Make the call; the array is known to be float32."""
    codec, op = request.codec, request.op or "sum"
    check_op(codec, op)
    if request.algorithm is not None:
        raise UsageError(messages.TOPK_HAS_NO_ALGORITHM(algorithm=repr(request.algorithm), codec=codec))
    link = dispatcher.link
    values = floats_of(array, messages.ARRAY_OF_CALL(call="all_reduce", name=ARRAY), writable=True)
    mine = encode(values, codec)
    pieces = np.empty(link.size * mine.size, np.uint8)

    def finish() -> None:
        add_pieces(values, pieces, codec, link.size, op)

    label = f"all_reduce({values.size} float32, op={op}, codec={codec})"
    gather = CallRequest(all_gather, label=label)
    arguments = arguments_of(gather, link.rank, link.size, Given(pieces, mine))
    plan = dispatcher.plan(gather._replace(dtype=arguments.dtype, lengths=arguments.lengths))
    return dispatcher.run(
        plan, arguments.input.address, arguments.output.address, async_op=async_op, timeout=timeout,
        keeps=(pieces, mine), finish=finish,
    )  # fmt: skip
