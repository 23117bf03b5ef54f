"""Measures all_reduce between two ranks over each transport: two processes on this host, or one on each of two hosts.

    python tools/measure_transports.py --trials 3
    python tools/measure_transports.py --transports tcp tls
    python tools/measure_transports.py --rank 0 --rendezvous HOST:PORT --token-file FILE --interface NAME

The last form is for two hosts, with ``--rank 1`` on the other one. The transport ``tls`` is TCP with TLS; on one host
its certificates are made with the program openssl, on two they are those of ``--tls CERTIFICATE KEY AUTHORITY``.
The transports take turns. Rank 0 prints the best and the median time of a call, and the devices that UCX may use.
"""

from __future__ import annotations

import argparse
import multiprocessing
import secrets
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from unisono.bootstrap import ucx_search
from unisono.bootstrap.environment import JobNetwork, RankIdentity
from unisono.bootstrap.locality import host_info
from unisono.bootstrap.network_membership import connect_link_over_network
from unisono.bootstrap.network_options import NetworkOptions, plan_network
from unisono.bootstrap.tls import Tls
from unisono.comm.communicator import Communicator

SIZES = {8: 300, 64 << 10: 100, 1 << 20: 20, 16 << 20: 3}  # bytes, and the calls of a group
GROUPS = 8
STAGING_BYTES = 8 << 20
TIMEOUT_S = 60.0
TRANSPORTS = ("tcp", "ucx")
TLS = "tls"

Times = dict[int, list[float]]  # microseconds of a call, by bytes


def measure(rank: int, transport: str, args: argparse.Namespace, host: dict[str, str] | None) -> tuple[str, Times]:
    """Return the description of the transport and the times of a call, one for each group."""
    identity = RankIdentity(rank, 2, 0, 1, "alone", "")
    carrier, tls = ("tcp", Tls(*args.tls)) if transport == TLS else (transport, None)
    options = NetworkOptions(args.rendezvous, args.token, args.token_file, args.interface, None, carrier, tls)
    plan = plan_network(identity, options, JobNetwork(job=f"measure {transport}"))
    link = connect_link_over_network(identity, plan, TIMEOUT_S, TIMEOUT_S, STAGING_BYTES, dict, host=host)
    times: Times = {}
    with Communicator(link) as comm:
        courier = link.resources.courier
        assert courier is not None, "both ranks are on one host"
        text = ucx_search.describe(courier.engine)
        for nbytes, calls in SIZES.items():
            data = np.zeros(nbytes // 4, np.float32)
            comm.all_reduce(data)
            times[nbytes] = []
            for _ in range(GROUPS):
                comm.barrier()
                began_s = time.perf_counter()
                for _ in range(calls):
                    comm.all_reduce(data)
                times[nbytes].append((time.perf_counter() - began_s) / calls * 1e6)
    return text, times


def be_second(transport: str, args: argparse.Namespace) -> None:
    """Be rank 1, as if this were another host."""
    measure(1, transport, args, {**host_info(), "host": "second", "processes": "pid:[second]"})


def trial(transport: str, args: argparse.Namespace) -> tuple[str, Times]:
    """Measure one transport once."""
    if args.rank is not None:
        return measure(args.rank, transport, args, None)
    other = multiprocessing.Process(target=be_second, args=(transport, args))
    other.start()
    try:
        return measure(0, transport, args, None)
    finally:
        other.join()


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=3, help="connections with each transport")
    parser.add_argument(
        "--transports", nargs="+", default=list(TRANSPORTS), help='such as "tcp", "tls" and "ucx:PATH"'
    )
    parser.add_argument("--tls", nargs=3, metavar=("CERTIFICATE", "KEY", "AUTHORITY"), help="files, on two hosts")
    parser.add_argument("--rank", type=int, choices=(0, 1), help="the rank of this process, on two hosts")
    parser.add_argument("--rendezvous", help="HOST:PORT of rank 0, on two hosts")
    parser.add_argument("--token-file", help="on two hosts")
    parser.add_argument("--interface", help="the interface, on two hosts")
    args = parser.parse_args()
    args.token = None
    if args.rank is None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            args.rendezvous = f"127.0.0.1:{server.getsockname()[1]}"
        args.token, args.token_file = secrets.token_hex(16), None
    with tempfile.TemporaryDirectory() as folder:
        if args.rank is None and TLS in args.transports:
            args.tls = make_certificate(Path(folder))
        measure_all(args)


def make_certificate(folder: Path) -> list[str]:
    """Return a certificate that is its own authority, and its key: certificate, key, authority."""
    certificate, key = str(folder / "host.pem"), str(folder / "host.key")
    words = [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=host",
        "-keyout",
        key,
        "-out",
        certificate,
    ]
    subprocess.run(["openssl", *words], check=True, capture_output=True)
    return [certificate, key, certificate]


def measure_all(args: argparse.Namespace) -> None:
    """Measure the transports in turns and print a table."""
    texts: dict[str, str] = {}
    best: dict[str, Times] = {}
    for _ in range(args.trials):
        for transport in args.transports:
            texts[transport], times = trial(transport, args)
            for nbytes, measured in times.items():
                best.setdefault(transport, {}).setdefault(nbytes, []).extend(measured)
    if args.rank == 1:
        return
    print("| transport |" + "".join(f" {nbytes:,} B |" for nbytes in SIZES))
    print("|---|" + "--:|" * len(SIZES))
    for transport, by_size in best.items():
        cells = (f" {min(each):,.1f} ({statistics.median(each):,.1f}) |" for each in by_size.values())
        print(f"| {texts[transport]} |" + "".join(cells))


if __name__ == "__main__":
    main()
