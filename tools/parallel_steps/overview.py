"""Measures the memory and the messages of every strategy, with the model of examples/train.py, float32 and AdamW."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import torch

from language.model import GPT, Shape
from language.strategies import STRATEGIES
from language.text import Text
from train import fill_in, parse_options
from unisono.parallel import Group, Zero, memory, record

RANKS = 4
# The option --strategy: the formulas of the memory and the messages of a rank, and the page of the strategy.
ROWS = {
    "ddp": ("16Ψ", "2(N-1)/N · 4Ψ", "data_parallel"),
    "zero1": ("8Ψ + 8Ψ/N", "3(N-1)/N · 4Ψ", "zero"),
    "zero2": ("4Ψ + 12Ψ/N", "2(N-1)/N · 4Ψ", "zero"),
    "zero3": ("16Ψ/N", "3(N-1)/N · 4Ψ", "zero"),
    "hybrid": ("16Ψ/S", "3(S-1)/S · 4Ψ, and between nodes 2(R-1)/(R·S) · 4Ψ", "zero"),
    "tp": ("16Ψ/N, and what is not split", "(8L + 4)(N-1)/N · activation", "tensor_parallel"),
    "tp --tp 2": ("16Ψ/T, and what is not split", "both, on their axes", "tensor_parallel"),
    "zero3 --tp 2": ("16Ψ/N, and what is not split", "both, on their axes", "zero"),
    "moe": ("16 (Φ + Χ/N)", "2(N-1)/N · 4Φ, and 4L·k(N-1)/N · own activation", "mixture_of_experts"),
}


def held_and_sent(group: Group) -> str:
    """Train two steps with each strategy; return a table of the most that any rank holds and sends in a step."""
    text = Text()
    shape = Shape(len(text.characters))
    lines = [
        "| `--strategy` | a rank holds | here, MB | a rank sends in a step | here, MB | page |",
        "|---|---|--:|---|--:|---|",
    ]
    for words, (holds, sends, page) in ROWS.items():
        held, sent = _measure(words, group, text, shape)
        lines.append(f"| `{words}` | {holds} | {held / 1e6:.2f} | {sends} | {sent / 1e6:.2f} | [{page}]({page}.md) |")
    return "\n".join(lines)


def parameters(group: Group) -> str:
    """Return a sentence with the number of parameters of the model."""
    text = Text()
    count = sum(parameter.numel() for parameter in GPT(Shape(len(text.characters))).parameters())
    return f"Ψ = {count:,} parameters, {16 * count / 1e6:.2f} MB with gradients and the state of AdamW."


def _measure(words: str, group: Group, text: Text, shape: Shape) -> tuple[int, int]:
    options = parse_options(["--strategy", *words.split()])
    fill_in(options, group)
    torch.manual_seed(0)
    model, optimizer = STRATEGIES[options.strategy](shape, group, options)
    rows = text.batch(1, options.batch, shape.longest)
    share, shares = group.rank // options.tp, group.size // options.tp
    for _ in range(2):
        with record() as log:
            model.zero_grad()
            model(*(part.chunk(shares)[share] for part in rows)).backward()
            optimizer.step()
    held = memory.measure(model) if isinstance(model, Zero) else memory.measure_alone(model, optimizer)
    ranks = group.all_gather_object((held.total, log.sent_bytes))
    return max(total for total, _ in ranks), max(sent for _, sent in ranks)
