"""Unisono: collective communication as short Python programs, each one proved.

A user needs one import::

    import unisono

    with unisono.connect() as comm:
        comm.all_reduce(x)

An author of an algorithm needs two imports::

    from unisono import algorithm, combine, copy, mapped, one, one_per_rank, recv, recv_reduce, send
    from unisono.collectives import all_reduce
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unisono.algorithms import algorithm, find, one, one_per_rank
from unisono.schedule import (
    Schedule,
    backwards,
    combine,
    copy,
    mapped,
    recv,
    recv_reduce,
    send,
)

if TYPE_CHECKING:
    from unisono.comm import Communicator, Work, connect
    from unisono.drawing import draw
    from unisono.launch.spawn import spawn
    from unisono.player.play import play
    from unisono.verifier import prove

__version__ = "0.1.0"
__all__ = [
    "Communicator", "Schedule", "Work", "algorithm", "backwards", "combine", "connect", "copy", "draw", "find",
    "mapped", "one", "one_per_rank", "play", "prove", "recv", "recv_reduce", "send", "spawn",
]  # fmt: skip

# What needs numpy or the engine is imported when it is first asked for, so that `import unisono` takes milliseconds.
_WHERE = {
    "play": "unisono.player", "prove": "unisono.verifier", "Communicator": "unisono.comm", "Work": "unisono.comm",
    "connect": "unisono.comm", "spawn": "unisono.launch.spawn", "draw": "unisono.drawing",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'unisono' has no attribute {name!r}")
