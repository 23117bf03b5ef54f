"""The host, the user and the Linux namespaces in which a rank runs, as far as the ranks of a job must share them.

A container has namespaces: in another network namespace a socket without a file cannot be found, and in another PID
namespace process numbers refer to other processes. Without these checks, both would show only as a rank that never
connects.
"""

from __future__ import annotations

import os
from contextlib import suppress

from unisono.bootstrap import messages
from unisono.errors import CommError
from unisono.message import Message


def process_namespace() -> str:
    """Return the PID namespace of this process; empty where the system has none."""
    return _namespace("pid")


def host_info() -> dict[str, str]:
    """Return the host, the namespaces and the user of this process."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            kernel = file.read().strip()
    except OSError as error:
        raise CommError(messages.NO_BOOT_ID(reason=error)) from error
    return {
        "kernel": kernel,
        "host": os.uname().nodename,
        "network": _namespace("net"),
        "processes": _namespace("pid"),
        "users": _namespace("user"),
        "user": str(os.getuid()),
    }


def incompatibility(rank: int, own: dict[str, str], rank_0: dict[str, str]) -> Message | None:
    """Return why ``rank`` cannot work with rank 0, given the host info of both; None if it can."""
    if own["kernel"] != rank_0["kernel"]:
        return messages.OTHER_HOST(rank=rank, host=own["host"], host_0=rank_0["host"])
    if _differ("network", own, rank_0):
        return other_namespace(rank, "network", own["network"], rank_0["network"])
    if _differ("processes", own, rank_0):
        return other_namespace(rank, "PID", own["processes"], rank_0["processes"])
    if own["users"] == rank_0["users"] and own["user"] != rank_0["user"]:
        return messages.OTHER_USER(rank=rank, user=own["user"], user_0=rank_0["user"])
    return None


def other_namespace(rank: int, kind: str, namespace: str, namespace_0: str) -> Message:
    """Return the message about a rank in another namespace than rank 0."""
    return messages.OTHER_NAMESPACE(rank=rank, kind=kind, namespace=namespace, namespace_0=namespace_0)


def _differ(name: str, own: dict[str, str], rank_0: dict[str, str]) -> bool:
    return bool(own[name] and rank_0[name]) and own[name] != rank_0[name]


def _namespace(kind: str) -> str:
    with suppress(OSError):
        return os.readlink(f"/proc/self/ns/{kind}")
    return ""
