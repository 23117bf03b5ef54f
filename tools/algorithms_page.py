"""Write docs/algorithms.md: every collective and algorithm, with facts that the verifier computed."""

from __future__ import annotations

import inspect
from fractions import Fraction
from pathlib import Path

from unisono import prove
from unisono.algorithms import BUILT_IN, Algorithm, of
from unisono.collectives import COLLECTIVES, Collective

DOCS = Path(__file__).parent.parent / "docs"
SIZES = (8, 13, 64)

HEAD = """# The algorithms

*This page is made by `make docs` from what the verifier computes; a test keeps it current.*

All {count} programs serve every number of ranks and every root. The tables say, for {sizes} ranks:

- **steps**: of the rank that has the most (the steps of a rank happen one after the other);
- **rounds**: how long it takes if a rank sends one message and receives one at a time and every message takes one
  round; in brackets how many times the least possible, which is ⌈log₂ p⌉ for every collective;
- **messages**: sent by the rank that sends the most;
- **bytes**: what the busiest rank sends or receives, whichever is more, as a part of the vector; in brackets how
  many times the least possible;
- **memory**: what a rank needs beside its input and output, as a part of the vector. (The input of a reduce-scatter
  and of an all-to-all is left as it was, so partial sums need a place of their own unless an engine sends them on at
  once.)

The vector is all of the data: for an all-gather what everyone has in the end, for a reduce-scatter what everyone has
at the start. The least possible bytes are also the factor by which nccl-tests multiplies *algbw* to get *busbw*:
it is the part of the vector that must pass through the busiest rank, so busbw is what its link carries.

`hierarchical` is shown with its default of four ranks in a node (`--option node=8` for another), `chain` with eight
pieces.
"""


def page() -> str:
    """Return the whole page."""
    sizes = ", ".join(map(str, SIZES[:-1])) + f" and {SIZES[-1]}"
    parts = [HEAD.format(count=len(BUILT_IN), sizes=sizes)]
    return "\n".join(parts + [_section(collective) for collective in COLLECTIVES])


def _section(collective: Collective) -> str:
    bounds = "; ".join(f"{size} ranks: {_number(collective.least_bytes(size))}" for size in SIZES)
    lines = [
        f"## {collective}",
        "",
        f"{collective.summary.en} *{collective.story.en}*",
        "",
        f"{collective.summary.zh}*{collective.story.zh}*",
        "",
    ]
    if collective.carries_data:
        lines += [f"Least bytes through the busiest rank: {_formula(collective)} of the vector ({bounds}).", ""]
    lines += ["| algorithm | ranks | steps | rounds | messages | bytes | memory |", "|---|--:|--:|--:|--:|--:|--:|"]
    for algorithm in of(collective):
        for size in SIZES:
            name = f"[`{algorithm.name}`]({_source(algorithm)})" if size == SIZES[0] else ""
            lines.append(f"| {name} | {size} | {_facts(algorithm, size)} |")
    lines += [""] + [f"- **{algorithm.name}**: {algorithm.idea}" for algorithm in of(collective)]
    return "\n".join([*lines, ""])


def _facts(algorithm: Algorithm, size: int) -> str:
    proof = prove(algorithm.schedule(size))
    return " | ".join([
        str(proof.steps),
        f"{proof.rounds} ({proof.latency_ratio:.1f}×)",
        str(proof.messages_per_rank),
        f"{_number(proof.busiest)} ({proof.bandwidth_ratio:.2f}×)",
        _number(proof.extra_memory),
    ])  # fmt: skip


def _formula(collective: Collective) -> str:
    per_peer, constant = collective.bound
    if constant:
        return str(constant)
    return ("" if per_peer == 1 else str(per_peer)) + "(p-1)/p"


def _number(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.2f}"


def _source(algorithm: Algorithm) -> str:
    module = inspect.getmodule(algorithm.function)
    assert module is not None
    return f"../src/{module.__name__.replace('.', '/')}.py"


if __name__ == "__main__":
    (DOCS / "algorithms.md").write_text(page(), encoding="utf-8")
