"""Unisono: collective communication as short Python programs, each one proved.

An author of an algorithm needs two imports::

    from unisono import algorithm, combine, copy, mapped, one, one_per_rank, recv, recv_reduce, send
    from unisono.collectives import all_reduce
"""

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
    from unisono.player import play
    from unisono.verifier import prove

__version__ = "0.1.0"
__all__ = [
    "Schedule", "algorithm", "backwards", "combine", "copy", "find", "mapped", "one", "one_per_rank", "play",
    "prove", "recv", "recv_reduce", "send",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # What needs numpy is imported when it is first asked for, so that `import unisono` takes milliseconds.
    if name == "play":
        from unisono.player import play

        return play
    if name == "prove":
        from unisono.verifier import prove

        return prove
    raise AttributeError(f"module 'unisono' has no attribute {name!r}")
