"""``unisono explain``: show the algorithm that a call uses on this machine, and why."""

from __future__ import annotations

import argparse
from typing import Any

from unisono import codecs, collectives
from unisono.algorithms import Algorithm
from unisono.algorithms.user_files import WrittenSchedule
from unisono.bench.cases import format_bytes, parse_sizes
from unisono.cli import arguments, messages, names
from unisono.cli.output import console, fraction, print_json, print_paragraph
from unisono.comm.codec_messages import NOT_AUTO
from unisono.comm.explain_call import explain_call
from unisono.comm.rules import with_options
from unisono.comm.selection import Explanation
from unisono.comm.topology import hosts_of, rank_counts
from unisono.errors import UsageError
from unisono.message import translated
from unisono.verifier import Proof, proof_of

MOST_RANKS = 512  # the next best algorithm is found by a proof of all


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "explain", help="show which algorithm a call uses, and why", description=arguments.described(__doc__)
    )
    parser.add_argument("collective", nargs="?", default="all_reduce", help="collective (default all_reduce)")
    parser.add_argument("-n", dest="size", type=arguments.size, default=4, help="number of ranks (default 4)")
    parser.add_argument(
        "--topology", metavar="HOSTS",
        help="ranks on several hosts, instead of -n: 2x4 is two hosts with four ranks each, 3+1 is hosts with three "
        "ranks and one",
    )  # fmt: skip
    parser.add_argument(
        "--bytes", default="1MiB", metavar="SIZES",
        help="sizes of the vector: 1MiB, a list 1KiB,1MiB, or a range that doubles, 8:64MiB (default 1MiB)",
    )  # fmt: skip
    parser.add_argument(
        "--algorithm", metavar="NAME", help="explain a call that passes this algorithm: a built-in, or my.py:my_ring"
    )
    parser.add_argument(
        "--codec", metavar="auto:NAME", help="explain a call that allows this codec, such as auto:bf16"
    )
    parser.add_argument(
        "--rate", help="rate of the links between hosts, such as 10Gbit; --codec depends on it (default: not known)"
    )
    parser.add_argument("--built-in", action="store_true", help="ignore the table that `unisono tune` has measured")
    arguments.add_language(parser)
    arguments.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the algorithm of each size."""
    collective = collectives.find(args.collective)
    counts = _rank_counts(args)
    size, hosts = sum(counts), hosts_of(counts)
    if size > MOST_RANKS:
        raise UsageError(messages.EXPLAIN_TOO_LARGE(size=size, most=MOST_RANKS))
    if args.codec is not None and codecs.find_auto(args.codec) is None:
        raise UsageError(NOT_AUTO(codec=repr(args.codec)))
    rate = None if args.rate is None else arguments.rate(args.rate)
    table: dict[str, Any] | None = {} if args.built_in else None
    options: dict[str, Any] = {"size": size, "algorithm": args.algorithm, "table": table, "hosts": hosts}
    options |= {"codec": args.codec, "link_rate": rate}
    explanations = [explain_call(collective, nbytes, **options) for nbytes in parse_sizes(args.bytes)]
    algorithms = {
        each.algorithm: names.resolve(args.algorithm or each.algorithm, collective) for each in explanations
    }
    proofs = [proof_of(algorithms[each.algorithm].schedule(size, **each.options))[0] for each in explanations]
    if args.json:
        print_json([_as_data(each, proof) for each, proof in zip(explanations, proofs, strict=True)])
        return 0
    out = console()
    title = messages.EXPLAIN_TITLE_OF_ONE if size == 1 else messages.EXPLAIN_TITLE
    heading = title(collective=f"[bold]{collective}[/]", size=size)
    if len(counts) > 1:
        heading = messages.EXPLAIN_TITLE_ON_HOSTS(
            collective=f"[bold]{collective}[/]", size=size, topology=args.topology
        )
    out.print(translated(heading, args.lang))
    for each, proof in zip(explanations, proofs, strict=True):
        for number, line in enumerate(_lines(each, algorithms[each.algorithm], proof, args.lang)):
            print_paragraph(out, line, first="  " * bool(number), rest="    ")
    return 0


def _rank_counts(args: argparse.Namespace) -> tuple[int, ...]:
    """Return the number of ranks on each host."""
    if args.topology is None:
        return (args.size,)
    counts = rank_counts(args.topology)
    if counts is None:
        raise UsageError(messages.NOT_A_TOPOLOGY(text=args.topology))
    return counts


def _lines(
    explanation: Explanation, algorithm: Algorithm | WrittenSchedule, proof: Proof, language: str
) -> list[str]:
    """Return the lines about one size."""
    size = format_bytes(explanation.nbytes)
    lines = [
        messages.EXPLAINED(size=size, algorithm=with_options(explanation.algorithm, explanation.options)),
        messages.EXPLAINED_REASON(reason=explanation.reason),
        messages.EXPLAINED_COST(steps=proof.steps, rounds=proof.rounds, part=fraction(proof.busiest)),
    ]
    if explanation.next_best:
        lines.append(messages.EXPLAINED_NEXT(algorithm=explanation.next_best))
    if explanation.codec_reason is not None:
        lines.append(explanation.codec_reason)
    texts = [translated(line, language) for line in lines]
    idea = algorithm.idea_in(language)
    return [*texts[:2], *([idea] if idea else []), *texts[2:]]


def _as_data(explanation: Explanation, proof: Proof) -> dict[str, Any]:
    return {
        "collective": explanation.collective, "ranks": explanation.size, "topology": explanation.topology,
        "bytes": explanation.nbytes, "algorithm": explanation.algorithm, "options": dict(explanation.options),
        "reason": str(explanation.reason), "next_best": explanation.next_best,
        "codec": explanation.codec, "codec_reason": explanation.codec_reason and str(explanation.codec_reason),
        "steps": proof.steps, "rounds": proof.rounds, "busiest": str(proof.busiest),
    }  # fmt: skip
