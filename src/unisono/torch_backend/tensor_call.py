"""A call on tensors, and its options."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from unisono.comm.call_request import CallRequest
from unisono.torch_backend.tensors import Finish, Tensor
from unisono.torch_backend.work import NO_LIMIT, FinishedWork

FINISHED = FinishedWork()


class TensorCall(NamedTuple):
    """A call on tensors whose arguments were checked; nothing has been sent yet.

    ``source`` and ``out`` are contiguous; they may be the same tensor.
    """

    name: str  # torch's name of the call
    request: CallRequest
    source: Tensor
    out: Tensor
    result: Sequence[Tensor]  # the value of the call's future
    finish: Finish | None = None  # called after the engine has finished

    def then(self, finish: Finish | None) -> TensorCall:
        """Return the call with another ``finish``."""
        return TensorCall(self.name, self.request, self.source, self.out, self.result, finish)

    def with_result(self, result: Sequence[Tensor]) -> TensorCall:
        """Return the call with another ``result``."""
        return TensorCall(self.name, self.request, self.source, self.out, result, self.finish)


class CallOptions(NamedTuple):
    """The options of a call."""

    blocking: bool = False  # return when the call is over; otherwise return a Work at once
    limit_s: float | None = None  # the timeout; None: that of the group


BLOCKING, ASYNCHRONOUS = CallOptions(True), CallOptions(False)


def call_options_of(opts: Any, timeout: timedelta | None = None) -> CallOptions:
    """Read torch's options, which are an object of one of many classes, a bare number, or None."""
    if timeout is None:
        timeout = getattr(opts, "timeout", None)
    blocking = not getattr(opts, "asyncOp", True)
    if timeout is not None and timeout > NO_LIMIT:
        return CallOptions(blocking, timeout.total_seconds())
    return BLOCKING if blocking else ASYNCHRONOUS
