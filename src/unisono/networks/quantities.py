"""Quantities with units, as a network file writes them: ``"1.5 us"``, ``"25 GB/s"``, ``"64 KiB"``, ``"0.1 ns/B"``."""

from __future__ import annotations

import math
import re

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12}
BYTES = {
    "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
BITS = {"bit": 1, "kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9, "Tbit": 10**12}
QUANTITY = re.compile(r"\s*([-+]?[\d._]+(?:[eE][-+]?\d+)?|inf)\s*([A-Za-zµ]+(?:/[A-Za-z]+)?)\s*")


def read_seconds(text: object) -> float:
    """Return a time in seconds; raise ValueError where ``text`` is none, or below zero."""
    number, unit = _split(text)
    return _at_least(number * _factor(SECONDS, unit), zero=True)


def read_bytes(text: object) -> int:
    """Return a number of bytes."""
    number, unit = _split(text)
    return round(_at_least(number * _factor(BYTES, unit), zero=True))


def read_bandwidth(text: object) -> float:
    """Return a bandwidth in bytes per second; it may be infinite."""
    number, unit = _split(text)
    amount, _, per = unit.partition("/")
    if per != "s":
        raise ValueError(unit)
    factor = BITS[amount] / 8 if amount in BITS else _factor(BYTES, amount)
    return _at_least(number * factor, zero=False)


def read_seconds_per_byte(text: object) -> float:
    """Return a time per byte in seconds, from a time per byte or from a rate."""
    number, unit = _split(text)
    amount, _, per = unit.partition("/")
    if per == "B":
        return _at_least(number * _factor(SECONDS, amount), zero=True)
    return 1 / read_bandwidth(text)


def _split(text: object) -> tuple[float, str]:
    match = QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(text)
    return float(match[1]), match[2]


def _factor(units: dict[str, float] | dict[str, int], unit: str) -> float:
    if unit not in units:
        raise ValueError(unit)
    return units[unit]


def _at_least(number: float, zero: bool) -> float:
    if math.isnan(number) or number < 0 or (number == 0 and not zero):
        raise ValueError(number)
    return number
