"""Accelerate with a custom training loop: ``accelerate_loop.py BACKEND group`` or ``... option``."""

from __future__ import annotations

import sys

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from problem import BACKEND, batches, network, report

if sys.argv[2] == "group":
    torch.distributed.init_process_group(BACKEND)
    handlers = []
else:
    handlers = [InitProcessGroupKwargs(backend=BACKEND)]
accelerator = Accelerator(cpu=True, kwargs_handlers=handlers)
net = network()
net, optimizer = accelerator.prepare(net, torch.optim.AdamW(net.parameters(), lr=0.01))
losses = []
for inputs, targets in batches():
    loss = torch.nn.functional.mse_loss(net(inputs), targets)
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(accelerator.gather(loss.detach()).mean().item())  # over all ranks
report(losses, torch.distributed.group.WORLD)
accelerator.end_training()
