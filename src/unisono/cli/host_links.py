"""``unisono info`` on several hosts: reports the hosts and their links. Every rank of the job runs ``report``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
from typing import Any

import numpy as np

import unisono
from unisono.bootstrap.interfaces import list_interfaces
from unisono.cli import messages, on_hosts
from unisono.cli.output import console, print_json, print_paragraph, print_table, table
from unisono.comm.communicator import Communicator
from unisono.comm.links import LinkTimes, measure_links
from unisono.comm.texts import all_gather_text


def report(args: argparse.Namespace) -> int:
    """Measure the links between the hosts of this job; rank 0 prints them."""
    with on_hosts.joined_job(args) as comm:
        texts = all_gather_text(comm, json.dumps(host_facts(comm)))
        links = measure_links(comm)
        if comm.rank != 0:
            return 0
        hosts = [{**json.loads(texts[ranks[0]]), "ranks": list(ranks)} for ranks in comm.hosts]
    if args.json:
        print_json({"hosts": hosts, "links": [_as_data(link, hosts) for link in links]})
    else:
        print_hosts(hosts)
        print_links(hosts, links)
    return 0


def host_facts(comm: Communicator) -> dict[str, Any]:
    """Return the facts about the host of this rank."""
    named = [each.name for each in list_interfaces() if each.address == comm.address]
    return {
        "host": socket.gethostname(),
        "unisono": unisono.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cores": len(os.sched_getaffinity(0)),
        "interface": named[0] if named else "",
        "address": comm.address,
        "transport": comm.transport,
    }


def print_hosts(hosts: list[dict[str, Any]]) -> None:
    """Print a table of the hosts."""
    rows = table("host", "address", "interface", ">cores", "unisono", "python", "numpy", "transport")
    for host in hosts:
        rows.add_row(
            host["host"], host["address"], host["interface"], str(host["cores"]), host["unisono"], host["python"],
            host["numpy"], host["transport"],
        )  # fmt: skip
    print_table(console(), rows)


def print_links(hosts: list[dict[str, Any]], links: list[LinkTimes]) -> None:
    """Print a table of the links."""
    out = console()
    out.print()
    rows = table("host", "host", ">round trip\nµs", ">→\nGbit/s", ">←\nGbit/s")
    for link in links:
        rows.add_row(
            hosts[link.first]["host"], hosts[link.second]["host"], f"{link.round_trip_s * 1e6:.1f}",
            f"{link.forth * 8e-9:.3g}", f"{link.back * 8e-9:.3g}",
        )  # fmt: skip
    print_table(out, rows)
    print_paragraph(out, messages.LINKS_MEASURED())


def _as_data(link: LinkTimes, hosts: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "hosts": [hosts[link.first]["host"], hosts[link.second]["host"]],
        "round_trip_us": link.round_trip_s * 1e6,
        "bytes_per_s": [link.forth, link.back],
    }
