"""Traces: what the ranks of a real run did, and when; written, read, and explained.

*Trace*: a file of what was recorded, in the format of Chrome and Perfetto. *Part*: what one rank recorded on one
communicator; a file of its own until the parts are joined. *Call*: one collective, as every rank made it. *Op*: one
instruction in one pass of a call. *Wait*: how long a rank waited for another one, and for what.

On the way to the file: ``tape`` (events as the engine writes them), ``facts`` (what the numbers in them mean),
``chrome`` (both as lines of a trace), ``files`` (parts, and how they are joined), ``clock``. On the way back:
``reading`` (checks a trace), ``assembling`` (sorts its events), ``run`` (what it says), ``matching`` (which send
belongs to which receive), ``critical_path``, ``waiting`` (who waited, and because of whom), ``slow_rank``, ``words``
(the same in sentences), ``replay`` (times for the drawing).
"""

from unisono.tracing.reading import read_run
from unisono.tracing.run import Call, Group, Run
from unisono.tracing.slow_rank import SlowRank, slow_rank
from unisono.tracing.words import summary

__all__ = ["Call", "Group", "Run", "SlowRank", "read_run", "slow_rank", "summary"]
