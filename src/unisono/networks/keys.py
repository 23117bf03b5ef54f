"""The keys of a network file: the field that each one fills, and the values that it accepts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from unisono.message import Message, listed
from unisono.networks import messages, near
from unisono.networks.endpoint import ALL_SENDS, LONG_SENDS, NO_SENDS
from unisono.networks.quantities import read_bandwidth, read_bytes, read_seconds, read_seconds_per_byte


@dataclass(frozen=True)
class Key:
    """A key of a table. ``read`` turns its value into that of ``field``, or raises ValueError; see ``written``."""

    field: str
    read: Callable[[Any], Any]
    expected: Message
    write: Callable[[Any], str]
    required: bool = False


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(value)
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(value)
    return value


def _counts(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError(value)
    return tuple(_count(entry) for entry in value)


def _factor(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 1:
        raise ValueError(value)
    return float(value)


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ValueError(value)
    return float(value)


def quoted(text: str) -> str:
    """Return a TOML string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def text(field: str, required: bool = False) -> Key:
    """Return a key with a text."""
    return Key(field, _text, messages.A_TEXT(), quoted, required)


def count(field: str) -> Key:
    """Return a key with a whole number of at least 1."""
    return Key(field, _count, messages.A_COUNT(), str)


def whole(field: str) -> Key:
    """Return a key with a whole number of at least 0."""
    return Key(field, _whole, messages.A_WHOLE_NUMBER(), str)


def counts(field: str) -> Key:
    """Return a key with a list of whole numbers."""
    return Key(field, _counts, messages.COUNTS(), lambda value: str(list(value)))


def number(field: str, allowed: tuple[int, ...]) -> Key:
    """Return a key with one of a few whole numbers."""

    def read(value: object) -> int:
        if _count(value) not in allowed:
            raise ValueError(value)
        return _count(value)

    return Key(field, read, messages.ONE_OF(words=listed(map(str, allowed))), str)


def factor(field: str) -> Key:
    """Return a key with a number of at least 1."""
    return Key(field, _factor, messages.A_FACTOR(), repr)


def share(field: str) -> Key:
    """Return a key with a number above 0 and at most 1."""
    return Key(field, _share, messages.A_SHARE(), repr)


def seconds(field: str, required: bool = False) -> Key:
    """Return a key with a time."""
    return Key(field, read_seconds, messages.A_TIME(), lambda value: f'"{value!r} s"', required)


def seconds_per_byte(field: str) -> Key:
    """Return a key with a time per byte."""
    return Key(field, read_seconds_per_byte, messages.A_TIME_PER_BYTE(), lambda value: f'"{value!r} s/B"')


def number_of_bytes(field: str) -> Key:
    """Return a key with a number of bytes."""
    return Key(field, read_bytes, messages.BYTES(), lambda value: f'"{value} B"')


def positive_bytes(field: str) -> Key:
    """Return a key with a number of bytes of at least 1."""

    def read(value: object) -> int:
        return _count(read_bytes(value))

    return Key(field, read, messages.BYTES(), lambda value: f'"{value} B"')


def bandwidth(field: str) -> Key:
    """Return a key with a bandwidth."""
    return Key(field, read_bandwidth, messages.A_BANDWIDTH(), lambda value: f'"{value!r} B/s"')


def word(field: str, words: dict[str, Any]) -> Key:
    """Return a key with one of several words; the field holds the value that belongs to the word."""

    def read(value: object) -> Any:
        if not isinstance(value, str) or value not in words:
            raise ValueError(value)
        return words[value]

    def write(value: object) -> str:
        return quoted(next(word for word, meaning in words.items() if meaning == value))

    return Key(field, read, messages.ONE_OF(words=listed(map(quoted, words))), write)


DUPLEX = word("full_duplex", {"full": True, "half": False})
TOP = {
    "name": text("name", required=True), "title": text("title"), "title_zh": text("title_zh"),
    "source": text("source"),
    "hosts": count("hosts"), "ranks_per_host": count("ranks_per_host"),
}  # fmt: skip
ENDPOINT = {
    "send_overhead": seconds("send_overhead_s"), "receive_overhead": seconds("receive_overhead_s"),
    "send_per_byte": seconds_per_byte("send_s_per_byte"), "receive_per_byte": seconds_per_byte("receive_s_per_byte"),
    "reduce_per_byte": seconds_per_byte("reduce_s_per_byte"), "copy_per_byte": seconds_per_byte("copy_s_per_byte"),
    "call_overhead": seconds("call_overhead_s"),
    "inline": number_of_bytes("inline_bytes"), "fetch": seconds("fetch_s"),
    "eager": number_of_bytes("eager_bytes"), "eager_per_byte": seconds_per_byte("eager_s_per_byte"),
    "rendezvous": seconds("rendezvous_s"), "rendezvous_trips": whole("rendezvous_trips"),
    "jitter": seconds("jitter_s"), "jitter_until": positive_bytes("jitter_bytes"),
    "sends": word("blocking_sends", {"buffered": NO_SENDS, "blocking if long": LONG_SENDS, "blocking": ALL_SENDS}),
    "exchange": number_of_bytes("exchange_bytes"),
    "cache": number_of_bytes("cache_bytes"), "beyond_cache": factor("beyond_cache"),
    "segment": positive_bytes("segment_bytes"),
    "reductions": word("copies_input", {"in place": False, "of a copy": True}), "ports": count("ports"),
    "allocate_per_byte": seconds_per_byte("allocate_s_per_byte"), "mapped": number_of_bytes("mapped_bytes"),
    "heap": word("trims_heap", {"kept": False, "trimmed": True}),
    "messages": word("synchronous", {"asynchronous": False, "synchronous": True}),
}  # fmt: skip
NEAR = {
    "kind": word("kind", {kind: kind for kind in near.KINDS}),
    "latency": seconds("latency_s"), "bandwidth": bandwidth("bandwidth"), "duplex": DUPLEX,
    "reduce_bandwidth": bandwidth("reduce_bandwidth"), "reduce_latency": seconds("reduce_latency_s"),
}  # fmt: skip
NICS = {
    "count": count("count"), "latency": seconds("latency_s"), "bandwidth": bandwidth("bandwidth"), "duplex": DUPLEX,
}  # fmt: skip
PROTOCOL = {
    "name": text("name", required=True), "near_latency": seconds("near_latency_s", required=True),
    "far_latency": seconds("far_latency_s", required=True), "efficiency": share("efficiency"),
    "far_efficiency": share("far_efficiency"),
    "call_overhead": seconds("call_overhead_s"),
}  # fmt: skip
