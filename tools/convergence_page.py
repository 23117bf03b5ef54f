"""Write the tables of docs/parallel/convergence.md from docs/measurements/convergence.json.

``python tools/convergence_page.py --measure`` trains the model of examples/train.py with every strategy and every
codec first (about ten minutes on two cores) and writes that file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import mean
from typing import Any

import page_parts

ROOT = Path(__file__).parent.parent
MEASURED = ROOT / "docs" / "measurements" / "convergence.json"
PAGE = ROOT / "docs" / "parallel" / "convergence.md"

RANKS, STEPS = 4, 200
LAST = 20  # steps whose mean is the final loss, because some batches are easier than others
STRATEGIES = (
    "ddp", "zero1", "zero2", "zero3", "hybrid", "tp", "tp --tp 2", "zero3 --tp 2", "hybrid --tp 2", "moe",
)  # fmt: skip
CODECS = ("fp16", "bf16", "int8", "fp8_e4m3", "fp8_e5m2", "topk:0.1", "topk:0.01", "topk:0.001")
WITH_SGD = ("fp8_e5m2", "topk:0.01", "topk:0.001")
FP8, FEEDBACK, SGD = " --codec fp8_e4m3", " --error-feedback", "ddp --optimizer sgd"


def measure() -> dict[str, Any]:
    """Train with every strategy and every codec."""
    import unisono

    alone = ["ddp", "moe"]
    runs = [*STRATEGIES, *(f"{each}{FP8}" for each in STRATEGIES if each not in ("ddp", "tp"))]
    runs += [f"ddp --codec {codec}{word}" for codec in CODECS for word in ("", FEEDBACK)]
    runs += [SGD, *(f"{SGD} --codec {codec}{word}" for codec in WITH_SGD for word in ("", FEEDBACK))]
    found = {f"alone: {run}": each for run, each in zip(alone, unisono.spawn(_train, 1, alone)[0], strict=True)}
    found |= dict(zip(runs, unisono.spawn(_train, RANKS, runs)[0], strict=True))
    return {
        "ranks": RANKS,
        "steps": STEPS,
        "runs": {run: _condensed(run, each, found) for run, each in found.items()},
    }


def _train(comm: Any, runs: list[str]) -> list[dict[str, Any]]:
    """Train on one rank; return the losses of all steps and the bytes that the rank sends per step."""
    sys.path.insert(0, str(ROOT / "examples"))
    import torch

    from language.model import Shape
    from language.text import Text
    from train import fill_in, parse_options, train
    from unisono.parallel import group_of

    torch.set_num_threads(1)
    text, group = Text(), group_of(comm)
    found = []
    for run in runs:
        options = parse_options(f"--steps {STEPS} --sample 0 --strategy {run}".split())
        fill_in(options, group)
        done = train(options, group, text, Shape(len(text.characters)), lambda *_: None)
        found.append({"losses": done.losses, "sent_bytes": done.log.sent_bytes})
        if comm.rank == 0:
            print(f"{run}: {mean(done.losses[-LAST:]):.4f}, {done.steps_per_s:.1f} steps/s", flush=True)
    return found


def _condensed(name: str, run: dict[str, Any], runs: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers that the tables show."""
    losses, alone = run["losses"], runs["alone: moe" if "moe" in name else "alone: ddp"]["losses"]
    return {
        "first": losses[0], "last": mean(losses[-LAST:]), "sent_bytes": run["sent_bytes"],
        "furthest": max(abs(a - b) for a, b in zip(losses, alone, strict=True)),
    }  # fmt: skip


def strategies(runs: dict[str, Any]) -> str:
    """Return the table of strategies."""
    titles = "strategy", "first loss", "final loss", "largest difference", "final loss with fp8_e4m3", "MB sent"
    lines = [f"| {' | '.join(titles)} |", "|---|--:|--:|--:|--:|--:|"]
    for name in ("alone: ddp", *STRATEGIES[:-1], "alone: moe", "moe"):
        run = runs[name]
        words = name.replace("alone: ddp", "one process").replace("alone: moe", "moe, one process")
        far = "" if name.startswith("alone") else f"{run['furthest']:.1e}"
        encoded = f"{runs[name + FP8]['last']:.4f}" if name + FP8 in runs else ""
        sent = f"{run['sent_bytes'] / 1e6:.2f}"
        lines.append(f"| {words} | {run['first']:.4f} | {run['last']:.4f} | {far} | {encoded} | {sent} |")
    return "\n".join(lines)


def codecs(runs: dict[str, Any]) -> str:
    """Return the table of codecs with AdamW."""
    return _codecs(runs, "ddp", CODECS)


def codecs_with_sgd(runs: dict[str, Any]) -> str:
    """Return the table of codecs with SGD."""
    return _codecs(runs, SGD, WITH_SGD)


def _codecs(runs: dict[str, Any], exact: str, codecs: tuple[str, ...]) -> str:
    lines = ["| codec | sent | final loss | with error feedback |", "|---|--:|--:|--:|"]
    lines.append(f"| none | 1 | {runs[exact]['last']:.4f} | |")
    for codec in codecs:
        run, fed_back = (runs[f"{exact} --codec {codec}{word}"] for word in ("", FEEDBACK))
        part = run["sent_bytes"] / runs[exact]["sent_bytes"]
        lines.append(f"| {codec} | {part:.3f} | {run['last']:.4f} | {fed_back['last']:.4f} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """Return the page with current tables."""
    runs = json.loads(MEASURED.read_text(encoding="utf-8"))["runs"]
    tables = {"strategies": strategies, "codecs": codecs, "codecs_with_sgd": codecs_with_sgd}
    return page_parts.fill(text, lambda name: tables[name](runs))


if __name__ == "__main__":
    if "--measure" in sys.argv[1:]:
        MEASURED.write_text(json.dumps(measure(), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
