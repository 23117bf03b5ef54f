"""The first message of a rank to rank 0, and the form in which an error travels to other ranks.

A connection proves that it belongs to the job before any of its messages is interpreted: the kernel reports its user,
and its first bytes, a fixed number, contain a digest of the secret of the job. Only then is a message read.

An error travels as data: its class, the id of its message, and the parameters. So the other ranks raise the same
error with the same id, and can show it in any language. A message whose id the receiver does not know arrives as
plain text.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from unisono.bootstrap import messages, network_messages
from unisono.errors import CollectiveTimeout, CommError, MismatchError, PeerLost, UnisonoError, UsageError
from unisono.message import Message, Template

MAGIC = b"unisono"
PROTOCOL = 3
PREAMBLE_BYTES = len(MAGIC) + 1 + hashlib.sha256().digest_size
LONGEST_HELLO = 1 << 18  # it contains the names of all environment variables


def preamble(secret: str, protocol: int = PROTOCOL) -> bytes:
    """Return the first bytes of a connection."""
    return MAGIC + bytes([protocol]) + hashlib.sha256(secret.encode()).digest()


def protocol_of(received: bytes, secret: str) -> int | None:
    """Return the protocol version of a peer that knows the secret, and None for any other peer."""
    expected = preamble(secret, 0)
    start, version, digest = received[: len(MAGIC)], received[len(MAGIC)], received[len(MAGIC) + 1 :]
    is_known = hmac.compare_digest(start + b"\0" + digest, expected)
    return version if is_known else None


@dataclass(frozen=True)
class Hello:
    """The first message of a rank to rank 0."""

    rank: int
    size: int
    resources: dict[str, list[int]]  # from which rank 0 determines the configuration
    timeout_s: float  # the timeout of the rank
    left_s: float  # the part of it that is left
    process_namespace: str  # process numbers are valid inside one only
    fingerprint: dict[str, str]  # distinguishes ranks of different jobs (job_identity.py); may be empty

    def as_message(self) -> dict[str, Any]:
        """Return the message."""
        return asdict(self)


def hello_from(message: dict[str, Any]) -> Hello:
    """Return the hello in a message; ValueError if it has another form."""
    try:
        hello = Hello(**message)
    except TypeError:
        raise ValueError(f"a message with the parts {sorted(message)}") from None
    for name in ("rank", "size"):
        if type(getattr(hello, name)) is not int:
            raise ValueError(f"a {name} that is not an integer")
    for name in ("timeout_s", "left_s"):
        value = getattr(hello, name)
        if type(value) not in (int, float) or not math.isfinite(value):
            raise ValueError(f"a {name} that is not a number of seconds")
    if not isinstance(hello.process_namespace, str):
        raise ValueError("a namespace that is not a text")
    if not isinstance(hello.fingerprint, dict) or not all(isinstance(v, str) for v in hello.fingerprint.values()):
        raise ValueError("a fingerprint of other types than texts")
    if not isinstance(hello.resources, dict) or not all(map(is_list_of_integers, hello.resources.values())):
        raise ValueError("resources that are not lists of integers")
    return hello


def check_names(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Raise ValueError if the resources of two hellos have different names."""
    if theirs.keys() != ours.keys():
        raise ValueError(f"resources named {sorted(theirs)[:9]}")


def is_list_of_integers(value: Any) -> bool:
    """Return whether a part of a message is a list of integers."""
    return isinstance(value, list) and all(type(item) is int for item in value)


KINDS: dict[str, type[UnisonoError]] = {
    kind.__name__: kind for kind in (CommError, CollectiveTimeout, PeerLost, MismatchError, UsageError)
}
TEMPLATES = {
    template.id: template
    for module in (messages, network_messages)
    for template in vars(module).values()
    if isinstance(template, Template)
}


def error_to_dict(error: BaseException, rank: int) -> dict[str, Any]:
    """Return the message that tells other ranks about an error of ``rank``."""
    if type(error) not in KINDS.values():
        reason = f"{type(error).__name__}: {error}"
        error = CommError(messages.ERROR_ON_RANK(rank=rank, reason=reason), rank=rank)
    text = error.message if isinstance(error, UnisonoError) else str(error)
    return {"problem": _to_data(text), "kind": type(error).__name__, "rank": getattr(error, "rank", None)}


def error_from_dict(message: dict[str, Any], more: Mapping[str, Template] | None = None) -> UnisonoError:
    """Return the error that a message is about; ``more`` has the templates of another package, by their ids."""
    kind, text, rank = (
        KINDS.get(str(message.get("kind")), CommError),
        _from_data(message["problem"], {**TEMPLATES, **(more or {})}),
        message.get("rank"),
    )
    if issubclass(kind, CommError):
        return kind(text, rank=rank if isinstance(rank, int) else None)
    return kind(text)


def _to_data(value: Any) -> Any:
    """Return a parameter of a message, or a message, as plain data."""
    if not isinstance(value, Message) or value.template is None:
        return value
    parameters = {name: _to_data(parameter) for name, parameter in value.parameters.items()}
    return {"id": value.id, "parameters": parameters, "text": str(value)}


def _from_data(data: Any, templates: Mapping[str, Template]) -> str:
    """Return the message in plain data; a message with an unknown id, or with wrong parameters, is plain text."""
    if not isinstance(data, dict):
        return str(data)
    parameters, text = data.get("parameters"), str(data.get("text"))
    template = templates.get(str(data.get("id")))
    if template is None or not isinstance(parameters, dict):
        return text
    values = {
        name: _from_data(value, templates) if isinstance(value, dict) else value for name, value in parameters.items()
    }
    try:
        return template(**values)
    except (KeyError, ValueError, IndexError, TypeError):
        return text
