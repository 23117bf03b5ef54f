"""Train a small language model on several ranks, with any strategy of ``unisono.parallel``.

    unisono run -n 4 examples/train.py --strategy zero3
    unisono run -n 4 examples/train.py --strategy ddp --codec topk:0.01 --error-feedback
    unisono run -n 4 examples/train.py --strategy tp --tp 2 --collectives
    torchrun --nproc-per-node 4 examples/train.py --strategy hybrid
    unisono run -n 4 examples/train.py --algorithm my_algo.py:my_ring
    unisono run -n 8 examples/train.py --device cuda --strategy zero3
    python examples/train.py

language/strategies.py implements each strategy in a few lines; language/model.py is the model; language/text.txt is
the text.
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
from unisono.errors import ScheduleError, UsageError
from unisono.parallel import Group, Log, full_state_dict, group_of, record
from unisono.torch_backend import Options

OPTIMIZERS = {"adamw": partial(AdamW, lr=2e-3), "sgd": partial(SGD, lr=0.1, momentum=0.9)}


class Trained(NamedTuple):
    """The result of a training."""

    losses: list[float]  # of each step, averaged over all ranks
    steps_per_s: float
    log: Log  # the collectives of the last step
    sample: str  # a text that the model has written


def train(
    options: argparse.Namespace, group: Group, text: Text, shape: Shape, show: Callable[[int, float], None]
) -> Trained:
    """Train a model on all ranks of a group. Every rank calls this."""
    torch.manual_seed(options.seed)  # the same on every rank, so that all start with the same model
    model, optimizer = STRATEGIES[options.strategy](shape, group, options)

    # Ranks that share one model read the same rows; the others read different rows of the same batch.
    share, shares = group.rank // options.tp, group.size // options.tp
    losses, began = [], time.perf_counter()
    for step in range(1, options.steps + 1):
        batch = text.batch(step, options.batch, shape.longest)
        ids, targets = (rows.chunk(shares)[share].to(options.device) for rows in batch)
        with record() as log:
            model.zero_grad()
            loss = model(ids, targets)
            loss.backward()
            optimizer.step()
        mean = loss.detach().clone()
        group.all_reduce(mean, op="avg", name="loss", phase="update")
        losses.append(mean.item())
        show(step, losses[-1])
    steps_per_s = options.steps / (time.perf_counter() - began)

    # Put together, the parts are an ordinary model, of which every rank now gets a copy.
    whole = MixtureGPT(shape, group.split(group.rank)) if options.strategy == "moe" else GPT(shape)
    whole.load_state_dict(full_state_dict(model))
    sample = text.decode(write(whole, text.encode("The "), options.sample, shape.longest))
    return Trained(losses, steps_per_s, log, sample)


@contextmanager
def all_ranks(backend: str, algorithms: dict[str, str]) -> Iterator[Group]:
    """Connect to the other ranks: by torch.distributed under torchrun, otherwise by a communicator of Unisono.

    ``algorithms`` names the algorithm of a collective; Unisono selects those of the others.
    """
    if dist.is_torchelastic_launched():
        dist.init_process_group(backend, pg_options=Options(algorithms) if algorithms else None)
        yield group_of(None)
        dist.destroy_process_group()
    else:
        with unisono.connect() as comm:
            yield group_of(comm, algorithms)


def parse_options(words: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line, or of a list of words."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strategy", choices=STRATEGIES, default="ddp")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument(
        "--batch", type=int, default=24, metavar="ROWS", help="rows of a step, on all ranks together (default 24)"
    )
    parser.add_argument(
        "--device", choices=["cpu", "cuda"], default="cpu",
        help="of the model (default cpu); with more ranks than GPUs, ranks share them",
    )  # fmt: skip
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="adamw")
    parser.add_argument("--seed", type=int, default=0)
    codecs = "fp16, bf16, fp8_e4m3, fp8_e5m2, int8, topk:0.01 or none"
    parser.add_argument("--codec", default="none", help=f"codec of the gradients: {codecs} (default none)")
    parser.add_argument(
        "--error-feedback", action="store_true", help="add the error of the codec to the next gradients"
    )
    parser.add_argument("--tp", type=int, help="ranks that share one model (not with ddp and moe)")
    parser.add_argument(
        "--nodes", type=int, help="groups of ranks that hold a whole model (with hybrid; default: hosts)"
    )
    parser.add_argument(
        "--algorithm", action="append", default=[], metavar="NAME",
        help="train with this algorithm: a built-in such as ring, or your own as my_algo.py:my_ring; may be repeated "
        "for other collectives",
    )  # fmt: skip
    parser.add_argument(
        "--backend", default="unisono", help="backend of torch.distributed, under torchrun (default unisono)"
    )
    parser.add_argument(
        "--sample",
        type=int,
        default=200,
        metavar="CHARACTERS",
        help="length of the text that the model writes (default 200)",
    )
    parser.add_argument("--collectives", action="store_true", help="list the collectives of the last step")
    options = parser.parse_args(words)
    if options.steps < 1:
        parser.error("--steps: expected 1 or more")
    if options.tp and options.strategy in ("ddp", "moe"):
        parser.error(
            f"--tp does not go with {options.strategy}; data × tensor parallel is --strategy tp --tp {options.tp}"
        )
    if options.algorithm and options.backend != "unisono":
        parser.error(f"--algorithm needs the backend unisono; found --backend {options.backend}")
    try:
        options.algorithms = {unisono.find(name).collective.name: name for name in options.algorithm}
    except UsageError as error:
        parser.error(f"--algorithm: {error}")
    options.optimizer = OPTIMIZERS[options.optimizer]
    options.codec = None if options.codec == "none" else options.codec
    return options


def device_of(name: str, group: Group) -> torch.device:
    """Return the device of this rank; the ranks of a host take turns with its GPUs."""
    if name == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise UsageError("--device cuda: torch finds no GPU")
    mine = next((ranks for ranks in group.hosts or () if group.rank in ranks), range(group.size))
    device = torch.device("cuda", mine.index(group.rank) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def fill_in(options: argparse.Namespace, group: Group) -> None:
    """Fill in the defaults that depend on the number of ranks."""
    options.device = device_of(options.device, group)
    divisors = [nodes for nodes in range(2, group.size + 1) if group.size % nodes == 0]
    hosts = group.hosts or ()
    equal = len(hosts) > 1 and len({len(ranks) for ranks in hosts}) == 1
    options.nodes = options.nodes or (len(hosts) if equal else min(divisors, default=1))
    options.tp = options.tp or (group.size if options.strategy == "tp" else 1)
    shares = max(1, group.size // options.tp)
    options.batch = -(-options.batch // shares) * shares  # the same number of rows on each
    if options.codec and shares == 1 < group.size:
        raise UsageError(
            "--codec is for averaged gradients; ranks that share one model average none; try --tp 2 on 4 ranks"
        )


def main() -> None:
    """Train, and print the progress on rank 0."""
    options = parse_options()
    torch.set_num_threads(1)
    text = Text()
    shape = Shape(len(text.characters))
    with all_ranks(options.backend, options.algorithms) as group:
        try:
            fill_in(options, group)
            with Steps(options.steps, is_shown=group.rank == 0) as progress:
                done = train(options, group, text, shape, progress.show)
        except (UsageError, ScheduleError) as error:
            sys.exit(f"train.py, rank {group.rank}: {error}")
        if group.rank == 0:
            print_summary(options, group, done)


def print_summary(options: argparse.Namespace, group: Group, done: Trained) -> None:
    """Print the losses, the speed, and a text by the model."""
    if options.collectives:
        print(done.log.table())
    print(
        f"{options.strategy} on {group.size} rank{'s'[: group.size > 1]}, {options.steps} steps of "
        f"{options.batch} rows: loss {done.losses[0]:.4f} -> {done.losses[-1]:.4f}, {done.steps_per_s:.1f} steps/s, "
        f"{done.log.sent_bytes / 1e6:.2f} MB sent by each rank in a step"
    )
    for collective, name in options.algorithms.items():
        print(f"{collective}: {name}")
    print(done.sample)


if __name__ == "__main__":
    main()
