"""The communicator: the calls users make, how each is dispatched, and which algorithm performs it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unisono.comm.communicator import Communicator
    from unisono.comm.connection import connect
    from unisono.comm.gpu_work import GpuWork
    from unisono.comm.joining import join
    from unisono.comm.work import Work

__all__ = ["Communicator", "GpuWork", "Work", "connect", "join"]

# A launcher needs neither the engine nor numpy: they are imported on first use.
_WHERE = {
    "Communicator": "communicator", "GpuWork": "gpu_work", "Work": "work", "connect": "connection", "join": "joining",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f"unisono.comm.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'unisono.comm' has no attribute {name!r}")
