"""``unisono plan``: list the ways to train a model on a cluster, fastest first, with memory, times and reasons."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from unisono import planner
from unisono.cli import arguments
from unisono.cli.output import console, print_json, print_paragraph, print_table, table
from unisono.message import translated
from unisono.planner.plan import TOKENS, Candidate, Plan
from unisono.planner.programs import DEFAULT, PROGRAMS
from unisono.planner.quantities import gigabytes, seconds
from unisono.planner.texts import headings

COLUMNS = {
    "en": (
        ">", "dp", "tp", "pp", "ep", "ZeRO", "batch", "recompute", ">memory", ">p", ">g", ">o", ">act", ">step",
        ">compute", ">comm", ">hidden", ">bubble", ">tokens/s/GPU", ">MFU",
    ),
    "zh": (
        ">", "dp", "tp", "pp", "ep", "ZeRO", "微批", "重算", ">显存", ">参数", ">梯度", ">优化器", ">激活", ">每步",
        ">计算", ">通信", ">被掩盖", ">气泡", ">token/s/GPU", ">MFU",
    ),
}  # fmt: skip
COLLECTIVE_COLUMNS = {
    "en": ("collective", ">bytes", ">per step", "ranks", "link", ">near", ">far", ">time"),
    "zh": ("集合通信操作", ">字节", ">每步次数", "rank 数", "链路", ">主机内", ">主机间", ">时间"),
}
CALL_COLUMNS = {
    "en": ("phase", "collective", "tensor", ">bytes", "ranks"),
    "zh": ("阶段", "集合通信操作", "张量", ">字节", "rank 数"),
}
LINKS_ZH = {"near": "主机内", "far": "主机间"}


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "plan", help="list the ways to train a model on a cluster", description=arguments.described(__doc__)
    )
    parser.add_argument(
        "--model", default="llama-8b",
        help="a preset such as llama-8b, a Hugging Face config.json, or numbers: layers=32,hidden=4096,heads=32,"
        "vocabulary=32000 (default llama-8b)",
    )  # fmt: skip
    parser.add_argument("--gpus", type=arguments.count, default=64, help="number of GPUs (default 64)")
    parser.add_argument(
        "--network", default="dgx-h100", help="a preset (`unisono list --networks`) or a file (default dgx-h100)"
    )
    parser.add_argument(
        "--tokens", default=str(TOKENS), help="tokens of a step; 4M is 4 x 2^20 (default 4M)"
    )  # fmt: skip
    parser.add_argument(
        "--sequence", type=arguments.count, default=0, help="tokens of a sequence (default up to 4096)"
    )
    parser.add_argument("--memory", default="", help="memory of a GPU, such as 80GB (default: the data sheet)")
    parser.add_argument("--machine", default="", help="accelerator: h100, h200, a100, ... (default: of the network)")
    parser.add_argument(
        "--program", default=DEFAULT.name,
        help=f"constants of a training program: {', '.join(PROGRAMS)} (default {DEFAULT.name}; docs/planner.md)",
    )  # fmt: skip
    parser.add_argument(
        "--kind", default="mixed",
        help="bytes of parameters, gradients and optimizer: mixed (2 + 2 + 12), accumulated (2 + 6 + 12), "
        "float32 (4 + 4 + 8) (default mixed)",
    )  # fmt: skip
    parser.add_argument("--top", type=arguments.count, default=10, help="number of rows to show (default 10)")
    parser.add_argument(
        "--calls", action="store_true",
        help="list the collectives of the first combination as unisono.parallel runs it, one by one",
    )  # fmt: skip
    parser.add_argument("--draw", metavar="FILE", help="write a page with the ten best combinations")
    arguments.add_language(parser)
    arguments.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the plan."""
    found = planner.plan(
        args.model, gpus=args.gpus, network=args.network, tokens=args.tokens, sequence=args.sequence,
        memory=args.memory, machine=args.machine, program=args.program, kind=args.kind,
    )  # fmt: skip
    calls = _calls(found) if args.calls else []
    changes = planner.what_would_change(found)
    if args.draw:
        from unisono.planner.page import save_page  # it imports the drawing

        save_page(args.draw, found, changes, args.lang)
    if args.json:
        listed = {"calls": [asdict(call) for call in calls]} if args.calls else {}
        print_json(as_data(found, changes, args.top) | listed)
        return 0
    _print(found, changes, args.top, args.lang)
    if calls:
        _print_calls(calls, args.lang)
    return 0


