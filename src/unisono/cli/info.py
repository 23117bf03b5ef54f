"""``unisono info``: show versions, the engine, the caches and the GPUs, or links between hosts.

With `--hosts a,b`, it starts a rank on each host and measures the link between every two hosts: the time of a round
trip of 8 bytes, and the rate in each direction.
"""

from __future__ import annotations

import argparse
import os
import platform
from typing import Any

import numpy as np

import unisono
from unisono import native_engine
from unisono.algorithms import BUILT_IN
from unisono.cli import arguments, gpu_facts, messages, on_hosts
from unisono.cli.output import console, print_json, print_table, table
from unisono.collectives import COLLECTIVES
from unisono.errors import UsageError
from unisono.launch.host_list import parse_hosts
from unisono.message import listed
from unisono.verifier import cache_directory


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "info",
        help="show versions, engine, caches and GPUs, for bug reports",
        description=arguments.described(__doc__),
    )
    arguments.add_json(parser)
    on_hosts.add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the facts about this installation, or about several hosts."""
    if on_hosts.is_on_hosts(args):
        # One rank on each host is enough. An IPv6 address is written in brackets.
        names = [f"[{host.name}]" if ":" in host.name else host.name for host in parse_hosts(args.hosts)]
        if len(names) == 1:
            raise UsageError(messages.ONE_HOST(hosts=args.hosts))
        args.hosts = ",".join(names)
        return on_hosts.run_on_hosts(args, ["info", *(["--json"] if args.json else [])])
    if args.in_job:
        from unisono.cli import host_links  # it needs the engine

        return host_links.report(args)
    facts = gather_facts()
    about_gpus, gpu_texts = gpu_facts.gather() if native_engine.is_installed() else ({}, {})
    if args.json:
        print_json({**facts, **about_gpus})
        return 0
    rows = table("", "")
    rows.show_header = False
    for name, value in {**facts, **gpu_texts}.items():
        shown = ", ".join(f"{key} {inner}" for key, inner in value.items()) if isinstance(value, dict) else str(value)
        rows.add_row(name.replace("_", " "), shown)
    print_table(console(), rows)
    return 0


def gather_facts() -> dict[str, Any]:
    """Return the facts about this installation; without the engine, there are none about execution."""
    cache = cache_directory()
    native = {}
    if native_engine.is_installed():
        native = {
            "shared_memory": _shared_memory(),
            "transport": messages.TRANSPORT(),
            "ucx": _ucx(),
            "tls": _tls(),
            "interfaces": _interfaces(),
        }
    return {
        "unisono": unisono.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "engine": _engine(),
        "collectives": len(COLLECTIVES),
        "algorithms": len(BUILT_IN),
        **native,
        "algorithm_table": _table(),
        "proof_cache": str(cache),
        "cached_proofs": sum(1 for _ in cache.glob("*.json")),
    }


def _shared_memory() -> str:
    """Return how much shared memory a communicator takes at most."""
    from unisono.bootstrap.job_config import DEPTH, STAGING_BYTES, TRANSFER_BYTES

    mib = 1 << 20
    return messages.SHARED_MEMORY(staging=STAGING_BYTES // mib, transfer=DEPTH * TRANSFER_BYTES // 1024)


def _ucx() -> str:
    """Return the UCX library that ``connect(transport="ucx")`` loads."""
    from unisono.bootstrap.ucx_search import probe

    try:
        return probe()
    except RuntimeError as error:
        return messages.NO_UCX(reason=error)


def _tls() -> str:
    """Return the OpenSSL library that ``connect(tls=...)`` loads."""
    from unisono import _engine

    try:
        return messages.TLS(openssl=_engine.openssl_version())
    except RuntimeError as error:
        return messages.NO_TLS(reason=error)


def _interfaces() -> dict[str, str]:
    """Return the addresses that ``connect(interface=...)`` accepts, by name."""
    from unisono.bootstrap.interfaces import list_interfaces

    addresses: dict[str, list[str]] = {}
    for interface in list_interfaces():
        addresses.setdefault(interface.name, []).append(interface.address)
    return {name: " ".join(each) for name, each in addresses.items()}


def _table() -> str:
    from unisono.comm.tables import load_table, table_path
    from unisono.comm.topology import rank_counts

    topologies = {topology for rules in load_table().values() for topology in rules}
    if not topologies:
        return messages.NO_TABLE()
    ordered = sorted(topologies, key=lambda topology: (sum(rank_counts(topology) or ()), topology))
    return messages.TABLE(path=table_path(), sizes=listed(ordered))


def _engine() -> dict[str, Any] | str:
    try:
        from unisono import _engine
    except ImportError as error:
        return messages.NO_ENGINE(error=error)
    return dict(_engine.build_info())
