"""``unisono show``: an algorithm as its author wrote it, as every rank plays it, and with numbers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from unisono import collectives
from unisono.algorithms import Algorithm
from unisono.cli import arguments
from unisono.cli.names import WrittenSchedule, resolve
from unisono.cli.output import console, print_json, print_table, table
from unisono.cli.output import ranks as ranks_
from unisono.collectives import Collective
from unisono.errors import UsageError
from unisono.player.memory import Cell
from unisono.player.play import Playback, play
from unisono.player.reduction import COMBINES
from unisono.schedule import Schedule
from unisono.schedule.text import format_program, format_schedule, format_step

MOST_CELLS = 20_000
BARS = " ▁▂▃▄▅▆▇█"
WORDS = {
    "en": {
        "title": "{label} on {ranks}",
        "colon": ": ",
        "rank": "rank {rank}",
        "before": "before",
        "after": "after level {level}",
        "step": "step",
        "legend": "how many ranks are combined in a number: ",
        "divided": "divided by {size}, on each rank:",
    },
    "zh": {
        "title": "{label}，{size} 个进程",
        "colon": "：",
        "rank": "进程 {rank}",
        "before": "开始",
        "after": "第 {level} 层之后",
        "step": "步骤",
        "legend": "每个数已合并的进程数：",
        "divided": "除以 {size} 之后，各进程：",
    },
}


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "show", help="show what every rank does, step by step", description=arguments.described(__doc__)
    )
    parser.add_argument("name", help="e.g. ring, all_gather/ring, my_algo.py:zigzag, or a schedule in text form")
    parser.add_argument("-n", dest="size", type=arguments.size, help="number of ranks (default 4)")
    parser.add_argument("--rank", type=int, metavar="R", help="only this rank")
    parser.add_argument(
        "--data", action="store_true", help="play it with numbers: what everyone holds after each step"
    )
    parser.add_argument("--op", choices=COMBINES, default="sum", help="what is done with the numbers (default sum)")
    parser.add_argument("--source", action="store_true", help="also show the Python program")
    parser.add_argument("--text", action="store_true", help="print the text form that can be read back, nothing else")
    arguments.add_options(parser)
    arguments.add_language(parser)
    arguments.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the schedule."""
    algorithm = resolve(args.name)
    size = args.size or (algorithm.written.size if isinstance(algorithm, WrittenSchedule) else 4)
    schedule = algorithm.schedule(size, args.root, **arguments.options(args.option))
    if args.rank is not None and not 0 <= args.rank < size:
        raise UsageError(f"--rank {args.rank} with {size} ranks; expected a rank from 0 to {size - 1}")
    ranks = range(size) if args.rank is None else [args.rank]
    if args.text:
        print(format_schedule(schedule), end="")
        return 0
    if args.data and size * schedule.slots > MOST_CELLS:
        raise UsageError(
            f"{schedule.label}: {ranks_(size)} with {schedule.slots} slots each are too many to show; --data shows "
            f"at most {MOST_CELLS:,} slots in all"
        )
    playback = play_example(schedule, algorithm.collective, args.op) if args.data else None
    if args.json:
        print_json(_as_data(schedule, ranks, playback))
        return 0
    out = console()
    idea = algorithm.idea_in(args.lang)
    title = WORDS[args.lang]["title"].format(
        label=f"[bold]{escape(schedule.label)}[/]", size=size, ranks=ranks_(size)
    )
    out.print(title + (WORDS[args.lang]["colon"] + escape(idea) if idea else ""), soft_wrap=True)
    out.print(f"[italic]{getattr(algorithm.collective.story, args.lang)}[/]")
    if isinstance(algorithm, Algorithm) and algorithm.options:
        settings = {**algorithm.options, **schedule.options}
        out.print("[dim]--option " + escape(", ".join(f"{name}={value}" for name, value in settings.items())) + "[/]")
    if args.source and isinstance(algorithm, Algorithm):
        out.print(Syntax(algorithm.source, "python", theme="ansi_light", background_color="default"))
    if playback is None:
        for rank in ranks:
            for line in format_program(schedule, rank):
                out.print(line, markup=False, soft_wrap=True)
    else:
        for made in data_tables(schedule, playback, ranks, args.lang):
            print_table(out, made)
        if args.op == "avg" and algorithm.collective.reduces and algorithm.collective.carries_data:
            shares = "; ".join(map(_plain, playback.outputs))
            out.print(WORDS[args.lang]["divided"].format(size=size), shares, soft_wrap=True)
        if algorithm.collective.reduces:
            print_legend(out, size, args.lang)
    return 0


