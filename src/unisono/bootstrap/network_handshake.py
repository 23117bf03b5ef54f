"""The proof, in both directions, that two processes on different hosts belong to the same job.

Both know the **token** of the job. A rank sends a greeting of fixed length, rank 0 answers with one; each contains a
random number (nonce) that is used once. Then the rank sends an HMAC-SHA256, with the token as its key, of both; if it
is right, rank 0 answers with another one. Only after that are messages read (framing.py). The rank proves first, so a
process that merely connects learns nothing about the token.

The token never travels, a recorded proof is useless for another connection, and a proof of one direction is not one
of the other. Without TLS, the messages that follow are neither encrypted nor protected against a process that can
alter packets on their way (docs/adr/0041). With TLS, a proof covers the certificates of both sides (the **binding**),
so a process with a certificate of the same authority cannot pass on proofs between two ranks (docs/adr/0045).
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import struct
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

from unisono.bootstrap.handshake import is_list_of_integers
from unisono.bootstrap.locality import host_info

MAGIC = b"unisono"
PROTOCOL = 1
NONCE_BYTES = PROOF_BYTES = hashlib.sha256().digest_size
GREETING = struct.Struct(f"!{len(MAGIC)}sB{NONCE_BYTES}sII{PROOF_BYTES}s")
ANSWER = struct.Struct(f"!{len(MAGIC)}sBc{NONCE_BYTES}s")
GO_ON, OTHER_JOB = b"+", b"-"
REFUSED = bytes(PROOF_BYTES)  # rank 0 sends it instead of its proof
FROM_RANK, FROM_RANK_0 = b"unisono rank to rank 0", b"unisono rank 0 to rank"
LONGEST_TEXT = 256  # of the names in a hello


class Greeting(NamedTuple):
    """The first message of a rank; nothing in it is believed before the proof."""

    protocol: int
    rank: int
    size: int
    job: bytes  # digest of the name of the job


def make_greeting(rank: int, size: int, job: str) -> bytes:
    """Return the first message of a rank."""
    return GREETING.pack(MAGIC, PROTOCOL, secrets.token_bytes(NONCE_BYTES), rank, size, digest(job))


def read_greeting(data: bytes) -> Greeting | None:
    """Return the greeting in bytes, or None if they are something else."""
    magic, protocol, _, rank, size, job = GREETING.unpack(data)
    return Greeting(protocol, rank, size, job) if magic == MAGIC else None


def make_answer(verdict: bytes) -> bytes:
    """Return rank 0's answer to a greeting."""
    return ANSWER.pack(MAGIC, PROTOCOL, verdict, secrets.token_bytes(NONCE_BYTES))


def read_answer(data: bytes) -> tuple[int, bytes] | None:
    """Return the protocol and the verdict of an answer, or None if it is something else."""
    magic, protocol, verdict, _ = ANSWER.unpack(data)
    return (protocol, verdict) if magic == MAGIC else None


def prove(token: str, direction: bytes, greeting: bytes, answer: bytes, binding: bytes = b"") -> bytes:
    """Return the proof that the sender knows the token, for this greeting, answer and connection only."""
    return hmac.digest(token.encode(), direction + greeting + answer + binding, "sha256")


def is_proved(
    proof: bytes, token: str, direction: bytes, greeting: bytes, answer: bytes, binding: bytes = b""
) -> bool:
    """Return whether a proof is right."""
    return hmac.compare_digest(proof, prove(token, direction, greeting, answer, binding))


def digest(text: str) -> bytes:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).digest()


def derive(token: str, *parts: object) -> bytes:
    """Return 32 bytes that only processes with the token can compute; different parts give independent bytes."""
    return hmac.digest(token.encode(), "|".join(map(str, parts)).encode(), "sha256")


@dataclass(frozen=True)
class NetworkHello:
    """The first message of a rank after the proof."""

    version: str  # of Unisono
    host: dict[str, str]  # locality.host_info()
    process: int
    resources: dict[str, list[int]]  # from which rank 0 determines the configuration
    timeout_s: float  # the timeout of the rank
    left_s: float  # the part of it that is left
    couriers: list[str] = field(default_factory=list)  # names of those that this process could use

    def as_message(self) -> dict[str, Any]:
        """Return the message."""
        return asdict(self)


def network_hello_from(message: dict[str, Any]) -> NetworkHello:
    """Return the hello in a message; ValueError if it has another form."""
    if message.keys() != {part.name for part in fields(NetworkHello)}:
        raise ValueError(f"a message with the parts {sorted(message)[:9]}")
    hello = NetworkHello(**message)
    texts = [hello.version, *(hello.host.values() if isinstance(hello.host, dict) else [None])]
    if not all(isinstance(text, str) and len(text) <= LONGEST_TEXT for text in texts):
        raise ValueError("a version or a host that is not a short text")
    if hello.host.keys() != host_info().keys():
        raise ValueError(f"a host with the parts {sorted(hello.host)[:9]}")
    if type(hello.process) is not int:
        raise ValueError("a process that is not an integer")
    for value in (hello.timeout_s, hello.left_s):
        if type(value) not in (int, float) or not math.isfinite(value):
            raise ValueError("a timeout that is not a number of seconds")
    if not isinstance(hello.resources, dict) or not all(map(is_list_of_integers, hello.resources.values())):
        raise ValueError("resources that are not lists of integers")
    if not isinstance(hello.couriers, list) or not all(isinstance(name, str) for name in hello.couriers):
        raise ValueError("couriers that are not a list of names")
    return hello
