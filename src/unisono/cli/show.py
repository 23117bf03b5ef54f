"""``unisono show``: the steps of every rank, the numbers that they move, and the error of a wrong program."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
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
from unisono.cli import proof_messages as messages
from unisono.cli.names import WrittenSchedule, resolve
from unisono.cli.output import console, print_json, print_table, table
from unisono.collectives import Collective
from unisono.errors import ScheduleError, UsageError
from unisono.message import Message, join, translated
from unisono.notation import chunk_name, part_name
from unisono.player.memory import Cell
from unisono.player.play import Playback, play_until_error
from unisono.player.reduction import COMBINES
from unisono.schedule import Schedule, Step
from unisono.schedule.ops import COPY, SEND, Chunks, Op, format_chunks
from unisono.schedule.text import format_schedule, format_step
from unisono.verifier import proof_of
from unisono.verifier.hints import with_name
from unisono.verifier.symbols import listing, ranks_in

MOST_CELLS = 20_000
MOST_RANKS = 256  # whose programs are printed
PROVED_UP_TO = 300_000  # slots of all ranks: such a proof takes about a second
BARS = " ▁▂▃▄▅▆▇█"
REPEATED_MARK = "✗"  # instead of a bar where a rank is counted twice
REPEATED_STYLE = "bold red"
MOST_REPEATED = 3  # ranks that are named in a cell


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser("show", help="show the steps of every rank", description=arguments.described(__doc__))
    parser.add_argument("name", help="e.g. ring, all_gather/ring, my_algo.py:zigzag, or a schedule in text form")
    parser.add_argument("-n", dest="size", type=arguments.size, help="number of ranks (default 4)")
    parser.add_argument("--rank", type=int, metavar="R", help="only this rank")
    parser.add_argument(
        "--data", action="store_true", help="play it with numbers: the contents of every slot after each level"
    )
    parser.add_argument("--op", choices=COMBINES, default="sum", help="the reduction of the numbers (default sum)")
    parser.add_argument("--source", action="store_true", help="also show the Python program")
    parser.add_argument("--text", action="store_true", help="print the text form that can be read back, nothing else")
    arguments.add_options(parser)
    arguments.add_language(parser)
    arguments.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the schedule, and the error of a program that is wrong."""
    algorithm = resolve(args.name)
    size = args.size or (algorithm.written.size if isinstance(algorithm, WrittenSchedule) else 4)
    schedule = algorithm.schedule(size, args.root, **arguments.options(args.option))
    _check_limits(args, schedule)
    ranks = range(size) if args.rank is None else [args.rank]
    if args.text:
        print(format_schedule(schedule), end="")
        return 0
    error = _error_of(schedule)
    if error is not None:
        error = with_name(error, args.name, schedule.root, schedule.options)
    playable = schedule if error is None else _truncated(schedule)
    playback = play_example(playable, algorithm.collective, args.op) if args.data else None
    if args.json:
        print_json(_as_data(schedule, ranks, playback, error))
        return 1 if error else 0
    out = console()
    _print_heading(out, algorithm, schedule, args)
    if playback is None:
        _print_programs(out, schedule, ranks, args.lang)
    else:
        _print_data(out, algorithm.collective, schedule, playback, ranks, args)
    if error is not None:
        label = translated(messages.NOT_PROVED(), args.lang)
        text = escape(error.text(args.lang))
        out.print(f"\n[bold red]{label}[/] [red]{type(error).__name__}[/] {text}", soft_wrap=True)
        return 1
    if not _is_proved_here(schedule):
        note = messages.TOO_LARGE_TO_PROVE(size=size, name=args.name)
        out.print(f"[yellow]{escape(translated(note, args.lang))}[/]", soft_wrap=True)
    return 0


def _check_limits(args: argparse.Namespace, schedule: Schedule) -> None:
    size = schedule.size
    if args.rank is not None and not 0 <= args.rank < size:
        raise UsageError(messages.NO_SUCH_RANK(rank=args.rank, size=size, last=size - 1))
    if args.rank is None and size > MOST_RANKS:
        raise UsageError(messages.TOO_MANY_RANKS(size=size, most=MOST_RANKS))
    if args.data and size * schedule.slots > MOST_CELLS:
        raise UsageError(
            messages.TOO_MANY_CELLS(algorithm=schedule.label, size=size, slots=schedule.slots, most=f"{MOST_CELLS:,}")
        )


def _is_proved_here(schedule: Schedule) -> bool:
    return schedule.size * schedule.slots <= PROVED_UP_TO


