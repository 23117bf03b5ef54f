"""Two ranks add tensors with torch.distributed. The program does not import Unisono: torch finds its entry point."""

import torch
import torch.distributed as dist

dist.init_process_group("unisono")
x = torch.arange(1000.0) * (dist.get_rank() + 1)
dist.all_reduce(x)
assert torch.equal(x, torch.arange(1000.0) * sum(range(1, dist.get_world_size() + 1))), x
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: right")
dist.destroy_process_group()
