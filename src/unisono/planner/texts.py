"""Sentences that the command line and the page share."""

from __future__ import annotations

from unisono.planner import messages
from unisono.planner.plan import Plan
from unisono.planner.quantities import gigabytes, short


def headings(found: Plan, shown: int) -> list[str]:
    """Return the sentences above the table."""
    job, cluster = found.job, found.job.cluster
    return [
        messages.TITLE(
            model=job.model.name, parameters=short(job.model.parameters), gpus=cluster.gpus,
            machine=cluster.machine.name, network=cluster.network.name, tokens=f"{job.tokens:,}",
            sequences=job.sequences, sequence=job.sequence, program=cluster.program.name,
        ),
        messages.COUNTS(
            admissible=found.admissible, fitting=len(found), usable=gigabytes(cluster.usable),
            memory=gigabytes(cluster.memory), shown=shown,
        ),
    ]  # fmt: skip