def play_example(schedule: Schedule, collective: Collective, op: str = "sum") -> Playback:
    """Play with numbers that are easy to follow: element c of rank r is r + c; one element for each chunk."""
    inputs: list[np.ndarray | None] = []
    for rank in range(schedule.size):
        held = collective.held_before(rank, schedule.size, schedule.chunks, schedule.root or 0)
        inputs.append(np.array(held) + rank if len(held) else None)
        if op == "avg" and inputs[-1] is not None:
            inputs[-1] = inputs[-1].astype(float)
    return play(schedule, inputs, op, record=True)


def data_tables(
    schedule: Schedule, playback: Playback, ranks: range | list[int], language: str = "en"
) -> Iterator[Table]:
    """Yield a table for the state before the first step and after each level."""
    words = WORDS[language]
    steps = {rank: list(schedule.program(rank)) for rank in ranks}
    done = dict.fromkeys(ranks, 0)
    scratch_from = collectives.find(schedule.collective).slots(schedule.chunks)[-1].stop
    for frame in playback.frames():
        headings = [
            f">{slot}" + ("" if slot < schedule.chunks else " out" if slot < scratch_from else " scratch")
            for slot in range(schedule.slots)
        ]
        title = words["before"] if frame.level == 0 else words["after"].format(level=frame.level - 1)
        made = table("", *headings, words["step"] if frame.level else "", title=title)
        made.columns[-1].no_wrap = False
        for rank in ranks:
            upto = frame.steps_done[rank]
            did = " | ".join(f"{index}: {format_step(steps[rank][index])}" for index in range(done[rank], upto))
            done[rank] = upto
            cells = [_cell(cell, schedule.size) for cell in frame.rows[rank]]
            made.add_row(words["rank"].format(rank=rank), *cells, Text(did, style="dim"))
        yield made


def print_legend(out: Console, size: int, language: str = "en") -> None:
    """Say what the bars and colours mean."""
    legend = Text(WORDS[language]["legend"])
    for count in range(1, size + 1) if size <= 8 else (1, size // 4, size // 2, 3 * size // 4, size):
        legend.append(f"{_bar(count, size)} {count}  ", style=_style(count, size))
    out.print(legend)


def _plain(output: np.ndarray | None) -> str:
    return "-" if output is None else " ".join(f"{value:g}" for value in output)


def _cell(cell: Cell | None, size: int) -> Text:
    if cell is None:
        return Text("·", style="dim")
    count = cell.ranks.bit_count()
    numbers = " ".join(f"{value:g}" for value in cell.values)
    return Text(f"{_bar(count, size)} {numbers}", style=_style(count, size))


def _bar(count: int, size: int) -> str:
    return BARS[-(-count * 8 // size)]


def _style(count: int, size: int) -> str:
    return "bold green" if count == size else "white" if count == 1 else "yellow" if 2 * count <= size else "cyan"


def _as_data(schedule: Schedule, ranks: range | list[int], playback: Playback | None) -> dict[str, object]:
    data: dict[str, object] = {
        "collective": schedule.collective, "algorithm": schedule.algorithm, "size": schedule.size,
        "chunks": schedule.chunks, "slots": schedule.slots, "root": schedule.root,
        "programs": {rank: [[str(op) for op in step] for step in schedule.program(rank)] for rank in ranks},
    }  # fmt: skip
    if playback is not None:
        data["frames"] = [
            {
                "after_level": frame.level - 1 if frame.level else None,
                "rows": {
                    rank: [
                        cell and {"values": cell.values.tolist(), "ranks": cell.ranks.bit_count()}
                        for cell in frame.rows[rank]
                    ]
                    for rank in ranks
                },
            }
            for frame in playback.frames()
        ]
    return data
