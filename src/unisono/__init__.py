"""Collective communication as short Python programs, each of which is proved before it runs.

A program that communicates needs one import::

    import unisono

    with unisono.connect() as comm:
        comm.all_reduce(x)

An author of an algorithm needs two imports::

    from unisono import algorithm, combine, copy, mapped, one, one_per_rank, recv, recv_reduce, send
    from unisono.collectives import all_reduce

``dir(unisono)`` lists the whole API; docs/README.md is the index of the documentation.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unisono import native_engine
from unisono.algorithms import algorithm, one, one_per_rank
from unisono.errors import (
    Aborted,
    CollectiveTimeout,
    CommError,
    DeadlockError,
    EngineMissing,
    GoalError,
    GradientError,
    HazardError,
    InternalError,
    MismatchError,
    PeerLost,
    ScheduleError,
    UnisonoError,
    UnmatchedError,
    UsageError,
)
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
    from unisono import codecs, collectives, errors, tracing
    from unisono import parallel as parallel
    from unisono import torch_backend as torch_backend
    from unisono.algorithms.user_files import resolve as find
    from unisono.bootstrap.environment import RankIdentity
    from unisono.bootstrap.tls import Tls
    from unisono.comm import Communicator, GpuWork, Work, connect
    from unisono.comm.explain_call import explain_call as explain
    from unisono.drawing import draw
    from unisono.launch.spawn import spawn
    from unisono.planner.plan import Plan, plan
    from unisono.player.play import play
    from unisono.simulator import Prediction, simulate
    from unisono.torch_backend.options import Options as Options
    from unisono.tracing import read_run
    from unisono.verifier import Proof, prove

__version__ = "0.1.0"
__all__ = [
    "Aborted", "CollectiveTimeout", "CommError", "Communicator", "DeadlockError", "EngineMissing", "GoalError",
    "GpuWork", "GradientError", "HazardError", "InternalError", "MismatchError", "PeerLost", "Plan", "Prediction",
    "Proof", "RankIdentity", "Schedule", "ScheduleError", "Tls", "UnisonoError", "UnmatchedError", "UsageError",
    "Work", "algorithm", "backwards", "codecs", "collectives", "combine", "connect", "copy", "draw", "errors",
    "explain", "find", "mapped", "one", "one_per_rank", "plan", "play", "prove", "read_run", "recv", "recv_reduce",
    "send", "simulate", "spawn", "tracing",
]  # fmt: skip

# torch is optional, so that these are not in __all__: `from unisono import *` works without it.
_WITH_TORCH = ("Options", "parallel", "torch_backend")
# Names that need numpy, torch or the engine are imported on first use, so that `import unisono` takes milliseconds.
_LAZY = {
    "Communicator": "unisono.comm", "GpuWork": "unisono.comm", "Options": "unisono.torch_backend",
    "Proof": "unisono.verifier", "RankIdentity": "unisono.bootstrap.environment", "Tls": "unisono.bootstrap.tls",
    "Work": "unisono.comm", "connect": "unisono.comm",
    "draw": "unisono.drawing", "explain": "unisono.comm.explain_call:explain_call",
    "find": "unisono.algorithms.user_files:resolve", "Plan": "unisono.planner", "plan": "unisono.planner.plan:plan",
    "play": "unisono.player", "prove": "unisono.verifier",
    "Prediction": "unisono.simulator", "read_run": "unisono.tracing", "simulate": "unisono.simulator",
    "spawn": "unisono.launch.spawn",
}  # fmt: skip
_LAZY_MODULES = ("codecs", "collectives", "errors", "networks", "parallel", "torch_backend", "tracing")


def __getattr__(name: str) -> Any:
    if name == "_engine":
        return native_engine.load()
    if name in native_engine.STAND_INS and not native_engine.is_installed():
        return getattr(native_engine, name)
    if name in _LAZY:
        module, _, attribute = _LAZY[name].partition(":")
        return getattr(import_module(module), attribute or name)
    if name in _LAZY_MODULES:
        return import_module(f"unisono.{name}")
    raise AttributeError(f"module 'unisono' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_WITH_TORCH, "__doc__", "__version__"])
