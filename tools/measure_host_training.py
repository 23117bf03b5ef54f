"""Measures training steps on several hosts, on Unisono and on Gloo, which take turns in the same processes.

    unisono run --hosts a:4,b:4 tools/measure_host_training.py --port 40000 --interface eth0 --json steps.json

Every rank runs this program; ``--port`` is a free port of the first host, for the store of torch, and ``--interface``
is that of Gloo. The model and the steps are those of tools/measure_training.py (25 million parameters, a tiny batch);
with "fp8", Unisono sends gradients with the codec fp8_e4m3. A line shows the median step of the slowest rank.
"""

from __future__ import annotations

import argparse
import json
import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from measure_training import ddp, fsdp2, silent
from timed_steps import Step, inputs_of, median_steps, perceptron, slowest, stepper
from unisono.torch_backend import codec_hook

LIMIT = timedelta(seconds=120)
REPEATS, STEPS = 3, 2  # a step takes a second or more where the link is slow


def ddp_with_codec() -> Step:
    """Return a step of DDP whose gradients are sent in 8 bits."""
    inner = perceptron()
    model = DistributedDataParallel(inner)
    model.register_comm_hook(None, codec_hook("fp8_e4m3"))
    return stepper(model, inputs_of(inner))


def main() -> None:
    """Measure, and print on rank 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True, help="a free port of the first host")
    parser.add_argument("--interface", help="the network interface of Gloo")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.interface:
        os.environ["GLOO_SOCKET_IFNAME"] = args.interface
    rank, size = int(os.environ["UNISONO_RANK"]), int(os.environ["UNISONO_SIZE"])
    host = os.environ["UNISONO_RENDEZVOUS"].rpartition(":")[0].strip("[]")
    store = dist.TCPStore(host, args.port, size, is_master=rank == 0, timeout=LIMIT)
    dist.init_process_group("unisono", store=store, rank=rank, world_size=size, timeout=LIMIT)
    gloo = dist.new_group(backend="gloo", timeout=LIMIT)
    world = dist.group.WORLD
    cases: dict[str, dict[str, Step]] = {
        "DDP": {"unisono": ddp(world), "gloo": ddp(gloo), "unisono, fp8": ddp_with_codec(), "silent": silent()},
        "FSDP2": {"unisono": fsdp2(world), "gloo": fsdp2(gloo)},
    }
    mine = {case: median_steps(steps, dist.barrier, REPEATS, STEPS) for case, steps in cases.items()}
    answers: list[dict[str, dict[str, float]]] = [{} for _ in range(size)]
    dist.all_gather_object(answers, mine)
    if rank == 0:
        measured = slowest(answers)
        for case, seconds in measured.items():
            steps = ", ".join(f"{name} {value * 1e3:.1f} ms" for name, value in seconds.items())
            print(f"{size} ranks, {case}: {steps}; gloo / unisono {seconds['gloo'] / seconds['unisono']:.2f}")
        if args.json:
            args.json.write_text(json.dumps({"ranks": size, "seconds": measured}, indent=1) + "\n")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
