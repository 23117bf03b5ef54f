"""``unisono list``: every collective, its algorithms, and what each one costs."""

from __future__ import annotations

import argparse

from rich.markup import escape

from unisono import collectives
from unisono.algorithms import of
from unisono.cli import arguments
from unisono.cli.output import console, fraction, print_json, ratio, table
from unisono.verifier import prove

COLUMNS = {
    "en": ("algorithm", ">steps", ">rounds", ">vs bound", ">bytes sent", ">vs bound", ">extra memory", "idea"),
    "zh": ("算法", ">步数", ">轮数", ">与下界之比", ">发送字节", ">与下界之比", ">额外内存", "思路"),
}
BOUND = {
    "en": "No algorithm on {size} ranks needs fewer than {rounds} rounds, or less than {least} of the message "
    "through its busiest rank.",
    "zh": "在 {size} 个进程上，任何算法至少需要 {rounds} 轮，最忙的进程至少要收或发消息的 {least} 倍。",
}
LEGEND = {
    "en": "Bytes (sent by the rank that sends the most) and memory are parts of the message. Rounds: a rank sends "
    "one message and receives one at a time.",
    "zh": "字节数（取发送最多的进程）和内存都以消息长度为单位。轮数：每个进程一次只发一条、收一条消息。",
}


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser("list", help="list the algorithms with what each one costs", description=__doc__)
    parser.add_argument("collective", nargs="?", help="only those of this collective")
    parser.add_argument("-n", dest="size", type=arguments.size, default=8, help="number of ranks (default 8)")
    arguments.add_language(parser)
    arguments.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print a table for each collective."""
    chosen = [collectives.find(args.collective)] if args.collective else collectives.COLLECTIVES
    if args.json:
        print_json([
            {
                "collective": collective.name, "summary": collective.summary._asdict(),
                "story": collective.story._asdict(), "rooted": collective.rooted,
                "bus_factor": str(collective.bus_factor(args.size)),
                "algorithms": [
                    {"name": algorithm.name, "idea": algorithm.idea, **prove(algorithm.schedule(args.size)).as_dict()}
                    for algorithm in of(collective)
                ],
            }
            for collective in chosen
        ])  # fmt: skip
        return 0
    out = console()
    for collective in chosen:
        out.print(f"[bold]{collective}[/]: {getattr(collective.summary, args.lang)}", soft_wrap=True)
        out.print(f"[italic]{getattr(collective.story, args.lang)}[/]", soft_wrap=True)
        rows = table(*COLUMNS[args.lang])
        for algorithm in of(collective):
            proof = prove(algorithm.schedule(args.size))
            rows.add_row(
                f"[cyan]{algorithm.name}[/]", str(proof.steps), str(proof.rounds), ratio(proof.latency_ratio),
                fraction(proof.sent), ratio(proof.bandwidth_ratio), fraction(proof.extra_memory),
                escape(algorithm.idea),
            )  # fmt: skip
        out.print(rows)
        bound = BOUND[args.lang].format(
            size=args.size,
            rounds=collective.least_rounds(args.size),
            least=fraction(collective.least_bytes(args.size)),
        )
        out.print(f"[dim]{bound}[/]\n", soft_wrap=True)
    out.print(f"[dim]{LEGEND[args.lang]}[/]", soft_wrap=True)
    return 0
