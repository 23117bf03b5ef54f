"""The communicator: the calls people make, how ranks meet and are started, and which algorithm does the work."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unisono.comm.communicator import Communicator
    from unisono.comm.joining import connect
    from unisono.comm.local_ranks import spawn
    from unisono.comm.work import Work

__all__ = ["Communicator", "Work", "connect", "spawn"]

# A launcher needs neither the engine nor numpy: they are imported when they are first asked for.
_WHERE = {"Communicator": "communicator", "Work": "work", "connect": "joining", "spawn": "local_ranks"}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f"unisono.comm.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'unisono.comm' has no attribute {name!r}")
