"""Reads and writes quantities with units: bytes, tokens, seconds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from unisono.errors import UsageError
from unisono.planner import messages

NUMBER = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([A-Za-z]{0,3})")
BYTES = {"GB": 1e9, "TB": 1e12, "MB": 1e6, "GIB": 2**30, "MIB": 2**20, "TIB": 2**40, "B": 1, "G": 1e9}
TOKENS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}  # batches are powers of two: 4M tokens are 1024 x 4096


def read_bytes(text: str | float, what: str) -> float:
    """Return the bytes of ``80GB``."""
    return float(text) if _is_number(text) else _read(text, BYTES, what, "80GB")


def read_tokens(text: str | int, what: str = "tokens") -> int:
    """Return the tokens of ``4M`` (4 x 2^20)."""
    return int(text) if _is_number(text) else int(_read(text, TOKENS, what, "4M"))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 and value == value


def _read(text: object, units: Mapping[str, float], what: str, example: str) -> float:
    match = NUMBER.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None or match[2].upper() not in units:
        raise UsageError(messages.NOT_A_QUANTITY(what=what, example=example, found=str(text)[:40]))
    return float(match[1]) * units[match[2].upper()]


def gigabytes(count: float) -> str:
    """Write a number of bytes in gigabytes."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def seconds(value: float) -> str:
    """Write a duration."""
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.0f} ms" if value >= 1e-2 else f"{value * 1e3:.2f} ms"


def short(count: float) -> str:
    """Write a large number: 8.03 B, 4 M."""
    for unit, size in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if count >= size:
            return f"{count / size:.3g}{unit}"
    return f"{count:.0f}"
