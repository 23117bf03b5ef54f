"""The verbs that measure the ranks of a job on several hosts: their options, and how they start the job.

``unisono info --hosts a:2,b:2`` starts ``unisono info --in-job`` on the ranks of these hosts, as ``unisono run``
does. Under another launcher, users start the latter themselves: ``srun unisono info --in-job``.
"""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from unisono.cli import messages
from unisono.cli.tls_options import TLS_FILES, add_tls, tls_of
from unisono.errors import CommError, UsageError
from unisono.launch.limits import RANKS_PER_CORE

if TYPE_CHECKING:
    from unisono.comm.communicator import Communicator

CONNECT_TIMEOUT_S = 30.0
LAUNCHER_OPTIONS = ("ssh", "rendezvous")
JOB_OPTIONS = ("transport", "interface", "token_file", "connect_timeout", *(f"tls_{name}" for name in TLS_FILES))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that select hosts, and those of ``connect()``."""
    options = parser.add_argument_group("several hosts")
    options.add_argument(
        "--hosts", metavar="A:N,B:N", help="start N ranks (default 1) on each of these hosts, as `unisono run` does"
    )
    options.add_argument(
        "--in-job", action="store_true",
        help="run as a rank of a job that another launcher, such as srun, has started; --hosts starts such a job "
        "itself",
    )  # fmt: skip
    options.add_argument(
        "--ssh", metavar="COMMAND", help="the command that starts a program on a host (default: ssh)"
    )
    options.add_argument("--rendezvous", metavar="HOST:PORT", help="the address at which rank 0 waits for the others")
    options.add_argument(
        "--oversubscribe", action="store_true", help=f"allow more than {RANKS_PER_CORE} ranks per core"
    )
    options.add_argument("--transport", help="tcp, ucx or ucx:PATH (default tcp)")
    options.add_argument(
        "--interface", metavar="NAME", help="the interface, address or network at which ranks receive messages"
    )
    options.add_argument("--token-file", metavar="FILE", help="the file that holds the token of the job")
    add_tls(options)
    options.add_argument(
        "--connect-timeout", type=float, default=CONNECT_TIMEOUT_S, metavar="S",
        help=f"seconds in which all ranks must connect (default {CONNECT_TIMEOUT_S:.0f})",
    )  # fmt: skip


def is_on_hosts(args: argparse.Namespace) -> bool:
    """Return whether the verb starts ranks on hosts; UsageError if the options do not fit together."""
    if args.hosts is not None:
        if args.in_job:
            raise UsageError(messages.HOSTS_AND_IN_JOB())
        return True
    for option in LAUNCHER_OPTIONS:
        if getattr(args, option) is not None:
            raise UsageError(messages.NEEDS_HOSTS(option=f"--{option}"))
    return False


def run_on_hosts(args: argparse.Namespace, words: Sequence[str]) -> int:
    """Run ``unisono`` with these words and ``--in-job`` on the ranks of ``args.hosts``; return the exit code."""
    from unisono.cli.main import parser  # it imports the verbs

    options = ["--no-prefix", "--hosts", args.hosts]
    for option in LAUNCHER_OPTIONS:
        if getattr(args, option) is not None:
            options += [f"--{option}", getattr(args, option)]
    options += ["--oversubscribe"] * args.oversubscribe
    connection = [
        f"--{option.replace('_', '-')}={getattr(args, option)}"
        for option in JOB_OPTIONS
        if getattr(args, option) is not None
    ]
    program = [sys.executable, "-m", "unisono", *words, "--in-job", *connection]
    run = parser("run").parse_args(["run", *options, "--", *program])
    code: int = run.run(run)
    return code


@contextmanager
def joined_job(args: argparse.Namespace) -> Iterator[Communicator]:
    """Connect to the other ranks of the job; errors, here or in the body, name this host."""
    from unisono.bootstrap.environment import identity_in_job, job_network
    from unisono.comm.connection import connect

    identity = identity_in_job()
    if identity.size == 1:
        raise UsageError(messages.NOT_IN_JOB())
    try:
        with connect(
            connect_timeout=args.connect_timeout, transport=args.transport, interface=args.interface,
            token_file=args.token_file, tls=tls_of(args),
        ) as comm:  # fmt: skip
            yield comm
    except (CommError, UsageError) as error:
        network = job_network(identity.launcher)
        address = args.rendezvous or network.address or network.host
        located = messages.ON_HOST_OF_JOB if address else messages.ON_HOST
        host = socket.gethostname()
        error.message = located(rank=identity.rank, host=host, address=address, error=error.message)
        raise
