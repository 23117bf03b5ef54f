"""Traces of real runs: records what every rank does and when, and reads and explains the result.

*Trace*: a file of recorded events, in the format of Chrome and Perfetto. *Part*: the events of one rank on one
communicator, in a separate file until the parts are joined. *Call*: one collective, on all its ranks. *Op*: one
instruction in one pass of a call. *Wait*: the time that a rank waited for another one, and the reason.

Writing: ``events`` (the events of the engine), ``facts`` (the meaning of their numbers), ``chrome`` (both as lines of
a trace), ``files`` (writes parts), ``alignment`` (offsets of clocks), ``joining`` (joins parts), ``clock``. Reading:
``reading`` (checks a trace), ``assembling`` (sorts its events into calls), ``run`` (the result), ``matching`` (pairs
sends and receives), ``critical_path``, ``waiting`` (waits and their causes), ``stragglers``, ``narration`` and
``sentences`` (describe it), ``timeline`` and ``replay`` (numbers and times for the drawing).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unisono.tracing.narration import summary
    from unisono.tracing.reading import read_run
    from unisono.tracing.run import Call, Run, TracedCommunicator
    from unisono.tracing.stragglers import SlowRank, slow_rank

__all__ = ["Call", "Run", "SlowRank", "TracedCommunicator", "read_run", "slow_rank", "summary"]

# A rank that only writes a trace does not import the modules that read one.
_WHERE = {
    "Call": "run", "TracedCommunicator": "run", "Run": "run", "SlowRank": "stragglers", "read_run": "reading",
    "slow_rank": "stragglers", "summary": "narration",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f"unisono.tracing.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'unisono.tracing' has no attribute {name!r}")
