"""``unisono demo``: play an algorithm with numbers, prove it, and see that all-reduce is two collectives in one."""

from __future__ import annotations

import argparse
import time

import numpy as np

from unisono.algorithms import BUILT_IN, find
from unisono.cli.output import console
from unisono.cli.show import data_tables, play_example, print_legend
from unisono.collectives import all_reduce
from unisono.player.play import play
from unisono.verifier import prove


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser("demo", help="a tour in ten seconds", description=__doc__)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Play, compare, prove."""
    out = console()
    ring = find("ring")
    schedule = ring.schedule(4)
    out.print("[bold]1. Play.[/] Four ranks add up their lists round a ring.")
    for made in data_tables(schedule, play_example(schedule, all_reduce), range(4)):
        out.print(made)
    print_legend(out, 4)

    out.print("\n[bold]2. Compare.[/] All-reduce is reduce-scatter and then all-gather:")
    inputs = [np.arange(4) + rank for rank in range(4)]
    parts = play(find("reduce_scatter/ring").schedule(4), inputs).outputs
    whole = play(find("all_gather/ring").schedule(4), parts).outputs
    direct = play(schedule, inputs).outputs
    out.print(f"   reduce-scatter leaves {[part.tolist() for part in parts if part is not None]}")
    out.print(f"   all-gather then gives everyone {_same(whole)}")
    out.print(f"   all-reduce gives everyone      {_same(direct)}")
    if _same(whole) != _same(direct):
        out.print("[red]they differ[/]")
        return 1

    out.print("\n[bold]3. Prove.[/] For every interleaving of ranks, nothing missing, nothing twice, the same bits:")
    began = time.perf_counter()
    proof = prove(ring.schedule(64))
    out.print(
        f"   ring on 64 ranks: {proof.steps} steps, {proof.messages} messages, {proof.sent} of the message sent per "
        f"rank ({proof.bandwidth_ratio:.2f}× the bound); proved in {time.perf_counter() - began:.3f} s"
    )
    began, proofs = time.perf_counter(), 0
    for algorithm in BUILT_IN:
        for size in range(1, 18):
            prove(algorithm.schedule(size))
            proofs += 1
    out.print(
        f"   all {len(BUILT_IN)} built-in algorithms on 1 to 17 ranks: {proofs} proofs in "
        f"{time.perf_counter() - began:.1f} s"
    )
    out.print("\nNext: [cyan]unisono list[/], [cyan]unisono show ring -n 5 --data[/], docs/tour.md")
    return 0


def _same(outputs: list[np.ndarray | None]) -> list[int] | str:
    lists = [output.tolist() for output in outputs if output is not None]
    return lists[0] if all(other == lists[0] for other in lists) else f"different things: {lists}"
