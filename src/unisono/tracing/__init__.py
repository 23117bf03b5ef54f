"""Traces: what the ranks of a real run did, and when; written, read, and explained.

*Trace*: a file of what was recorded, in the format of Chrome and Perfetto. *Part*: what one rank recorded on one
communicator; a file of its own until the parts are joined. *Call*: one collective, as every rank made it. *Op*: one
instruction in one pass of a call. *Wait*: how long a rank waited for another one, and for what.

On the way to the file: ``events`` (events as the engine writes them), ``facts`` (what the numbers in them mean),
``chrome`` (both as lines of a trace), ``files`` (parts, and how they are joined), ``clock``. On the way back:
``reading`` (checks a trace), ``assembling`` (sorts its events), ``run`` (what it says), ``matching`` (which send
belongs to which receive), ``critical_path``, ``waiting`` (which rank waited for which), ``stragglers``,
``narration`` (the same in sentences), ``timeline`` and ``replay`` (numbers and times for the drawing).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unisono.tracing.narration import summary
    from unisono.tracing.reading import read_run
    from unisono.tracing.run import Call, Run, TracedCommunicator
    from unisono.tracing.stragglers import SlowRank, slow_rank

__all__ = ["Call", "Run", "SlowRank", "TracedCommunicator", "read_run", "slow_rank", "summary"]

# A rank that only writes a trace does not need what reads one.
_WHERE = {
    "Call": "run", "TracedCommunicator": "run", "Run": "run", "SlowRank": "stragglers", "read_run": "reading",
    "slow_rank": "stragglers", "summary": "narration",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f"unisono.tracing.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'unisono.tracing' has no attribute {name!r}")
