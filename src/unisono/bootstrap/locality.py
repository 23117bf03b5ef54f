"""Where a process runs, as far as the ranks of a job must share it: the machine, the user, and namespaces of Linux.

A container has namespaces: in another network namespace a socket without a file cannot be found, and in another PID
namespace process numbers mean other processes. Both would show only as a rank that never comes.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from unisono.errors import CommError


def process_namespace() -> str:
    """Return the name of the PID namespace of this process; empty where the system has none."""
    return _namespace("pid")


def host_info() -> dict[str, str]:
    """Return where this process runs."""
    try:
        kernel = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError as error:
        raise CommError(f"cannot read which machine this is: {error}") from error
    return {
        "kernel": kernel,
        "host": os.uname().nodename,
        "network": _namespace("net"),
        "processes": _namespace("pid"),
        "users": _namespace("user"),
        "user": str(os.getuid()),
    }


def incompatibility(rank: int, mine: dict[str, str], theirs: dict[str, str]) -> str | None:
    """Return why ``rank`` cannot work together with rank 0, which runs in ``theirs``; None if it can."""
    if mine["kernel"] != theirs["kernel"]:
        return (
            f"unisono works between the ranks of one machine as yet: rank 0 is on {theirs['host']}, but "
            f"rank {rank} on {mine['host']}; start all ranks on one machine, or use another backend between machines"
        )
    if _differ("network", mine, theirs):
        return namespace_problem(rank, "network", mine["network"], theirs["network"])
    if _differ("processes", mine, theirs):
        return namespace_problem(rank, "PID", mine["processes"], theirs["processes"])
    if mine["users"] == theirs["users"] and mine["user"] != theirs["user"]:
        return (
            f"rank 0 runs as user {theirs['user']}, but rank {rank} as user {mine['user']}; start all ranks as "
            "one user"
        )
    return None


def namespace_problem(rank: int, kind: str, mine: str, rank_0s: str) -> str:
    """Return the message for a rank in another namespace than rank 0."""
    return (
        f"rank {rank} is in another {kind} namespace (container) than rank 0: {mine} and {rank_0s}; start all ranks "
        "in one container, or let the containers share the machine's namespaces (--network=host --pid=host)"
    )


def _differ(name: str, mine: dict[str, str], theirs: dict[str, str]) -> bool:
    return bool(mine[name] and theirs[name]) and mine[name] != theirs[name]


def _namespace(kind: str) -> str:
    with suppress(OSError):
        return os.readlink(f"/proc/self/ns/{kind}")
    return ""
