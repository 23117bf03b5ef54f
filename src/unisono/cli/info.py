"""``unisono info``: versions, what the engine was built with, where proofs are kept."""

from __future__ import annotations

import argparse
import os
import platform
from typing import Any

import numpy as np

import unisono
from unisono.algorithms import BUILT_IN
from unisono.cli import arguments
from unisono.cli.output import console, print_json, print_table, table
from unisono.collectives import COLLECTIVES
from unisono.verifier import cache_directory


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "info", help="versions, engine, cache: for reports of problems", description=arguments.described(__doc__)
    )
    arguments.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what is known of this installation."""
    facts = gather_facts()
    if args.json:
        print_json(facts)
        return 0
    rows = table("", "")
    rows.show_header = False
    for name, value in facts.items():
        shown = ", ".join(f"{key} {inner}" for key, inner in value.items()) if isinstance(value, dict) else str(value)
        rows.add_row(name.replace("_", " "), shown)
    print_table(console(), rows)
    return 0


def gather_facts() -> dict[str, Any]:
    """Return what is known of this installation."""
    cache = cache_directory()
    return {
        "unisono": unisono.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "engine": _engine(),
        "collectives": len(COLLECTIVES),
        "algorithms": len(BUILT_IN),
        "shared_memory": _shared_memory(),
        "algorithm_table": _table(),
        "proof_cache": str(cache),
        "cached_proofs": sum(1 for _ in cache.glob("*.json")),
    }


def _shared_memory() -> str:
    """Say what communicators of some sizes take at the most."""
    from unisono.bootstrap.membership import DEPTH, STAGING_BYTES, TRANSFER_BYTES

    mib = 1 << 20
    return (
        f"{STAGING_BYTES // mib} MiB for each rank of a communicator (connect(staging_bytes=...)), and "
        f"{DEPTH * TRANSFER_BYTES // 1024} KiB for each pair that uses send and recv; taken on first use"
    )


def _table() -> str:
    from unisono.comm.tables import load_table, table_path

    sizes = sorted({int(size) for rules in load_table().values() for size in rules})
    if not sizes:
        return "built-in rules (`unisono tune` measures this machine)"
    return f"{table_path()}, measured for {', '.join(map(str, sizes))} ranks"


def _engine() -> dict[str, Any] | str:
    try:
        from unisono import _engine
    except ImportError as error:
        return f"not available: {error}"
    return dict(_engine.build_info())
