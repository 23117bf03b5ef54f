"""The first words of a rank to rank 0, and how an error travels to the other ranks.

A connection proves that it belongs to the job before anything that it says is interpreted: the kernel tells its user,
and its first bytes, a fixed number, contain a digest of the job's secret. Only then is a message read.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from dataclasses import asdict, dataclass
from typing import Any

from unisono.errors import CollectiveTimeout, CommError, MismatchError, PeerLost, UnisonoError, UsageError

MAGIC = b"unisono"
PROTOCOL = 2
PREAMBLE_BYTES = len(MAGIC) + 1 + hashlib.sha256().digest_size
LONGEST_HELLO = 1 << 18  # with the names of all variables of an environment


def preamble(secret: str, protocol: int = PROTOCOL) -> bytes:
    """Return the bytes that open a connection."""
    return MAGIC + bytes([protocol]) + hashlib.sha256(secret.encode()).digest()


def protocol_of(received: bytes, secret: str) -> int | None:
    """Return the protocol of a peer that knows the secret; None for any other."""
    expected = preamble(secret, 0)
    start, version, digest = received[: len(MAGIC)], received[len(MAGIC)], received[len(MAGIC) + 1 :]
    known = hmac.compare_digest(start + b"\0" + digest, expected)
    return version if known else None


@dataclass(frozen=True)
class Hello:
    """What a rank tells rank 0 of itself."""

    rank: int
    size: int
    mine: dict[str, list[int]]  # for the config that rank 0 decides
    timeout_s: float  # how long it waits in all
    left_s: float  # and from now on
    process_namespace: str  # process numbers mean something inside one only
    fingerprint: dict[str, str]  # what distinguishes it from ranks of other jobs (job_identity.py); may be empty

    def as_message(self) -> dict[str, Any]:
        """Return the message."""
        return asdict(self)


def hello_from(message: dict[str, Any]) -> Hello:
    """Return what a rank has said; ValueError if it is not of this shape."""
    try:
        hello = Hello(**message)
    except TypeError:
        raise ValueError(f"a message with the parts {sorted(message)}") from None
    for name in ("rank", "size"):
        if type(getattr(hello, name)) is not int:
            raise ValueError(f"a {name} that is no integer")
    for name in ("timeout_s", "left_s"):
        value = getattr(hello, name)
        if type(value) not in (int, float) or not math.isfinite(value):
            raise ValueError(f"a {name} that is no number of seconds")
    if not isinstance(hello.process_namespace, str):
        raise ValueError("a namespace that is no text")
    if not isinstance(hello.fingerprint, dict) or not all(
        isinstance(value, str) for value in hello.fingerprint.values()
    ):
        raise ValueError("looks that are no texts")
    if not isinstance(hello.mine, dict) or not all(_is_list_of_integers(value) for value in hello.mine.values()):
        raise ValueError("facts that are no integers")
    return hello


def _is_list_of_integers(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int for one in value)


KINDS: dict[str, type[UnisonoError]] = {
    kind.__name__: kind for kind in (CommError, CollectiveTimeout, PeerLost, MismatchError, UsageError)
}


def error_to_dict(error: BaseException, rank: int) -> dict[str, Any]:
    """Return the message that tells other ranks of an error on ``rank``."""
    kind = next((name for name, kind in KINDS.items() if type(error) is kind), None)
    if kind is None:
        text = f"connect: rank {rank}: {type(error).__name__}: {error}"
        return {"problem": text, "kind": "CommError", "rank": rank}
    return {"problem": str(error), "kind": kind, "rank": getattr(error, "rank", None)}


def error_from_dict(message: dict[str, Any]) -> UnisonoError:
    """Return the error that a message tells of."""
    kind, text, rank = KINDS.get(str(message.get("kind")), CommError), str(message["problem"]), message.get("rank")
    if issubclass(kind, CommError):
        return kind(text, rank=rank if isinstance(rank, int) else None)
    return kind(text)
