"""``unisono demo``: play, prove and predict algorithms, run all collectives on real ranks, and train a model."""

from __future__ import annotations

import argparse
import textwrap
import time
from typing import Any

import numpy as np
from rich.console import Console

from unisono import native_engine
from unisono.algorithms import BUILT_IN, find
from unisono.cli import arguments, demo_training
from unisono.cli.output import console, print_json, print_table
from unisono.cli.show import data_tables, play_example, print_legend
from unisono.collectives import all_reduce
from unisono.player.play import play
from unisono.verifier import prove

LARGEST = 17  # ranks in the proofs of the demo
WIDTH = 70  # of a text that a model has written


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "demo", help="see everything in half a minute", description=arguments.described(__doc__)
    )
    arguments.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Play, compare, prove, run and train."""
    ring = find("ring")
    schedule = ring.schedule(4)
    inputs = [np.arange(4) + rank for rank in range(4)]
    parts = play(find("reduce_scatter/ring").schedule(4), inputs).outputs
    whole = _same(play(find("all_gather/ring").schedule(4), parts).outputs)
    direct = _same(play(schedule, inputs).outputs)

    began = time.perf_counter()
    proof = prove(ring.schedule(64))
    one_s = time.perf_counter() - began
    began, proofs = time.perf_counter(), 0
    for algorithm in BUILT_IN:
        for size in range(1, LARGEST + 1):
            prove(algorithm.schedule(size))
            proofs += 1
    all_s = time.perf_counter() - began
    right = whole == direct
    native: _Native | None = _Native() if native_engine.is_installed() else None

    if args.json:
        training = demo_training.run()
        measured = {"missing": _left_out(), "runs": [], "predictions": []} if native is None else native.as_data()
        right = right and (native is None or native.right)
        print_json({
            "reduce_scatter": [part.tolist() for part in parts if part is not None], "then_all_gather": whole,
            "all_reduce": direct, "proof": proof.as_dict(), "proofs": proofs, "seconds": round(one_s + all_s, 3),
            **measured, "training": training._asdict(),
        })  # fmt: skip
        return 0 if right and training.right else 1
    out = console()
    out.print("[bold]1. Play.[/] Four ranks sum their lists around a ring.")
    for each in data_tables(schedule, play_example(schedule, all_reduce), range(4)):
        print_table(out, each)
    print_legend(out, 4)
    out.print("\n[bold]2. Compare.[/] All-reduce is a reduce-scatter followed by an all-gather:")
    out.print(f"   reduce-scatter leaves {[part.tolist() for part in parts if part is not None]}")
    out.print(f"   all-gather then gives every rank {whole}")
    out.print(f"   all-reduce gives every rank      {direct}")
    if whole != direct:
        out.print("[red]the results differ[/]")
        return 1
    out.print(
        "\n[bold]3. Prove.[/] For every timing: nothing missing, nothing counted twice, the same bits on every rank:"
    )
    out.print(
        f"   ring on 64 ranks: {proof.steps} steps, {proof.messages} messages, {proof.sent} of the vector sent per "
        f"rank ({proof.bandwidth_ratio:.2f}× the bound); proved in {one_s:.3f} s"
    )
    out.print(f"   all {len(BUILT_IN)} built-in algorithms on 1 to {LARGEST} ranks: {proofs} proofs in {all_s:.1f} s")
    if native is None:
        out.print("\n[bold]4. Run, 5. Predict and measure, 6. Train.[/]")
        out.print(f"   left out: {_left_out()}", soft_wrap=True)
    else:
        native.show(out)
        right = _train(out) and native.right
    is_source = (demo_training.ROOT / "Makefile").is_file()
    first = "[cyan]source .venv/bin/activate[/], then " if is_source else ""
    out.print(f"\nNext: {first}[cyan]unisono show ring -n 5 --data[/]; see docs/tour.md")
    return 0 if right else 1


class _Native:
    """The parts of the demo that execute on real ranks."""

    def __init__(self) -> None:
        from unisono.cli import demo_on_ranks, demo_prediction  # they need the engine

        self.on_ranks, self.prediction = demo_on_ranks, demo_prediction
        self.rows = demo_on_ranks.run_all()
        self.predictions = demo_prediction.run()
        self.right = not any(row.wrong for row in self.rows)

    def as_data(self) -> dict[str, Any]:
        """Return the results as plain data."""
        return {
            "ranks": self.on_ranks.RANKS,
            "runs": [
                {
                    "collective": row.collective.name, "algorithm": row.algorithm, "time_us": row.time_s * 1e6,
                    "algbw": row.algbw, "busbw": row.busbw, "wrong": row.wrong,
                }
                for row in self.rows
            ],
            "predictions": [
                {
                    "algorithm": each.algorithm, "bytes": self.prediction.NBYTES, **each.predicted._asdict(),
                    "simulated_s": each.simulated_s, "measured_s": each.measured_s, "error": each.error,
                }
                for each in self.predictions
            ],
        }  # fmt: skip

    def show(self, out: Console) -> None:
        """Print the results."""
        out.print(
            f"\n[bold]4. Run.[/] All eight collectives on {self.on_ranks.RANKS} real processes, each result compared "
            "with that of the player:"
        )
        print_table(out, self.on_ranks.table_of(self.rows))
        out.print("   every element is right" if self.right else "   [red]some elements are wrong[/]")
        out.print(
            "\n[bold]5. Predict.[/] A second of other calls shows how fast this machine is; the times of these "
            "follow from their programs:"
        )
        print_table(out, self.prediction.table_of(self.predictions))


def _left_out() -> str:
    return str(native_engine.missing().message)


def _train(out: Console) -> bool:
    """Train a model; return whether it has learned."""
    out.print(
        f"\n[bold]6. Train.[/] A language model on {demo_training.RANKS} ranks, each of which holds a shard of it:"
    )
    out.print(f"   [cyan]unisono {' '.join(demo_training.words())}[/]", soft_wrap=True)
    training = demo_training.run()
    if training.missing:
        out.print(f"   skipped: {training.missing}")
    elif training.error:
        out.print(f"   [red]{training.error}[/]")
    else:
        out.print(f"   {training.summary}", soft_wrap=True)
        out.print("   a text that it writes:")
        for line in textwrap.wrap(training.sample, WIDTH):
            out.print(f"   | {line}", markup=False)
        if not training.right:
            out.print("   [red]it has not learned[/]")
    return training.right


def _same(outputs: list[np.ndarray | None]) -> list[int] | str:
    lists = [output.tolist() for output in outputs if output is not None]
    return lists[0] if all(other == lists[0] for other in lists) else f"different results: {lists}"