def _error_of(schedule: Schedule) -> ScheduleError | None:
    """Return the error of a program that is wrong; None if it is proved, or too large to be proved here."""
    if _is_proved_here(schedule):
        try:
            proof_of(schedule)
        except ScheduleError as error:
            return error
    return None


def _truncated(schedule: Schedule) -> Schedule:
    """Return the schedule with each program cut off at its first error, so that the rest can be played."""
    steps = [_steps(schedule, rank) for rank in range(schedule.size)]
    return dataclasses.replace(schedule, make=steps.__getitem__)


def _print_heading(
    out: Console, algorithm: Algorithm | WrittenSchedule, schedule: Schedule, args: argparse.Namespace
) -> None:
    """Print the name, the idea and the story; options and source code where there are any."""
    template = messages.TITLE_OF_ONE if schedule.size == 1 else messages.TITLE
    title: str = template(label=f"[bold]{escape(schedule.label)}[/]", size=schedule.size)
    idea = algorithm.idea_in(args.lang)
    if idea:
        title = messages.WITH_IDEA(title=title, idea=escape(idea))
    out.print(translated(title, args.lang), soft_wrap=True)
    out.print(f"[italic]{getattr(algorithm.collective.story, args.lang)}[/]")
    if isinstance(algorithm, Algorithm) and algorithm.options:
        settings = {**algorithm.options, **schedule.options}
        out.print("[dim]--option " + escape(", ".join(f"{name}={value}" for name, value in settings.items())) + "[/]")
    if args.source and isinstance(algorithm, Algorithm):
        out.print(Syntax(algorithm.source, "python", theme="ansi_light", background_color="default"))


def _print_programs(out: Console, schedule: Schedule, ranks: range | list[int], language: str) -> None:
    """Print the steps of each rank; a program that is wrong ends where it goes wrong."""
    for rank in ranks:
        out.print(translated(messages.RANK(rank=rank), language), markup=False, soft_wrap=True)
        with contextlib.suppress(ScheduleError):  # which the proof reports
            for number, step in enumerate(schedule.program(rank), 1):
                ops = join(map(_described, step))
                out.print(f"  {number}: {translated(ops, language)}", markup=False, soft_wrap=True)


def _described(op: Op) -> Message:
    """Return an op as a sentence that says which numbers are chunks and which are ranks."""
    chunks = _chunks(op.chunks)
    if op.is_local:
        template = messages.OP_COPY if op.kind == COPY else messages.OP_COMBINE
        return template(kind=op.kind, chunks=chunks, other=_chunks(op.other))
    template = messages.OP_TO if op.kind == SEND else messages.OP_FROM
    return template(kind=op.kind, chunks=chunks, rank=format_chunks(op.other))


def _chunks(chunks: Chunks) -> Message:
    template = messages.ONE_CHUNK if isinstance(chunks, int) else messages.SEVERAL_CHUNKS
    return template(chunks=format_chunks(chunks))


def _print_data(
    out: Console, collective: Collective, schedule: Schedule, playback: Playback, ranks: range | list[int],
    args: argparse.Namespace,
) -> None:  # fmt: skip
    """Print the contents of all slots before the first step and after each level."""
    for made in data_tables(schedule, playback, ranks, args.lang):
        print_table(out, made)
    if args.op == "avg" and collective.reduces and collective.carries_data and playback.outputs:
        shares = "; ".join(map(_plain, playback.outputs))
        out.print(translated(messages.DIVIDED(size=schedule.size), args.lang), shares, soft_wrap=True)
    if collective.reduces:
        print_legend(out, schedule.size, args.lang, repeated=_has_repeated(playback))


def play_example(schedule: Schedule, collective: Collective, op: str = "sum") -> Playback:
    """Play with numbers that are easy to follow, one element for each chunk.

    Where numbers are combined, chunk c of rank r is r + c. Elsewhere every chunk is a different number, from which
    ``_moved`` finds its name. A program that is wrong is played as far as it goes.
    """
    step = 1 if collective.reduces else schedule.chunks
    inputs: list[np.ndarray | None] = []
    for rank in range(schedule.size):
        held = collective.held_before(rank, schedule.size, schedule.chunks, schedule.root or 0)
        inputs.append(np.array(held) + rank * step if len(held) else None)
        if op == "avg" and inputs[-1] is not None:
            inputs[-1] = inputs[-1].astype(float)
    return play_until_error(schedule, inputs, op)[0]


