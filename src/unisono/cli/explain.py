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
from unisono.comm.candidates import with_options
from unisono.comm.codec_messages import NOT_AUTO
from unisono.comm.explain_call import explain_call, explain_with
from unisono.comm.explanation import Explanation
from unisono.comm.topology import hosts_of, rank_counts
from unisono.costs.rates import DEFAULT
from unisono.errors import UsageError
from unisono.message import translated
from unisono.verifier import Proof, proof_of

DEFAULT_SIZE = 4
MOST_PROVED = 512  # ranks; a proof of more takes long, so the costs of the program are not shown


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "explain", help="show which algorithm a call uses, and why", description=arguments.described(__doc__)
    )
    parser.add_argument("collective", nargs="?", default="all_reduce", help="collective (default all_reduce)")
    parser.add_argument("-n", dest="size", type=arguments.size, help=f"number of ranks (default {DEFAULT_SIZE})")
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
    parser.add_argument(
        "--network", metavar="NETWORK",
        help="explain for another machine: a preset such as dgx-h100, or a TOML file (docs/networks.md)",
    )  # fmt: skip
    parser.add_argument(
        "--built-in",
        action="store_true",
        help="predict with the default rates, and ignore what was measured on this machine",
    )
    arguments.add_language(parser)
    arguments.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the algorithm of each size."""
    collective = collectives.find(args.collective)
    counts = _rank_counts(args)
    size = sum(counts)
    hosts = None if args.topology is None else hosts_of(counts)
    if size > MOST_PROVED and args.algorithm is not None:
        raise UsageError(messages.EXPLAIN_TOO_LARGE(size=size, most=MOST_PROVED))
    if args.built_in and args.network is not None:
        raise UsageError(messages.BUILT_IN_NETWORK())
    if args.codec is not None and codecs.find_auto(args.codec) is None:
        raise UsageError(NOT_AUTO(codec=repr(args.codec)))
    rate = None if args.rate is None else arguments.rate(args.rate)
    options: dict[str, Any] = {"size": size, "algorithm": args.algorithm, "hosts": hosts}
    options |= {"codec": args.codec, "link_rate": rate}
    sizes = parse_sizes(args.bytes) if collective.carries_data else [0]
    if args.built_in:
        explanations = [explain_with(collective, each, rates=DEFAULT, table={}, **options) for each in sizes]
    else:
        explanations = [explain_call(collective, each, network=args.network, **options) for each in sizes]
    algorithms = {
        each.algorithm: names.resolve(args.algorithm or each.algorithm, collective) for each in explanations
    }
    proofs = [
        proof_of(algorithms[each.algorithm].schedule(size, **each.options))[0] if size <= MOST_PROVED else None
        for each in explanations
    ]
    if args.json:
        data = [_as_data(each, proof) for each, proof in zip(explanations, proofs, strict=True)]
        print_json([{**each, "network": args.network} for each in data])
        return 0
    out = console()
    title = messages.EXPLAIN_TITLE_OF_ONE if size == 1 else messages.EXPLAIN_TITLE
    heading = title(collective=f"[bold]{collective}[/]", size=size)
    if explanations[0].topology != str(size):
        heading = messages.EXPLAIN_TITLE_ON_HOSTS(
            collective=f"[bold]{collective}[/]", size=size, topology=explanations[0].topology
        )
    if args.network is not None:
        heading = messages.EXPLAIN_TITLE_ON_NETWORK(title=heading, network=args.network)
    out.print(translated(heading, args.lang))
    for each, proof in zip(explanations, proofs, strict=True):
        for number, line in enumerate(_lines(each, algorithms[each.algorithm], proof, args.lang)):
            print_paragraph(out, line, first="  " * bool(number), rest="    ")
    return 0


def _rank_counts(args: argparse.Namespace) -> tuple[int, ...]:
    """Return the number of ranks on each host."""
    if args.topology is None:
        return (args.size or DEFAULT_SIZE,)
    counts = rank_counts(args.topology)
    if counts is None:
        raise UsageError(messages.NOT_A_TOPOLOGY(text=args.topology))
    if args.size not in (None, sum(counts)):
        raise UsageError(messages.TWO_SIZES(size=args.size, topology=args.topology, ranks=sum(counts)))
    return counts


def _lines(
    explanation: Explanation, algorithm: Algorithm | WrittenSchedule, proof: Proof | None, language: str
) -> list[str]:
    """Return the lines about one size."""
    carries_data = collectives.find(explanation.collective).carries_data
    name = with_options(explanation.algorithm, explanation.options)
    if carries_data:
        first = messages.EXPLAINED(size=format_bytes(explanation.nbytes), algorithm=name)
    else:
        first = messages.EXPLAINED_WITHOUT_BYTES(algorithm=name)
    lines = [first, messages.EXPLAINED_REASON(reason=explanation.reason)]
    predicted = explanation.prediction_message()
    if predicted is not None and predicted != explanation.reason:
        lines.append(messages.EXPLAINED_PREDICTION(prediction=predicted))
    if proof is not None:
        lines.append(messages.EXPLAINED_COST(steps=proof.steps, rounds=proof.rounds, part=fraction(proof.busiest)))
    following = explanation.next_best_message()
    if following is not None:
        said = messages.EXPLAINED_CHOICE if explanation.requested else messages.EXPLAINED_NEXT
        lines.append(said(algorithm=following))
    if carries_data:
        lines.append(messages.EXPLAINED_TAKEOVERS(takeovers=explanation.takeovers_message()))
    if explanation.codec_reason is not None:
        lines.append(explanation.codec_reason)
    if carries_data and explanation.topology != str(explanation.size):
        lines.append(explanation.codec_rate_message())
    texts = [translated(line, language) for line in lines]
    idea = algorithm.idea_in(language)
    return [*texts[:2], *([idea] if idea else []), *texts[2:]]


def _as_data(explanation: Explanation, proof: Proof | None) -> dict[str, Any]:
    predicted = explanation.prediction
    costs = {} if proof is None else {"steps": proof.steps, "rounds": proof.rounds, "busiest": str(proof.busiest)}
    return {
        "collective": explanation.collective, "ranks": explanation.size, "topology": explanation.topology,
        "bytes": explanation.nbytes, "algorithm": explanation.algorithm, "options": dict(explanation.options),
        "reason": str(explanation.reason), "next_best": explanation.next_best,
        "codec": explanation.codec, "codec_reason": explanation.codec_reason and str(explanation.codec_reason),
        "prediction": None if predicted is None else predicted._asdict(), "next_best_behind": explanation.behind,
        "measured": explanation.measured, "requested": explanation.requested,
        "takeovers": [each._asdict() for each in explanation.takeovers], "codec_pays_below": explanation.codec_rate,
        **costs,
    }  # fmt: skip
