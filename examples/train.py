"""Train a small language model on several ranks, with any strategy of ``unisono.parallel``.

    unisono run -n 4 examples/train.py --strategy zero3
    unisono run -n 4 examples/train.py --strategy ddp --codec topk:0.01 --error-feedback
    unisono run -n 4 examples/train.py --strategy tp --tp 2 --collectives
    torchrun --nproc-per-node 4 examples/train.py --strategy hybrid
    python examples/train.py

What each strategy does is in language/strategies.py, a few lines each; the model in language/model.py; the text in
language/text.txt.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch.optim import SGD, AdamW

import unisono
from language.experts import MixtureGPT
from language.model import GPT, Shape, write
from language.progress import Steps
from language.strategies import STRATEGIES
from language.text import Text
from unisono.errors import UsageError
from unisono.parallel import Group, Log, full_state_dict, group_of, record

OPTIMIZERS = {"adamw": partial(AdamW, lr=2e-3), "sgd": partial(SGD, lr=0.1, momentum=0.9)}


class Trained(NamedTuple):
    """What came of a training."""

    losses: list[float]  # of each step, the mean over all ranks
    steps_per_s: float
    log: Log  # the collectives of the last step
    sample: str  # what the model writes


def train(
    asked: argparse.Namespace, group: Group, text: Text, shape: Shape, show: Callable[[int, float], None]
) -> Trained:
    """Train a model on all ranks of a group. All of them call this."""
    torch.manual_seed(asked.seed)  # the same on every rank: they begin with the same model
    model, optimizer = STRATEGIES[asked.strategy](shape, group, asked)

    # Ranks that split a model among them have the same rows; the others have other rows of the same batch.
    share, shares = group.rank // asked.tp, group.size // asked.tp
    losses, began = [], time.perf_counter()
    for step in range(1, asked.steps + 1):
        ids, targets = (rows.chunk(shares)[share] for rows in text.batch(step, asked.batch, shape.longest))
        with record() as log:
            model.zero_grad()
            loss = model(ids, targets)
            loss.backward()
            optimizer.step()
        mean = loss.detach().clone()
        group.all_reduce(mean, op="avg", name="loss", phase="update")
        losses.append(mean.item())
        show(step, losses[-1])
    steps_per_s = asked.steps / (time.perf_counter() - began)

    # All parts together are an ordinary model, which every rank now has for itself.
    whole = MixtureGPT(shape, group.split(group.rank)) if asked.strategy == "moe" else GPT(shape)
    whole.load_state_dict(full_state_dict(model))
    sample = text.decode(write(whole, text.encode("The "), asked.sample, shape.longest))
    return Trained(losses, steps_per_s, log, sample)


@contextmanager
def all_ranks(backend: str) -> Iterator[Group]:
    """Connect to the other ranks: by torch.distributed if torchrun has started them, else by our communicator."""
    if dist.is_torchelastic_launched():
        dist.init_process_group(backend)
        yield group_of(None)
        dist.destroy_process_group()
    else:
        with unisono.connect() as comm:
            yield group_of(comm)


def asked_for(words: list[str] | None = None) -> argparse.Namespace:
    """Return what the command line, or a list of words, asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategy", choices=STRATEGIES, default="ddp")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=24, metavar="ROWS", help="of a step, on all ranks together")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="adamw")
    parser.add_argument("--seed", type=int, default=0)
    codecs = "fp16, bf16, fp8_e4m3, fp8_e5m2, int8, topk:0.01, or none"
    parser.add_argument("--codec", default="none", help=f"how gradients travel: {codecs}")
    parser.add_argument("--error-feedback", action="store_true", help="add what the codec cut off in the next step")
    parser.add_argument("--tp", type=int, help="ranks that split a model among them (not with ddp and moe)")
    parser.add_argument("--nodes", type=int, help="groups of ranks, each with a whole model (with hybrid)")
    parser.add_argument("--backend", default="unisono", help="of torch.distributed, under torchrun")
    parser.add_argument("--sample", type=int, default=200, metavar="CHARACTERS", help="that the model writes")
    parser.add_argument("--collectives", action="store_true", help="list the collectives of a step")
    asked = parser.parse_args(words)
    if asked.steps < 1:
        parser.error("--steps: expected 1 or more")
    if asked.tp and asked.strategy in ("ddp", "moe"):
        parser.error(
            f"--tp does not go with {asked.strategy}; data × tensor parallel is --strategy tp --tp {asked.tp}"
        )
    asked.optimizer = OPTIMIZERS[asked.optimizer]
    asked.codec = None if asked.codec == "none" else asked.codec
    return asked


def fill_in(asked: argparse.Namespace, group: Group) -> None:
    """Choose what was not asked for, and depends on the number of ranks."""
    divisors = [nodes for nodes in range(2, group.size + 1) if group.size % nodes == 0]
    asked.nodes = asked.nodes or min(divisors, default=1)
    asked.tp = asked.tp or (group.size if asked.strategy == "tp" else 1)
    shares = max(1, group.size // asked.tp)
    asked.batch = -(-asked.batch // shares) * shares  # as many rows for each
    if asked.codec and shares == 1 < group.size:
        raise UsageError("--codec is for gradients, and ranks that split a model average none; try --tp 2 on 4 ranks")


def main() -> None:
    """Train, and say on rank 0 how it goes."""
    asked = asked_for()
    torch.set_num_threads(1)
    text = Text()
    shape = Shape(len(text.characters))
    with all_ranks(asked.backend) as group:
        try:
            fill_in(asked, group)
            with Steps(asked.steps, is_shown=group.rank == 0) as progress:
                done = train(asked, group, text, shape, progress.show)
        except UsageError as error:
            sys.exit(f"train.py, rank {group.rank}: {error}")
        if group.rank == 0:
            tell(asked, group, done)


def tell(asked: argparse.Namespace, group: Group, done: Trained) -> None:
    """Say what came of it."""
    if asked.collectives:
        print(done.log.table())
    print(
        f"{asked.strategy} on {group.size} rank{'s'[: group.size > 1]}, {asked.steps} steps of {asked.batch} rows: "
        f"loss {done.losses[0]:.4f} -> {done.losses[-1]:.4f}, {done.steps_per_s:.1f} steps/s, "
        f"{done.log.sent_bytes / 1e6:.2f} MB sent by each rank in a step"
    )
    print(done.sample)


if __name__ == "__main__":
    main()