def _calls(found: Plan) -> list[planner.Call]:
    return planner.calls_of_configuration(found.job.model, found.best.configuration, found.job.sequence)


def _print_calls(calls: list[planner.Call], language: str) -> None:
    out, made = console(), table(*CALL_COLUMNS[language])
    for call in calls:
        made.add_row(call.phase, call.collective, call.name, f"{call.bytes:,}", f"{call.size} ({call.axis})")
    out.print()
    print_table(out, made)


def as_data(found: Plan, changes: list[planner.Change], top: int) -> dict[str, object]:
    """Return the plan as plain data."""
    job = found.job
    return {
        "model": job.model.name, "parameters": job.model.parameters, "gpus": job.cluster.gpus,
        "network": job.cluster.network.name, "machine": job.cluster.machine.name, "program": job.cluster.program.name,
        "tokens": job.tokens,
        "sequence": job.sequence, "memory_bytes": job.cluster.memory, "usable_bytes": job.cluster.usable,
        "admissible": found.admissible, "fitting": len(found),
        "candidates": [each.as_data() for each in found.candidates[:top]],
        "reasons": [str(planner.why_slower(found.best, each)) for each in planner.rivals(found)],
        "changes": [str(each.text) for each in changes],
    }  # fmt: skip


def _print(found: Plan, changes: list[planner.Change], top: int, language: str) -> None:
    out, shown = console(), found.candidates[:top]
    for line in headings(found, len(shown)):
        print_paragraph(out, translated(line, language))
    made = table(*COLUMNS[language])
    for number, each in enumerate(shown, 1):
        made.add_row(*_cells(number, each))
    print_table(out, made)
    out.print()
    collectives = table(*COLLECTIVE_COLUMNS[language])
    for one in found.best.traffic:
        collectives.add_row(
            f"{one.axis} {one.collective}", gigabytes(one.nbytes), f"{one.count:,}", str(one.size),
            LINKS_ZH.get(one.link, one.link) if language == "zh" else one.link,
            gigabytes(one.near_bytes), gigabytes(one.far_bytes), seconds(one.time_s),
        )  # fmt: skip
    if found.best.traffic:
        print_table(out, collectives)
        out.print()
    for line in remarks(found, changes):
        print_paragraph(out, translated(line, language), rest="  ")


def remarks(found: Plan, changes: list[planner.Change]) -> list[str]:
    """Return the sentences below the table."""
    slower = [planner.why_slower(found.best, each) for each in planner.rivals(found)]
    return [*slower, *(each.text for each in changes)]


def _cells(number: int, each: Candidate) -> list[str]:
    configuration, memory, times = each.configuration, each.memory, each.times
    gb = [f"{part / 1e9:.1f}" for part in (memory.parameters, memory.gradients, memory.optimizer)]
    activations = f"{(memory.activations + memory.buffers) / 1e9:.1f}"
    return [
        str(number), str(configuration.dp), f"{configuration.tp}{'+sp' if configuration.sequence_parallel else ''}",
        str(configuration.pp), str(configuration.ep), str(configuration.zero),
        f"{configuration.micro_batch} x {configuration.micro_batches}", configuration.recompute,
        gigabytes(memory.total), *gb, activations, seconds(times.total),
        seconds(times.compute + times.recompute + times.launch + times.update), seconds(times.communication),
        seconds(times.hidden), seconds(times.bubble), f"{each.tokens_s_gpu:,.0f}", f"{each.mfu:.1%}",
    ]  # fmt: skip
