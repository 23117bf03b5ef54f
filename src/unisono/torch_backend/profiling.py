"""How calls appear in a profile that torch makes: by their name, with the shapes of their tensors."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from unisono.torch_backend.private import RecordFunctionFast, profiler_enabled
from unisono.torch_backend.registration import NAME
from unisono.torch_backend.tensors import Tensor


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
    try:
        with RecordFunctionFast(f"{NAME}:{what}", list(tensors), {}):
            yield
    finally:
        _making.event = False
