"""``unisono list``: the algorithms of every collective, or of a file, with the cost of each; or the networks."""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console

from unisono import collectives
from unisono.algorithms import Algorithm, algorithms_of, user_files
from unisono.algorithms.user_files import WrittenSchedule
from unisono.cli import arguments, list_networks, messages, names
from unisono.cli.output import (
    console,
    fraction,
    print_json,
    print_paragraph,
    print_table,
    progress_bar,
    ranks,
    ratio,
    table,
)
from unisono.collectives import Collective
from unisono.errors import UsageError
from unisono.message import translated
from unisono.verifier import Proof, proof_of

MOST_RANKS = 512
COLUMNS = {
    "en": ("algorithm", ">steps", ">rounds", ">vs\nleast", ">bytes", ">vs\nleast", ">extra\nmemory"),
    "zh": ("算法", ">步数", ">轮数", ">与下界\n之比", ">字节", ">与下界\n之比", ">额外\n内存"),
}
BOUND = {
    "en": (
        "No algorithm on {ranks} needs fewer than {rounds} rounds",
        ", or moves less than {least} of the vector through its busiest rank",
    ),
    "zh": (
        "在 {size} 个 rank 上，任何算法至少需要 {rounds} 轮",
        "，最忙的 rank 的单向数据量至少为整个向量的 {least} 倍",
    ),
}
FULL_STOP = {"en": ".", "zh": "。"}
LEGEND = {
    "en": "Bytes (sent or received by the busiest rank, whichever is more) and extra memory are multiples of the "
    "vector. Steps are those of the rank with the most. Rounds: the length of the schedule if every message takes "
    "one round, and a rank can send one and receive one per round.",
    "zh": "字节是最忙的 rank 的单向数据量（发送、接收取较大者）；字节和额外内存都以整个向量的大小为单位。"
    "步数取各 rank 中的最大值。轮数是调度的长度：假设每条消息耗时一轮，每个 rank 每轮最多发一条、收一条消息。",
}
Listed = dict[Collective, list[Algorithm | WrittenSchedule]]


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "list", help="list the algorithms and the cost of each", description=arguments.described(__doc__)
    )
    parser.add_argument(
        "collective",
        nargs="?",
        metavar="COLLECTIVE|FILE",
        help="list only this collective, or the algorithms of a file",
    )
    parser.add_argument("-n", dest="size", type=arguments.size, default=8, help="number of ranks (default 8)")
    parser.add_argument("--networks", action="store_true", help="list the networks for predictions instead")
    arguments.add_language(parser)
    arguments.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print a table for each collective, or the networks."""
    if args.networks:
        return list_networks.print_networks(args.lang, args.json)
    if args.size > MOST_RANKS:
        raise UsageError(messages.LIST_TOO_LARGE(size=args.size, most=MOST_RANKS))
    listed, skipped = _listed(args.collective, args.size)
    proofs = _proofs([algorithm for of_one in listed.values() for algorithm in of_one], args.size, quiet=args.json)
    if args.json:
        print_json([_as_data(collective, listed[collective], proofs, args.size) for collective in listed])
        return 0
    out = console()
    for collective, algorithms in listed.items():
        _print_collective(out, collective, algorithms, proofs, args.size, args.lang)
    for algorithm in skipped:
        note = translated(messages.SKIPPED(algorithm=algorithm, size=args.size), args.lang)
        print_paragraph(out, note, style="yellow")
    print_paragraph(out, LEGEND[args.lang], style="dim")
    return 0


def _listed(name: str | None, size: int) -> tuple[Listed, list[Algorithm | WrittenSchedule]]:
    """Return the algorithms of each collective that a name asks for, and those of a file that cannot be shown."""
    if name is None or not user_files.names_a_file(name):
        chosen = collectives.COLLECTIVES if name is None else (collectives.find(name),)
        return {collective: list(algorithms_of(collective)) for collective in chosen}, []
    found = [names.resolve(name)] if ".py:" in name else names.algorithms_in(name)
    able = [algorithm for algorithm in found if algorithm.can_serve(size)]
    listed: Listed = {}
    for algorithm in able:
        listed.setdefault(algorithm.collective, []).append(algorithm)
    return listed, [algorithm for algorithm in found if algorithm not in able]


def _print_collective(
    out: Console, collective: Collective, algorithms: list[Algorithm | WrittenSchedule], proofs: dict[str, Proof],
    size: int, language: str,
) -> None:  # fmt: skip
    print_paragraph(out, getattr(collective.summary, language), label=str(collective))
    print_paragraph(out, getattr(collective.story, language), style="italic")
    rows = table(*COLUMNS[language])
    for algorithm in algorithms:
        proof = proofs[str(algorithm)]
        rows.add_row(
            f"[cyan]{algorithm.name}[/]", str(proof.steps), str(proof.rounds), ratio(proof.latency_ratio),
            fraction(proof.busiest), ratio(proof.bandwidth_ratio), fraction(proof.extra_memory),
        )  # fmt: skip
    print_table(out, rows)
    for algorithm in algorithms:
        print_paragraph(out, algorithm.idea_in(language), label=algorithm.name, first="  ", rest="    ")
    rounds, moved = BOUND[language]
    bound = (rounds + moved * collective.carries_data).format(
        size=size,
        ranks=ranks(size),
        rounds=collective.least_rounds(size),
        least=fraction(collective.least_bytes(size)),
    )
    print_paragraph(out, bound + FULL_STOP[language], style="dim")
    out.print()


def _proofs(algorithms: list[Algorithm | WrittenSchedule], size: int, quiet: bool) -> dict[str, Proof]:
    proofs = {}
    with progress_bar(quiet) as progress:
        bar = progress.add_task("proving", total=len(algorithms))
        for algorithm in algorithms:
            proofs[str(algorithm)], _ = proof_of(algorithm.schedule(size))
            progress.update(bar, advance=1, description=str(algorithm))
    return proofs


def _as_data(
    collective: Collective, algorithms: list[Algorithm | WrittenSchedule], proofs: dict[str, Proof], size: int
) -> dict[str, Any]:
    return {
        "collective": collective.name, "summary": collective.summary._asdict(),
        "story": collective.story._asdict(), "rooted": collective.rooted,
        "bus_factor": str(collective.bus_factor(size)),
        "algorithms": [
            {"name": algorithm.name, "idea": _ideas(algorithm), **proofs[str(algorithm)].as_dict()}
            for algorithm in algorithms
        ],
    }  # fmt: skip


def _ideas(algorithm: Algorithm | WrittenSchedule) -> dict[str, str]:
    return {language: algorithm.idea_in(language) for language in COLUMNS}
