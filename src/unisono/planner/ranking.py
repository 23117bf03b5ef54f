"""Reasons: why the runner-up is slower, and what would change the order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from unisono.errors import UsageError
from unisono.message import Message, Template, join
from unisono.planner import messages
from unisono.planner.plan import Candidate, Job, Plan, plan_job
from unisono.planner.quantities import seconds

FACTORS = (2, 4, 8)
LEAST_SHARE = 0.1  # of the difference: smaller parts are not reasons


@dataclass(frozen=True)
class Change:
    """A change of the job, and the combination that would be first (None: the first stays first)."""

    change: Message
    first: Candidate | None

    @property
    def text(self) -> Message:
        """The change as a sentence."""
        if self.first is None:
            return messages.CHANGES_NOTHING(change=self.change)
        rate = f"{self.first.tokens_s_gpu:,.0f}"
        return messages.CHANGES(change=self.change, configuration=str(self.first.configuration), gain=rate)


def why_slower(best: Candidate, other: Candidate) -> Message:
    """Return a sentence on why ``other`` is slower than ``best``: the parts of the step that differ most."""
    ahead, behind = best.times.parts(), other.times.parts()
    differences = {part: behind[part] - ahead[part] for part in behind}
    total = other.times.total - best.times.total
    order = sorted(differences, key=lambda part: -abs(differences[part]))
    largest = abs(differences[order[0]])
    parts = [part for part in order if abs(differences[part]) > max(LEAST_SHARE * largest, 1e-9)][:4]
    parts.sort(key=lambda part: -differences[part])
    reasons = [
        (messages.MORE_OF if differences[part] > 0 else messages.LESS_OF)(
            time=seconds(abs(differences[part])), part=messages.PARTS[part]()
        )
        for part in parts
    ]
    percent = f"{total / best.times.total:.1%}"
    return messages.SLOWER(
        runner_up=str(other.configuration), best=str(best.configuration), percent=percent,
        reasons=join(reasons, ", ", "，"),
    )  # fmt: skip


def rivals(found: Plan) -> list[Candidate]:
    """Return the runner-up, and the fastest that divides the GPUs in another way, if that is another one."""

    def split(candidate: Candidate) -> tuple[int, ...]:
        each = candidate.configuration
        return each.dp, each.tp, each.pp, each.ep

    second = found.candidates[1:2]
    other = next((each for each in found.candidates if split(each) != split(found.best)), None)
    return [*second, *([other] if other is not None and other not in second else [])]


def what_would_change(found: Plan) -> list[Change]:
    """Return what faster or slower links, more or less memory and a larger or smaller batch would do to the order.

    Each is changed by factors of 2, 4 and 8; the first factor that puts another combination first is returned, or the
    last one where none does. A change that leaves no combination is left out.
    """
    changes: list[tuple[Template, Callable[[Job, int], Job]]] = [
        (messages.FAR_FASTER, lambda job, times: _with_far(job, times)),
        (messages.FAR_SLOWER, lambda job, times: _with_far(job, 1 / times)),
        (messages.MORE_MEMORY, lambda job, times: _with_memory(job, times)),
        (messages.LESS_MEMORY, lambda job, times: _with_memory(job, 1 / times)),
        (messages.MORE_TOKENS, lambda job, times: replace(job, sequences=times * job.sequences)),
        (messages.FEWER_TOKENS, lambda job, times: replace(job, sequences=max(1, job.sequences // times))),
    ]
    return [change for template, make in changes if (change := _first_change(found, template, make)) is not None]


def _first_change(found: Plan, template: Template, make: Callable[[Job, int], Job]) -> Change | None:
    same: Change | None = None
    for times in FACTORS:
        try:
            first = plan_job(make(found.job, times)).best
        except UsageError:
            break
        if _without_count(first) != _without_count(found.best):
            return Change(template(times=times), first)
        same = Change(template(times=times), None)
    return same


def _without_count(candidate: Candidate) -> object:
    return replace(candidate.configuration, micro_batches=1)


def _with_far(job: Job, factor: float) -> Job:
    program = job.cluster.program
    changed = replace(program, far_share=program.far_share * factor)
    return replace(job, cluster=replace(job.cluster, program=changed))


def _with_memory(job: Job, factor: float) -> Job:
    return replace(job, cluster=replace(job.cluster, memory_bytes=factor * job.cluster.memory))
