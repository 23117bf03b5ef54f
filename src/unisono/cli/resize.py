"""``unisono resize``: change the number of ranks of a job that `unisono run --elastic` has started."""

from __future__ import annotations

import argparse
import tempfile

from unisono.cli import arguments


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "resize",
        help="change the number of ranks of an elastic job",
        description=arguments.described(__doc__),
        epilog="New ranks are started, and the others admit them with `grow`. If there are too many, those with the "
        "highest numbers get SIGTERM, and the others continue with `shrink`.",
    )
    parser.add_argument("job", metavar="JOB", help="the name that `unisono run --elastic` has printed")
    parser.add_argument("size", type=arguments.size, metavar="N", help="the new number of ranks")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Request the size; the launcher of the job does the rest."""
    from unisono.launch.elastic import request_size

    request_size(args.job, args.size, tempfile.gettempdir())
    return 0
