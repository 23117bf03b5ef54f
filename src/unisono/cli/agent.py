"""``unisono agent``: start the ranks of this host for ``unisono run --hosts``, which starts the agent."""

from __future__ import annotations

import argparse

from unisono.cli import arguments
from unisono.launch.agent import serve


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser("agent", description=arguments.described(__doc__))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the task on the standard input."""
    return serve()
