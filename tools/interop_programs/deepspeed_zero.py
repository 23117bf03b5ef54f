"""DeepSpeed with ZeRO: ``deepspeed_zero.py BACKEND option STAGE`` or ``... group STAGE``."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import torch
from problem import BACKEND, batches, network, report

STAGE = int(sys.argv[3])

if sys.argv[2] == "group":
    torch.distributed.init_process_group(BACKEND)
    deepspeed.init_distributed()
else:
    deepspeed.init_distributed(dist_backend=BACKEND)
settings = {
    "train_micro_batch_size_per_gpu": 8,
    "zero_allow_untested_optimizer": True,
    "zero_optimization": {"stage": STAGE, "stage3_param_persistence_threshold": 0, "reduce_bucket_size": 1000},
}
net = network()
engine, *_ = deepspeed.initialize(model=net, optimizer=torch.optim.AdamW(net.parameters(), lr=0.01), config=settings)
losses = []
for inputs, targets in batches():
    loss = torch.nn.functional.mse_loss(engine(inputs), targets)
    engine.backward(loss)
    engine.step()
    losses.append(loss.item())
report(losses, torch.distributed.group.WORLD)
torch.distributed.destroy_process_group()
