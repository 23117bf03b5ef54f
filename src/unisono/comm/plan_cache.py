"""The plan cache of a communicator: one cache, one key, one limit.

A *plan* is found by the request of its call. Making one needs a *program*, the proved and compiled algorithm, which
plans for other lengths share; programs are kept beside the plans. Both drop what was used least recently.

The engine has its own lookaside table (``engine/bindings/fast_path.cpp``): it finds the plan of a repeated call
from the arrays alone, without Python. It refers to plans of this cache only: a plan that is dropped here is
forgotten there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

from unisono import _engine
from unisono.comm.call_request import CallRequest
from unisono.comm.plan_record import PlanRecord
from unisono.comm.programs import Compiled

MOST_PLANS = 4096
MOST_PROGRAMS = 256

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LeastRecentlyUsed(Generic[Key, Value]):
    """A mapping with a limit: the value that was used least recently makes room for a new one."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, which becomes the most recently used one."""
        value = self._values.get(key)
        if value is not None:
            with suppress(KeyError):  # another thread has just dropped it
                self._values.move_to_end(key)
        return value

    def add(self, key: Key, value: Value) -> Value | None:
        """Keep a value; return the one that was dropped, if there were too many."""
        oldest = self._values.popitem(last=False)[1] if len(self._values) >= self.limit else None
        self._values[key] = value
        return oldest

    def __len__(self) -> int:
        return len(self._values)

    def values(self) -> Iterable[Value]:
        """Return all values, the least recently used one first."""
        return list(self._values.values())


class KnownPlan(NamedTuple):
    """A plan, and a record of what it was made of."""

    plan: _engine.Plan
    record: PlanRecord


ProgramKey = tuple[object, ...]


class PlanCache:
    """The plans of a communicator's calls, by request, and the programs that they were made from."""

    def __init__(self, forget: Callable[[_engine.Plan], None], most_plans: int = MOST_PLANS) -> None:
        self._forget = forget  # tells the engine that a plan was dropped
        self._plans: LeastRecentlyUsed[CallRequest, KnownPlan] = LeastRecentlyUsed(most_plans)
        self.programs: LeastRecentlyUsed[ProgramKey, Compiled] = LeastRecentlyUsed(MOST_PROGRAMS)
        self._recordings = 0  # that are in progress
        self._dropped: dict[int, PlanRecord] = {}  # since the first of them began

    def plan(self, request: CallRequest) -> _engine.Plan | None:
        """Return the plan of a call, if an equal call was made before."""
        known = self._plans.get(request)
        return None if known is None else known.plan

    def add(self, request: CallRequest, plan: _engine.Plan, record: PlanRecord) -> _engine.Plan:
        """Keep the plan of a call, and return it."""
        dropped = self._plans.add(request, KnownPlan(plan, record))
        if dropped is not None:
            self._drop(dropped)
        return plan

    def __len__(self) -> int:
        return len(self._plans)

    def _drop(self, known: KnownPlan) -> None:
        self._forget(known.plan)
        if self._recordings:
            self._dropped[known.plan.number] = known.record

    def begin_recording(self) -> None:
        """Keep the records of all plans from now on: a trace describes its calls by them."""
        self._recordings += 1

    def end_recording(self) -> None:
        """End what ``begin_recording`` began."""
        self._recordings -= 1

    def records(self) -> dict[int, PlanRecord]:
        """Return the records of plans, by the number of the plan."""
        known = {each.plan.number: each.record for each in self._plans.values()}
        found = {**self._dropped, **known}
        if not self._recordings:
            self._dropped.clear()
        return found
