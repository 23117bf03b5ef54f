"""Checks that UCX carries data between two hosts over RDMA: its devices, the bits, the latency and the rate.

On each of two hosts, with ``--rank 1`` on the second one:

    python tools/check_rdma.py --rank 0 --rendezvous HOST:PORT --token-file FILE --interface NAME

NAME is the network interface of the RDMA device, such as ib0. The file holds the same token on both hosts. The check
fails unless UCX has an RDMA device, all sums have the right bits, and the data bypasses the kernel: the counter of
bytes that the interface has sent must grow by less than a tenth of the data. Without ``--rank``, both ranks are on
this host; with ``--allow-tcp``, TCP is enough. The two options together test the script itself.
"""

from __future__ import annotations

import argparse
import multiprocessing
import secrets
import socket
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unisono.bootstrap import ucx_search
from unisono.bootstrap.environment import JobNetwork, RankIdentity
from unisono.bootstrap.interfaces import list_interfaces
from unisono.bootstrap.locality import host_info
from unisono.bootstrap.network_membership import connect_link_over_network
from unisono.bootstrap.network_options import NetworkOptions, plan_network
from unisono.comm.communicator import Communicator

TIMEOUT_S = 60.0
STAGING_BYTES = 8 << 20
COUNTS = (1, 1000, 16_384, 1_000_003, 4_000_000)  # float32 elements of the sums that are compared
PING_PONGS = 500
RATE_BYTES, RATE_MESSAGES = 16 << 20, 16
KERNEL_SHARE = 0.1  # of the data, over the interface: more is not RDMA


class Result(NamedTuple):
    """What a rank has found out."""

    transport: str
    has_rdma: bool
    wrong_sums: list[int]  # numbers of elements
    latency_us: float  # one way, 8 bytes
    rate_bytes_s: float
    kernel_share: float  # of the data sent, over the network interface


def verdict(result: Result, *, allow_tcp: bool) -> list[str]:
    """Return the reasons why the check fails; none if it succeeds."""
    problems = [f"the sum of {count} elements has wrong bits" for count in result.wrong_sums]
    if not allow_tcp and not result.has_rdma:
        problems.append(f"UCX has no RDMA device: {result.transport}")
    if not allow_tcp and result.kernel_share >= KERNEL_SHARE:
        problems.append(f"the network interface has sent {result.kernel_share:.0%} of the data: that is not RDMA")
    return problems


def sent_bytes(address: str) -> int:
    """Return the number of bytes that the interface with an address has sent, as the kernel counts them."""
    name = next(each.name for each in list_interfaces() if each.address == address)
    return int((Path("/sys/class/net") / name / "statistics" / "tx_bytes").read_text())


def check_sums(comm: Communicator) -> list[int]:
    """Return the numbers of elements for which a sum differs from that of numpy; two addends have one sum."""
    wrong = []
    for count in COUNTS:
        addends = [np.random.default_rng([rank, count]).standard_normal(count, dtype=np.float32) for rank in range(2)]
        own = addends[comm.rank].copy()
        comm.all_reduce(own)
        if own.tobytes() != (addends[0] + addends[1]).tobytes():
            wrong.append(count)
    return wrong


def latency_us(comm: Communicator) -> float:
    """Return the time of a message of 8 bytes, one way, in microseconds: the best of several groups."""
    word, times = np.zeros(1), []
    for _ in range(5):
        comm.barrier()
        began_s = time.perf_counter()
        for _ in range(PING_PONGS):
            for sender in range(2):
                if comm.rank == sender:
                    comm.send(word, dst=1 - sender)
                else:
                    comm.recv(word, src=sender)
        times.append((time.perf_counter() - began_s) / PING_PONGS / 2 * 1e6)
    return min(times)


def rate_bytes_s(comm: Communicator) -> float:
    """Return the rate at which both ranks send long messages to each other at the same time."""
    outgoing, incoming = np.zeros(RATE_BYTES, np.uint8), np.zeros(RATE_BYTES, np.uint8)
    comm.barrier()
    began_s = time.perf_counter()
    for _ in range(RATE_MESSAGES):
        work = comm.send(outgoing, dst=1 - comm.rank, async_op=True)
        comm.recv(incoming, src=1 - comm.rank)
        assert work is not None
        work.wait()
    return RATE_BYTES * RATE_MESSAGES / (time.perf_counter() - began_s)


def check(rank: int, args: argparse.Namespace, host: dict[str, str] | None) -> Result:
    """Connect to the other rank over UCX and return the result."""
    identity = RankIdentity(rank, 2, 0, 1, "alone", "")
    options = NetworkOptions(args.rendezvous, args.token, args.token_file, args.interface, None, args.transport)
    plan = plan_network(identity, options, JobNetwork(job="check RDMA"))
    link = connect_link_over_network(identity, plan, TIMEOUT_S, TIMEOUT_S, STAGING_BYTES, dict, host=host)
    with Communicator(link) as comm:
        courier = link.resources.courier
        assert courier is not None, "both ranks are on one host"
        wrong, latency = check_sums(comm), latency_us(comm)
        before = sent_bytes(courier.address)
        rate = rate_bytes_s(comm)
        share = (sent_bytes(courier.address) - before) / (RATE_BYTES * RATE_MESSAGES)
        comm.barrier()
        text, has_rdma = ucx_search.describe(courier.engine), ucx_search.uses_rdma(courier.engine.ucx_resources)
        return Result(text, has_rdma, wrong, latency, rate, share)


def be_second(args: argparse.Namespace) -> None:
    """Be rank 1, as if this were another host."""
    check(1, args, {**host_info(), "host": "second", "processes": "pid:[second]"})


def run(args: argparse.Namespace) -> Result:
    """Return the result of this rank; without ``--rank``, of rank 0, with a second process as rank 1."""
    if args.rank is not None:
        return check(args.rank, args, None)
    other = multiprocessing.Process(target=be_second, args=(args,))
    other.start()
    try:
        return check(0, args, None)
    finally:
        other.join()


def main(words: list[str] | None = None) -> int:
    """Check, print the result, and return 1 if the check fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rank", type=int, choices=(0, 1), help="the rank of this process, on two hosts")
    parser.add_argument("--rendezvous", help="HOST:PORT of rank 0")
    parser.add_argument("--token-file", help="a file with mode 0600 that holds the token")
    parser.add_argument("--interface", help="the network interface of the RDMA device")
    parser.add_argument(
        "--transport", default="ucx", help='"ucx" (default), or "ucx:PATH" with the path of libucp.so.0'
    )
    parser.add_argument("--allow-tcp", action="store_true", help="do not fail if UCX uses TCP")
    args = parser.parse_args(words)
    args.token = None
    if args.rank is None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            args.rendezvous = f"127.0.0.1:{server.getsockname()[1]}"
        args.token, args.token_file = secrets.token_hex(16), None
    result = run(args)
    show(result, verdict(result, allow_tcp=args.allow_tcp))
    return int(bool(verdict(result, allow_tcp=args.allow_tcp)))


def show(result: Result, problems: list[str]) -> None:
    """Print a result."""
    lines: dict[str, Any] = {
        "transport": result.transport,
        "sums": "wrong" if result.wrong_sums else f"right bits for {len(COUNTS)} lengths",
        "latency": f"{result.latency_us:.1f} us for 8 bytes, one way",
        "rate": f"{result.rate_bytes_s / 1e9:.2f} GB/s in each direction",
        "kernel": f"{result.kernel_share:.0%} of the data went through the network interface",
        "result": "; ".join(problems) or "ok",
    }
    for name, text in lines.items():
        print(f"{name + ':':<11}{text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
