"""Decides whether a call uses the codec that its caller allows with ``codec="auto:..."``.

The decision follows from data that all ranks share: the hosts, the rate of the links between them, and the bytes of
the vector. A codec is used if it saves clearly more time on the links than encoding costs.
"""

from __future__ import annotations

from typing import NamedTuple

from unisono.codecs import Codec
from unisono.collectives import Collective
from unisono.comm import codec_messages as messages
from unisono.comm.topology import least_crossing
from unisono.compiler import Hosts
from unisono.message import Message

# The time in which one core encodes a byte of float32, and decodes and adds it: the slowest of the codecs in
# docs/codecs.md (fp8). A core without AVX-512 takes up to three times as long, so the gain must be a multiple.
CODING_S_PER_BYTE = 1 / 11.4e9 + 1 / 28.9e9
LEAST_GAIN = 2.0
LEAST_BYTES = 4096  # shorter vectors fit into a few packets, whose number a codec does not change
SAMPLE = 1 << 20  # elements


class CodecChoice(NamedTuple):
    """The codec of a call, or None, and the reason."""

    codec: Codec | None
    reason: Message
    allowed: Codec | None = None  # the codec that the call allows, used or not


def choose_codec(
    allowed: Codec, collective: Collective, size: int, nbytes: int, hosts: Hosts | None, link_rate: float | None
) -> CodecChoice:
    """Return the codec of a call that allows one; ``link_rate`` is in bytes per second, None if it is not known."""
    if hosts is None or len(hosts) == 1:
        return CodecChoice(None, messages.CODEC_ONE_HOST(), allowed)
    if link_rate is None:
        return CodecChoice(None, messages.CODEC_RATE_UNKNOWN(), allowed)
    if nbytes < LEAST_BYTES:
        return CodecChoice(None, messages.CODEC_SHORT(nbytes=nbytes, least=LEAST_BYTES), allowed)
    left = _part_left(allowed)
    link_s = float(least_crossing(collective, [len(ranks) for ranks in hosts])) * nbytes / link_rate
    saved_s = (1 - left) * link_s
    coding_s = float(collective.bus_factor(size)) * nbytes * CODING_S_PER_BYTE
    pays = saved_s > LEAST_GAIN * coding_s
    reason = (messages.CODEC_PAYS if pays else messages.CODEC_DOES_NOT_PAY)(
        codec=allowed, rate=f"{link_rate * 8e-9:.3g}", link=_us(link_s), saved=_us(saved_s), coding=_us(coding_s),
        times=f"{LEAST_GAIN:g}",
    )  # fmt: skip
    return CodecChoice(allowed if pays else None, reason, allowed)


def rate_at_which_codec_pays(
    allowed: Codec | None, collective: Collective, size: int, hosts: Hosts | None
) -> float | None:
    """Return the bytes per second of links between hosts below which a codec pays off; None if it never does.

    ``allowed`` is the codec; None stands for bf16, which halves the bytes.
    """
    if hosts is None or len(hosts) == 1 or not collective.carries_data:
        return None
    left = 0.5 if allowed is None else _part_left(allowed)
    crossing = float(least_crossing(collective, [len(ranks) for ranks in hosts]))
    coding = LEAST_GAIN * float(collective.bus_factor(size)) * CODING_S_PER_BYTE
    return (1 - left) * crossing / coding or None


def _part_left(codec: Codec) -> float:
    """Return the part of the bytes that a codec sends."""
    return codec.wire_bytes(SAMPLE) / (4 * SAMPLE)


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.3g}" if seconds < 1e-4 else f"{seconds * 1e6:,.0f}"
