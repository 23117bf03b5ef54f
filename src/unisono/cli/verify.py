"""``unisono verify``: prove algorithms for any number of sizes and roots."""

from __future__ import annotations

import argparse
import contextlib
import functools
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich.markup import escape

from unisono.algorithms import BUILT_IN, Algorithm
from unisono.cli import arguments
from unisono.cli import proof_messages as messages
from unisono.cli.names import WrittenSchedule, resolve
from unisono.cli.output import console, print_json, print_table, progress_bar, ratio, table
from unisono.errors import InternalError, ScheduleError
from unisono.message import translated
from unisono.schedule.ops import format_chunks
from unisono.schedule.schedule import DECLARED, Depth
from unisono.verifier import Proof, proof_of, prove
from unisono.verifier.hints import with_name

ALL_ROOTS_UP_TO = 33
COUNTS = (messages.PROOFS, messages.CACHED, messages.SECONDS)
COSTS = (messages.ROUNDS, messages.ROUNDS_RATIO, messages.BYTES_RATIO)
WORTH_SHARING = 200  # proofs; for fewer, starting more processes takes longer than it saves


class Task(NamedTuple):
    """One proof to make."""

    name: str
    size: int
    root: int | None
    options: dict[str, Any]
    depth: Depth
    fresh: bool


class Verdict(NamedTuple):
    """The result of a task: a proof, or an error."""

    task: Task
    proof: Proof | None
    error: ScheduleError | None
    cached: bool
    seconds: float


