"""``unisono list``: every collective, its algorithms, and what each one costs."""

from __future__ import annotations

import argparse
from typing import Any

from rich.markup import escape

from unisono import collectives
from unisono.algorithms import Algorithm, of
from unisono.cli import arguments
from unisono.cli.output import console, fraction, print_json, print_table, progress_bar, ranks, ratio, table
from unisono.collectives import Collective
from unisono.verifier import Proof, proof_of

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
        "在 {size} 个进程上，任何算法至少需要 {rounds} 轮",
        "，最忙的进程至少要收或发相当于整个向量 {least} 倍的数据",
    ),
}
FULL_STOP = {"en": ".", "zh": "。"}
LEGEND = {
    "en": "Bytes (sent or received by the busiest rank, whichever is more) and memory are parts of the vector. "
    "Steps: of the rank that has the most. Rounds: how long it takes if a rank sends one message and receives one "
    "at a time, and each takes one round.",
    "zh": "字节数（最忙的进程发送或接收的量，取较大者）和内存都以整个向量的长度为单位。"
    "步数：步数最多的进程的步数。轮数：若每个进程一次只发一条、收一条消息，每条消息耗时一轮，总共需要的轮数。",
}


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "list", help="list the algorithms with what each one costs", description=arguments.described(__doc__)
    )
    parser.add_argument("collective", nargs="?", help="only those of this collective")
    parser.add_argument("-n", dest="size", type=arguments.size, default=8, help="number of ranks (default 8)")
    arguments.add_language(parser)
    arguments.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print a table for each collective."""
    chosen = [collectives.find(args.collective)] if args.collective else collectives.COLLECTIVES
    proofs = _proofs([algorithm for collective in chosen for algorithm in of(collective)], args.size, quiet=args.json)
    if args.json:
        print_json([_as_data(collective, proofs, args.size) for collective in chosen])
        return 0
    out = console()
    for collective in chosen:
        out.print(f"[bold]{collective}[/]: {getattr(collective.summary, args.lang)}", soft_wrap=True)
        out.print(f"[italic]{getattr(collective.story, args.lang)}[/]", soft_wrap=True)
        rows = table(*COLUMNS[args.lang])
        for algorithm in of(collective):
            proof = proofs[str(algorithm)]
            rows.add_row(
                f"[cyan]{algorithm.name}[/]", str(proof.steps), str(proof.rounds), ratio(proof.latency_ratio),
                fraction(proof.busiest), ratio(proof.bandwidth_ratio), fraction(proof.extra_memory),
            )  # fmt: skip
        print_table(out, rows)
        for algorithm in of(collective):
            out.print(f"  [cyan]{algorithm.name}[/]: {escape(algorithm.idea_in(args.lang))}", soft_wrap=True)
        rounds, moved = BOUND[args.lang]
        bound = (rounds + moved * collective.carries_data).format(
            size=args.size,
            ranks=ranks(args.size),
            rounds=collective.least_rounds(args.size),
            least=fraction(collective.least_bytes(args.size)),
        )
        out.print(f"[dim]{bound}{FULL_STOP[args.lang]}[/]\n", soft_wrap=True)
    out.print(f"[dim]{LEGEND[args.lang]}[/]", soft_wrap=True)
    return 0


def _proofs(algorithms: list[Algorithm], size: int, quiet: bool) -> dict[str, Proof]:
    found = {}
    with progress_bar(quiet) as progress:
        bar = progress.add_task("proving", total=len(algorithms))
        for algorithm in algorithms:
            found[str(algorithm)], _ = proof_of(algorithm.schedule(size))
            progress.update(bar, advance=1, description=str(algorithm))
    return found


def _as_data(collective: Collective, proofs: dict[str, Proof], size: int) -> dict[str, Any]:
    return {
        "collective": collective.name, "summary": collective.summary._asdict(),
        "story": collective.story._asdict(), "rooted": collective.rooted,
        "bus_factor": str(collective.bus_factor(size)),
        "algorithms": [
            {"name": algorithm.name, "idea": _ideas(algorithm), **proofs[str(algorithm)].as_dict()}
            for algorithm in of(collective)
        ],
    }  # fmt: skip


def _ideas(algorithm: Algorithm) -> dict[str, str]:
    return {language: algorithm.idea_in(language) for language in COLUMNS}