def data_tables(
    schedule: Schedule, playback: Playback, ranks: range | list[int], language: str = "en"
) -> Iterator[Table]:
    """Yield a table for the state before the first step and after each level."""
    steps = {rank: _steps(schedule, rank) for rank in ranks}
    done = dict.fromkeys(ranks, 0)
    collective = collectives.find(schedule.collective)
    scratch_from = collective.slots(schedule.chunks)[-1].stop
    for frame in playback.frames():
        headings = [
            f">{slot} "
            + (chunk_name(slot) if slot < schedule.chunks else "out" if slot < scratch_from else "scratch")
            for slot in range(schedule.slots)
        ]
        title = messages.BEFORE() if frame.level == 0 else messages.AFTER_LEVEL(level=frame.level)
        step = translated(messages.STEP(), language) if frame.level else ""
        made = table("", *headings, step, title=translated(title, language))
        made.columns[-1].no_wrap = False
        for rank in ranks:
            upto = frame.steps_done[rank]
            did = " | ".join(f"{index + 1}: {format_step(steps[rank][index])}" for index in range(done[rank], upto))
            done[rank] = upto
            cells = [_cell(cell, schedule, collective, language) for cell in frame.rows[rank]]
            made.add_row(translated(messages.RANK(rank=rank), language), *cells, Text(did, style="dim"))
        yield made


def _steps(schedule: Schedule, rank: int) -> list[Step]:
    """Return the steps of a rank; those before the error if its program is wrong."""
    steps: list[Step] = []
    with contextlib.suppress(ScheduleError):
        steps.extend(schedule.program(rank))
    return steps


def print_legend(out: Console, size: int, language: str = "en", repeated: bool = False) -> None:
    """Explain the bars and colours; ``repeated``: also the mark of a rank that is counted twice."""
    legend = Text(translated(messages.LEGEND(), language))
    for count in range(1, size + 1) if size <= 8 else (1, size // 4, size // 2, 3 * size // 4, size):
        legend.append(f"{_bar(count, size)} {count}  ", style=_style(count, size))
    if repeated:
        legend.append(f"{REPEATED_MARK} {translated(messages.REPEATED_LEGEND(), language)}", style=REPEATED_STYLE)
    out.print(legend)


def _has_repeated(playback: Playback) -> bool:
    return any(cell and cell.repeated for states in playback.history for _, row in states for cell in row)


def _plain(output: np.ndarray | None) -> str:
    return "-" if output is None else " ".join(f"{value:g}" for value in output)


def _cell(cell: Cell | None, schedule: Schedule, collective: Collective, language: str) -> Text:
    if cell is None:
        return Text("·", style="dim")
    if not collective.reduces:
        return Text(_moved(cell, schedule))
    size = schedule.size
    count = cell.ranks.bit_count()
    numbers = " ".join(f"{value:g}" for value in cell.values)
    if cell.repeated:
        twice = translated(messages.REPEATED(ranks=listing(ranks_in(cell.repeated), MOST_REPEATED)), language)
        return Text(f"{REPEATED_MARK} {numbers} ({twice})", style=REPEATED_STYLE)
    return Text(f"{_bar(count, size)} {numbers}", style=_style(count, size))


def _moved(cell: Cell, schedule: Schedule) -> str:
    """Return the name of a chunk that was moved, from its number (``play_example``)."""
    rank, chunk = divmod(int(cell.values[0]), schedule.chunks)
    return part_name(chunk, rank)


def _bar(count: int, size: int) -> str:
    return BARS[-(-count * 8 // size)]


def _style(count: int, size: int) -> str:
    return "bold green" if count == size else "white" if count == 1 else "yellow" if 2 * count <= size else "cyan"


def _as_data(
    schedule: Schedule, ranks: range | list[int], playback: Playback | None, error: ScheduleError | None
) -> dict[str, object]:
    """Return everything as plain data; the numbers of steps and levels are indices, which count from 0."""
    data: dict[str, object] = {
        "collective": schedule.collective, "algorithm": schedule.algorithm, "size": schedule.size,
        "chunks": schedule.chunks, "slots": schedule.slots, "root": schedule.root, "depth": schedule.depth,
        "proved": error is None if _is_proved_here(schedule) else None,
        "programs": {rank: [[str(op) for op in step] for step in _steps(schedule, rank)] for rank in ranks},
    }  # fmt: skip
    if playback is not None:
        data["frames"] = [
            {
                "after_level": frame.level - 1 if frame.level else None,
                "rows": {rank: [cell and _cell_data(cell) for cell in frame.rows[rank]] for rank in ranks},
            }
            for frame in playback.frames()
        ]
    if error is not None:
        data["failure"] = error.context()
    return data


def _cell_data(cell: Cell) -> dict[str, object]:
    data: dict[str, object] = {"values": cell.values.tolist(), "ranks": cell.ranks.bit_count()}
    return {**data, "counted_twice": ranks_in(cell.repeated)} if cell.repeated else data
