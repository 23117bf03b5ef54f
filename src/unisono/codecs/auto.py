"""Permission to use a codec where it pays: ``codec="auto:bf16"``. The communicator decides (comm/codec_choice.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unisono.codecs import messages
from unisono.codecs.codec import Codec, find
from unisono.errors import UsageError

AUTO = "auto:"


@dataclass(frozen=True)
class AutoCodec:
    """Permission to use ``codec`` where it makes a call faster: between hosts, over a link slow enough for it to pay.

    ``codec`` is a Codec or its name, but not top-k. ``codec="auto:bf16"`` in a call is the same as
    ``codec=AutoCodec("bf16")``. All ranks of a communicator decide alike; where the codec is not used, numbers travel
    unchanged. UsageError is raised if there is no such codec. For example::

        comm.all_reduce(gradient, codec=AutoCodec(Codec("fp8_e4m3", stochastic=True)))
    """

    codec: Codec

    def __init__(self, codec: str | Codec) -> None:
        found = find(codec)
        if found.is_topk:
            raise UsageError(messages.AUTO_TOPK(name=found.name))
        object.__setattr__(self, "codec", found)

    def __str__(self) -> str:
        return f"{AUTO}{self.codec}"


def find_auto(codec: Any) -> AutoCodec | None:
    """Return the permission that ``codec``, the argument of a call, stands for; None if it is something else."""
    if isinstance(codec, AutoCodec):
        return codec
    if isinstance(codec, str) and codec.startswith(AUTO):
        return AutoCodec(codec.removeprefix(AUTO))
    return None
