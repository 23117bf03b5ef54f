"""Makes calls appear in torch's profiles, with their names and the shapes of their tensors."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from unisono.torch_backend.private import RecordFunctionFast, comm_profiling_name, profiler_enabled
from unisono.torch_backend.registration import NAME
from unisono.torch_backend.tensors import Tensor

# The operators by which torch's own groups make a call: a profile has an event for each, with the backend's inside.
# Where it is not given, it is the name of the call with a "_".
OPERATORS = {
    "all_reduce": "allreduce_", "all_gather": "allgather_", "all_gather_into_tensor": "_allgather_base_",
    "reduce_scatter_tensor": "_reduce_scatter_base_", "all_to_all": "alltoall_",
    "all_to_all_single": "alltoall_base_", "barrier": "barrier", "send": "send", "recvAnySource": "recv_any_source_",
}  # fmt: skip
COALESCED = {"all_reduce": "allreduce_coalesced_", "all_gather": "allgather_coalesced_"}


def operator(what: str, several: bool) -> str:
    """Return torch's name for the operator of a call."""
    found = COALESCED.get(what) if several else None
    return f"c10d::{found or OPERATORS.get(what, f'{what}_')}"


class _Making(threading.local):
    event = False  # whether this thread is in an event of ours


_making = _Making()


def in_profile(what: str, tensors: Sequence[Tensor]) -> AbstractContextManager[None]:
    """Return a context for making a call: a profile gets an event with its name.

    A call may be made of several others, such as one for each tensor of a list; it is one event.
    """
    return _event(what, tensors) if profiler_enabled() and not _making.event else nullcontext()


@contextmanager
def _event(what: str, tensors: Sequence[Tensor]) -> Iterator[None]:
    _making.event = True
    tensors = list(tensors)
    name = comm_profiling_name() or f"{NAME}:{what}"  # dist.record_comm gives calls other names
    try:
        with RecordFunctionFast(operator(what, len(tensors) > 1), tensors, {}), RecordFunctionFast(name, tensors, {}):
            yield
    finally:
        _making.event = False
