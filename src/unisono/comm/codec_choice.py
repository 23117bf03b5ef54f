"""Decides whether a call uses the codec that its caller allows with ``codec="auto:..."``.

The decision follows from data that all ranks share: the hosts, the rate of the links between them, and the bytes of
the vector. A codec is used if it saves clearly more time on the links than encoding costs. A message occupies a link
for some time however short it is, so that a codec saves nothing on short vectors.
"""

from __future__ import annotations

from typing import NamedTuple

from unisono.codecs import Codec
from unisono.collectives import Collective
from unisono.comm import codec_messages as messages
from unisono.comm.topology import least_crossing
from unisono.compiler import Hosts
from unisono.costs.network_model import NetworkModel
from unisono.costs.rates import DEFAULT, Rates
from unisono.message import Message

# The time in which one core encodes a byte of float32, and decodes and adds it: the slowest of the codecs in
# docs/codecs.md (fp8). A core without AVX-512 takes up to three times as long, so the gain must be a multiple.
CODING_S_PER_BYTE = 1 / 11.4e9 + 1 / 28.9e9
LEAST_GAIN = 2.0
SAMPLE = 1 << 20  # elements


class CodecChoice(NamedTuple):
    """The codec of a call, or None, and the reason."""

    codec: Codec | None
    reason: Message
    allowed: Codec | None = None  # the codec that the call allows, used or not


def choose_codec(
    allowed: Codec, collective: Collective, size: int, nbytes: int, hosts: Hosts | None, link_rate: float | None,
    rates: Rates | NetworkModel = DEFAULT,
) -> CodecChoice:  # fmt: skip
    """Return the codec of a call that allows one; ``link_rate`` is in bytes per second, None if it is not known."""
    if hosts is None or len(hosts) == 1:
        return CodecChoice(None, messages.CODEC_ONE_HOST(), allowed)
    if link_rate is None:
        return CodecChoice(None, messages.CODEC_RATE_UNKNOWN(), allowed)
    message_s = _message_s(rates)
    bytes_s = float(least_crossing(collective, [len(ranks) for ranks in hosts])) * nbytes / link_rate
    link_s = max(message_s, bytes_s)
    saved_s = link_s - max(message_s, _part_left(allowed) * bytes_s)
    coding_s = float(collective.bus_factor(size)) * nbytes * CODING_S_PER_BYTE
    pays = saved_s > LEAST_GAIN * coding_s
    reason = (messages.CODEC_PAYS if pays else messages.CODEC_DOES_NOT_PAY)(
        codec=allowed, rate=f"{link_rate * 8e-9:.3g}", link=_us(link_s), saved=_us(saved_s), coding=_us(coding_s),
        times=f"{LEAST_GAIN:g}",
    )  # fmt: skip
    return CodecChoice(allowed if pays else None, reason, allowed)


def rate_at_which_codec_pays(
    allowed: Codec | None, collective: Collective, size: int, nbytes: int, hosts: Hosts | None,
    rates: Rates | NetworkModel = DEFAULT,
) -> float | None:  # fmt: skip
    """Return the bytes per second of links between hosts below which a codec pays off; None if it never does.

    ``allowed`` is the codec; None stands for bf16, which halves the bytes.
    """
    if hosts is None or len(hosts) == 1 or not collective.carries_data or not nbytes:
        return None
    left = 0.5 if allowed is None else _part_left(allowed)
    crossing = float(least_crossing(collective, [len(ranks) for ranks in hosts])) * nbytes
    needed_s = LEAST_GAIN * float(collective.bus_factor(size)) * nbytes * CODING_S_PER_BYTE
    # The gain is either a part of the time of the bytes, or what they take longer than a message at least takes.
    return min((1 - left) * crossing / needed_s, crossing / (needed_s + _message_s(rates))) or None


def _message_s(rates: Rates | NetworkModel) -> float:
    """Return the time for which a message occupies the link of a host at least."""
    return rates.crossing_s if isinstance(rates, Rates) else 0.0


def _part_left(codec: Codec) -> float:
    """Return the part of the bytes that a codec sends."""
    return codec.wire_bytes(SAMPLE) / (4 * SAMPLE)


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.3g}" if seconds < 1e-4 else f"{seconds * 1e6:,.0f}"
