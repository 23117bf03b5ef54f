"""``unisono merge``: join the traces that the hosts of one run have recorded, and align their clocks.

`unisono run --hosts ... --trace DIR` does this automatically. Under other launchers, if the hosts share no file
system, each host has only its part of the trace: copy the parts to one machine, and merge them there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from unisono.cli import arguments
from unisono.cli.output import console
from unisono.tracing.joining import merge_traces


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "merge",
        help="join the traces of several hosts",
        description=arguments.described(__doc__),
        epilog='For example, after `comm.trace("run.json")` on hosts a and b, on host a: '
        "scp b:run.json.parts/* run.json.parts/; unisono merge run.json.parts -o run.json",
    )
    parser.add_argument(
        "traces", nargs="+", metavar="TRACE", help="a trace file, or a folder with a run.json or with parts"
    )
    parser.add_argument(
        "-o", dest="output", metavar="FILE", default="run.json", help="the file to write (default: run.json)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Merge the traces."""
    headers = merge_traces([Path(trace) for trace in args.traces], Path(args.output))
    ranks = {header["job_rank"] for header in headers}
    console().print(f"{args.output}: {len(ranks)} ranks", soft_wrap=True, highlight=False, markup=False)
    return 0