@dataclass
class Summary:
    """All verdicts on one algorithm."""

    name: str
    proofs: list[Proof] = field(default_factory=list)
    errors: list[ScheduleError] = field(default_factory=list)
    cached: int = 0
    seconds: float = 0.0


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser("verify", help="prove algorithms", description=arguments.described(__doc__))
    parser.add_argument("name", nargs="?", default="all", help="a name, a file.py:function, or all (default)")
    parser.add_argument("-n", dest="sizes", type=arguments.sizes, help="sizes: 8, 1-64 or 1-64,128 (default 1-16)")
    parser.add_argument(
        "--depth",
        type=arguments.depth,
        default=DECLARED,
        metavar="D",
        help="messages that a channel holds, or `unbounded` (default: as the algorithm declares, which is 1, the "
        "strictest, unless it says otherwise)",
    )
    parser.add_argument("--fresh", action="store_true", help="ignore cached proofs")
    parser.add_argument("-j", dest="jobs", type=arguments.count, help="processes (default: one per core)")
    arguments.add_options(parser)
    arguments.add_language(parser)
    arguments.add_json(parser)
    parser.epilog = (
        f"Without --root every root is tried up to {ALL_ROOTS_UP_TO} ranks, above that the first, the middle and the "
        "last. Sizes that an algorithm is not declared for are skipped. The exit code is 1 if a proof fails."
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prove, and print a line for each algorithm."""
    names = [str(algorithm) for algorithm in BUILT_IN] if args.name == "all" else [args.name]
    options = arguments.options(args.option)
    tasks = [task for name in names for task in _tasks(name, args, options)]
    summaries: dict[str, Summary] = {}
    out = console()
    began = time.perf_counter()
    for verdict in _verdicts(tasks, args.jobs, quiet=args.json):
        summary = summaries.setdefault(verdict.task.name, Summary(verdict.task.name))
        summary.seconds += verdict.seconds
        summary.cached += verdict.cached
        if verdict.proof is not None:
            summary.proofs.append(verdict.proof)
        if verdict.error is not None:
            summary.errors.append(verdict.error)
    failed = sum(len(summary.errors) for summary in summaries.values())
    elapsed = time.perf_counter() - began
    if args.json:
        print_json([_as_data(summary) for summary in summaries.values()])
        return 1 if failed else 0

    requested = args.sizes or []
    shown = {name: str(resolve(name)) for name in summaries}
    say = functools.partial(translated, language=args.lang)
    rows = table("", say(messages.ALGORITHM()), *(f">{say(each())}" for each in COUNTS), say(messages.SIZES()),
                 *(f">{say(each())}" for each in COSTS))  # fmt: skip
    for summary in summaries.values():
        sizes = sorted({proof.size for proof in summary.proofs})
        largest = max(summary.proofs, key=lambda proof: proof.size, default=None)
        rows.add_row(
            "[red]✗[/]" if summary.errors else "[green]✓[/]", escape(shown[summary.name]), str(len(summary.proofs)),
            str(summary.cached), f"{summary.seconds:.2f}",
            format_chunks(sizes) if sizes else say(messages.NO_SIZES()),
            *([] if largest is None else _costs(largest)),
        )  # fmt: skip
    print_table(out, rows)
    if len({proof.size for summary in summaries.values() for proof in summary.proofs}) > 1:
        out.print(f"[dim]{say(messages.LARGEST_SIZE())}[/]")
    for summary in summaries.values():
        if summary.errors:
            first = summary.errors[0]
            others = len(summary.errors) - 1
            more = f"\n  {say(messages.MORE_FAILED(count=others))}" if others else ""
            out.print(f"\n[red]{type(first).__name__}[/] {escape(first.text(args.lang))}{more}", soft_wrap=True)
        elif args.name != "all" and summary.proofs:
            for remark in max(summary.proofs, key=lambda proof: proof.size).remarks:
                note = messages.NOTE(name=escape(shown[summary.name]), note=escape(say(remark)))
                out.print(say(note), soft_wrap=True)
        skipped = sorted(set(requested) - {task.size for task in tasks if task.name == summary.name})
        if skipped:
            left_out = messages.NOT_DECLARED(sizes=format_chunks(skipped))
            out.print(say(messages.NOTE(name=escape(shown[summary.name]), note=left_out)))
    proved = sum(len(summary.proofs) for summary in summaries.values())
    out.print("\n" + say(messages.TOTAL(proved=proved, failed=failed, seconds=f"{elapsed:.1f}")))
    return 1 if failed else 0


def _tasks(name: str, args: argparse.Namespace, options: dict[str, Any]) -> Iterator[Task]:
    """Yield a task for every size that the algorithm serves and that has the requested root."""
    algorithm = resolve(name)
    written = algorithm.written if isinstance(algorithm, WrittenSchedule) else None
    sizes = args.sizes or ([written.size] if written else range(1, 17))
    possible = [size for size in sizes if _is_possible(algorithm, size, args.root)] or list(sizes)
    for size in possible:
        algorithm.schedule(size, args.root, **options)  # an impossible call is an error before anything runs
        for root in _roots(algorithm, size, args.root):
            yield Task(name, size, root, options, args.depth, args.fresh)


def _is_possible(algorithm: Algorithm | WrittenSchedule, size: int, root: int | None) -> bool:
    serves = not isinstance(algorithm, Algorithm) or algorithm.can_serve(size)
    return serves and (root is None or root < size)


def _roots(algorithm: Algorithm | WrittenSchedule, size: int, chosen: int | None) -> list[int | None]:
    if chosen is not None or not algorithm.collective.rooted or isinstance(algorithm, WrittenSchedule):
        return [chosen]
    if size <= ALL_ROOTS_UP_TO:
        return list(range(size))
    return [0, size // 2, size - 1]


def _verdict(task: Task) -> Verdict:
    began = time.perf_counter()
    proof, error, cached = None, None, False
    try:
        schedule = resolve(task.name).schedule(task.size, task.root, **task.options)
        proof, cached = (prove(schedule, task.depth), False) if task.fresh else proof_of(schedule, task.depth)
    except ScheduleError as failure:
        error = with_name(failure, task.name, task.root, task.options)
    return Verdict(task, proof, error, cached, time.perf_counter() - began)


def _verdicts(tasks: list[Task], jobs: int | None, quiet: bool) -> Iterator[Verdict]:
    jobs = jobs or (os.cpu_count() or 1 if len(tasks) >= WORTH_SHARING or max(t.size for t in tasks) > 128 else 1)
    with contextlib.ExitStack() as stack:
        progress = stack.enter_context(progress_bar(quiet))
        bar = progress.add_task("proving", total=len(tasks))
        if jobs == 1:
            verdicts: Iterator[Verdict] = map(_verdict, tasks)
        else:
            pool = stack.enter_context(_workers(jobs))
            # Large sizes first, so that no process ends with a long proof while the others are idle.
            ordered = sorted(tasks, key=lambda task: -task.size)
            verdicts = pool.map(_verdict, ordered, chunksize=max(1, min(32, len(tasks) // (16 * jobs))))
        results = []
        try:
            for verdict in verdicts:
                results.append(verdict)
                progress.update(bar, advance=1, description=escape(verdict.task.name))
        except BrokenProcessPool as error:
            raise InternalError(messages.WORKER_DIED()) from error
    if len(results) != len(tasks):
        raise InternalError(messages.VERDICTS_LOST(found=len(results), expected=len(tasks)))
    # In the order of the tasks, not in the order in which they were finished.
    position = {(task.name, task.size, task.root): index for index, task in enumerate(tasks)}
    yield from sorted(results, key=lambda verdict: position[verdict.task.name, verdict.task.size, verdict.task.root])


@contextlib.contextmanager
def _workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Start worker processes, and end them when the proofs are done or interrupted."""
    pool = ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("spawn"),
        # Ctrl-C reaches all processes of the terminal: only this one handles it.
        initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    try:
        yield pool
    except BaseException:
        for worker in multiprocessing.active_children():
            worker.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _costs(proof: Proof) -> list[str]:
    return [str(proof.rounds), ratio(proof.latency_ratio), ratio(proof.bandwidth_ratio)]


def _as_data(summary: Summary) -> dict[str, Any]:
    return {
        "algorithm": summary.name, "proved": len(summary.proofs), "failed": len(summary.errors),
        "from_cache": summary.cached, "seconds": round(summary.seconds, 3),
        "proofs": [proof.as_dict() for proof in summary.proofs],
        "errors": [error.context() for error in summary.errors],
    }  # fmt: skip
