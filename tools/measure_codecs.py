"""Measure how fast the engine's loops encode and decode, on one core, with 256 KiB of float32 numbers.

GB/s are the bytes of the float32 array per second, including the call from Python, about 0.7 microseconds. Arguments
name the instruction sets to measure (`_engine.variants()`); the default is the best one.
"""

from __future__ import annotations

import sys

import numpy as np

from measure_combine import best
from unisono import _engine
from unisono.codecs import encode, find
from unisono.codecs.coding import add_kept
from unisono.codecs.formats import FORMATS

ARRAY_BYTES = 256 * 1024


def measured(name: str, variant: str) -> list[float]:
    """Return the speeds of encoding, stochastic encoding, encoding that rounds the source, decoding, and adding."""
    array = np.random.default_rng(0).standard_normal(ARRAY_BYTES // 4).astype(np.float32).view(np.uint8)
    wire = np.empty(FORMATS[name].wire_bytes(ARRAY_BYTES // 4), np.uint8)
    source, out = array.copy(), np.empty_like(array)
    actions = [
        lambda: _engine.encode(name, wire, array, False, 0, 0, variant),
        lambda: _engine.encode(name, wire, array, True, 0, 0, variant),
        lambda: _engine.encode_rounding_source(name, wire, source, False, 0, 0, variant),
        lambda: _engine.decode(name, out, wire, variant=variant),
        lambda: _engine.decode_combine(name, "sum", out, array, wire, variant=variant),
    ]
    return [best(ARRAY_BYTES, action) for action in actions]


def measured_topk(fraction: str) -> tuple[float, float]:
    """Return the speeds of encoding the largest of a million numbers, and of adding them."""
    codec = find(f"topk:{fraction}")
    array = np.random.default_rng(0).standard_normal(2**20).astype(np.float32)
    wire, out = encode(array, codec), np.zeros_like(array)
    return best(array.nbytes, lambda: encode(array, codec)), best(array.nbytes, lambda: add_kept(out, wire, codec))


if __name__ == "__main__":
    for variant in sys.argv[1:] or _engine.variants()[:1]:
        print(f"\ninstructions: {variant}, {ARRAY_BYTES // 1024} KiB of float32, one core, GB/s")
        print("| codec | encode | stochastic | rounding the source | decode | decode and add |")
        print("|---|--:|--:|--:|--:|--:|")
        for name in FORMATS:
            print(f"| {name} | {' | '.join(f'{speed:.1f}' for speed in measured(name, variant))} |")
    print("\n4 MiB of float32, one core, GB/s; the same for all instructions")
    print("| codec | encode | add |\n|---|--:|--:|")
    for fraction in ("0.001", "0.01", "0.1"):
        print(f"| topk:{fraction} | {' | '.join(f'{speed:.1f}' for speed in measured_topk(fraction))} |")
