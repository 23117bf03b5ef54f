"""Train a small language model on several ranks, with any strategy of ``unisono.parallel``.

Run it:     unisono run -n 4 examples/train.py --strategy zero3
Compress:   unisono run -n 4 examples/train.py --strategy ddp --codec fp8_e4m3
With torch: torchrun --nproc-per-node 4 examples/train.py --strategy tp --tp 2
Alone:      python examples/train.py

The model is in language/model.py, the text in language/text.txt, and what each strategy does, in a few lines each, in
language/strategies.py.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from language.experts import MixtureGPT
from language.model import GPT, Shape, write
from language.progress import Steps
from language.strategies import STRATEGIES
from language.text import Text

import unisono
from unisono.errors import UsageError
from unisono.parallel import Group, Log, full_state_dict, group_of, record


@dataclass
class Trained:
    """What came of a training."""

    losses: list[float]  # of each step, the mean over all ranks
    steps_per_s: float
    log: Log  # the collectives of the last step
    sample: str  # what the model writes


def train(asked: argparse.Namespace, group: Group) -> Trained:
    """Train the model on all ranks of a group. All of them call this."""
    text = Text()
    shape = Shape(len(text.characters), **asked.shape)
    torch.manual_seed(asked.seed)  # the same on every rank: they begin with the same model
    model, optimizer = STRATEGIES[asked.strategy](shape, group, asked)

    # Ranks that split a model among them have the same rows; the others have other rows of the same global batch.
    share, shares = group.rank // asked.tp, group.size // asked.tp
    losses, began = [], time.perf_counter()
    with Steps(asked.steps, is_shown=asked.shown and group.rank == 0) as progress:
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
            progress.show(step, losses[-1])
    steps_per_s = asked.steps / (time.perf_counter() - began)
    return Trained(losses, steps_per_s, log, sample_of(model, shape, text, group, asked))


def sample_of(model: torch.nn.Module, shape: Shape, text: Text, group: Group, asked: argparse.Namespace) -> str:
    """Return some text by the model. Its parts are put together to an ordinary one, of which each rank has a copy."""
    alone = group.split(group.rank)  # a group of this rank
    whole = MixtureGPT(shape, alone) if asked.strategy == "moe" else GPT(shape)
    whole.load_state_dict(full_state_dict(model))
    return text.decode(write(whole, text.encode("The "), asked.sample, shape.longest))


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


def asked_for(words: list[str] | None = None, **shape: int) -> argparse.Namespace:
    """Return what was asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategy", choices=STRATEGIES, default="ddp")
    parser.add_argument("--codec", help="how gradients are sent: fp16, bf16, fp8_e4m3, fp8_e5m2, int8, topk:0.01")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=24, metavar="ROWS", help="of a step, for all ranks together")
    parser.add_argument("--rate", type=float, default=2e-3, help="at which the model learns")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tp", type=int, help="ranks that split a model among them (with tp, zero1-3 and hybrid)")
    parser.add_argument("--nodes", type=int, help="groups of ranks, each with a whole model (with hybrid)")
    parser.add_argument("--sample", type=int, default=200, metavar="CHARACTERS", help="that the model writes")
    parser.add_argument("--collectives", action="store_true", help="list the collectives of a step")
    parser.add_argument("--backend", default="unisono", help="of torch.distributed, with torchrun")
    asked = parser.parse_args(words)
    asked.shape, asked.shown = shape, words is None
    return asked


def fill_in(asked: argparse.Namespace, group: Group) -> None:
    """Fill in what depends on the number of ranks."""
    divisors = [nodes for nodes in range(2, group.size + 1) if group.size % nodes == 0]
    asked.nodes = asked.nodes or min(divisors, default=1)
    asked.tp = asked.tp or (group.size if asked.strategy == "tp" else 1)
    shares = group.size // asked.tp
    asked.batch = -(-asked.batch // shares) * shares  # as many rows for each


def main() -> None:
    """Train, and say on rank 0 how it goes."""
    asked = asked_for()
    torch.set_num_threads(1)
    with all_ranks(asked.backend) as group:
        fill_in(asked, group)
        say = print if group.rank == 0 else lambda *_: None
        by = type(group).__name__
        say(f"{asked.strategy} on {group.size} ranks")
        try:
            done = train(asked, group)
        except UsageError as error:
            sys.exit(f"train.py, rank {group.rank}: {error}")
        if asked.collectives:
            say(done.log.table())
        say(
            f"loss {done.losses[0]:.4f} -> {done.losses[-1]:.4f} in {asked.steps} steps, {done.steps_per_s:.1f} steps/s, "
        )
        say(done.sample)


if __name__ == "__main__":
    main()
