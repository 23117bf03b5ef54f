"""Small trainings on a GPU; each returns numbers that must equal those of one process that has all the data."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from tests.gpu.torch_on_gpu.pool import here

STEPS, ROWS, WIDTH = 4, 16, 64  # rows of all ranks together


def model() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 8)
    ).to(here())


def batch(step: int, alone: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the rows of this rank, or all rows."""
    source = torch.Generator().manual_seed(step)
    x, y = torch.randn(ROWS, WIDTH, generator=source), torch.randint(8, (ROWS,), generator=source)
    if not alone:
        size, rank = dist.get_world_size(), dist.get_rank()
        x, y = x.chunk(size)[rank], y.chunk(size)[rank]
    return x.to(here()), y.to(here())


def train(module: Any, alone: bool = False, compute: Any = None) -> list[float]:
    """Train; return the losses, averaged over all ranks."""
    optimizer = torch.optim.SGD(module.parameters(), 0.1, momentum=0.9)
    losses = []
    for step in range(STEPS):
        x, y = batch(step, alone)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy((compute or module)(x), y)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        if not alone:
            dist.all_reduce(mean, dist.ReduceOp.AVG)
        losses.append(mean.item())
    return losses


def alone() -> list[float]:
    """Return the losses of one process."""
    return train(model(), alone=True)


def ddp(**options: Any) -> tuple[list[float], list[float]]:
    hook = options.pop("hook", None)
    wrapped = DistributedDataParallel(model(), **options)
    if hook is not None:
        wrapped.register_comm_hook(None, _hook(hook))
    return train(wrapped), alone()


def _hook(name: str) -> Any:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    from unisono.torch_backend import codec_hook

    if name in ("allreduce_hook", "fp16_compress_hook", "bf16_compress_hook"):
        return getattr(default_hooks, name)
    return codec_hook(name, error_feedback=name.startswith("topk"))


def ddp_without_sync() -> bool:
    wrapped = DistributedDataParallel(model())
    x, y = batch(0, False)
    with wrapped.no_sync():
        nn.functional.cross_entropy(wrapped(x), y).backward()
    nn.functional.cross_entropy(wrapped(x), y).backward()
    gradient = wrapped.module[0].weight.grad
    others = [torch.zeros_like(gradient) for _ in range(dist.get_world_size())]
    dist.all_gather(others, gradient)
    return all(torch.equal(other, gradient) for other in others)


def fsdp(mixed: bool = False, hybrid: bool = False) -> tuple[list[float], list[float]]:
    size = dist.get_world_size()
    mesh = init_device_mesh(here().type, (size // 2, 2), mesh_dim_names=("r", "s")) if hybrid else None
    options: dict[str, Any] = {"mesh": mesh or init_device_mesh(here().type, (size,))}
    if mixed:
        options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    module = model()
    for layer in module:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, **options)
    fully_shard(module, **options)
    return train(module), alone()


def tensor_parallel() -> tuple[list[float], list[float]]:
    mesh = init_device_mesh(here().type, (dist.get_world_size(),))
    module = parallelize_module(model(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return train(module, alone=True), alone()


def placements() -> list[str]:
    """Redistribute a tensor between all placements; return what differs."""
    mesh = init_device_mesh(here().type, (dist.get_world_size(),))
    whole = torch.arange(16.0 * 24, device=here()).view(16, 24)
    wrong = []
    for first in (Replicate(), Shard(0), Shard(1)):
        for second in (Replicate(), Shard(0), Shard(1)):
            moved = distribute_tensor(whole.clone(), mesh, [first]).redistribute(mesh, [second])
            if not torch.equal(moved.full_tensor(), whole):
                wrong.append(f"{first} to {second}")
    return wrong


def compiled() -> tuple[list[float], list[float]]:
    import torch.distributed._functional_collectives as functional

    def step(x: torch.Tensor) -> torch.Tensor:
        y = functional.all_reduce(x * 2, "sum", dist.group.WORLD)
        z = functional.all_gather_tensor(y[:4], 0, dist.group.WORLD)
        return functional.reduce_scatter_tensor(z, "avg", 0, dist.group.WORLD) + 1

    x = torch.arange(8.0, device=here())
    return torch.compile(step)(x).tolist(), step(x).tolist()


def compiled_ddp() -> tuple[list[float], list[float]]:
    wrapped = DistributedDataParallel(model())
    return train(wrapped, compute=torch.compile(wrapped)), alone()


def checkpoints(folder: str) -> bool:
    """Save a sharded model, load it into another one, and compare all values."""
    mesh = init_device_mesh(here().type, (dist.get_world_size(),))
    modules = []
    for change in (0.0, 1.0):
        module = model()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(change)
        fully_shard(module, mesh=mesh)
        modules.append(module)
    checkpoint.save(get_model_state_dict(modules[0]), checkpoint_id=folder)
    state = get_model_state_dict(modules[1])
    checkpoint.load(state, checkpoint_id=folder)
    set_model_state_dict(modules[1], state)
    for first, second in zip(modules[0].parameters(), modules[1].parameters(), strict=True):
        assert isinstance(first, DTensor)
        if not torch.equal(first.full_tensor(), second.full_tensor()):
            return False
    return True


def sync_batch_norm() -> tuple[list[float], list[float]]:
    """Normalise with torch's SyncBatchNorm, which needs a GPU, and over all rows."""
    torch.manual_seed(2)
    rows = torch.randn(8 * dist.get_world_size(), 6)
    plain = nn.BatchNorm1d(6).to(here())
    expected = plain(rows.to(here()))
    norm = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(nn.BatchNorm1d(6))).to(here())
    mine = norm(rows.chunk(dist.get_world_size())[dist.get_rank()].to(here()))
    right = expected.chunk(dist.get_world_size())[dist.get_rank()]
    return mine.flatten().tolist(), right.flatten().tolist()


def strategies(cases: list[str]) -> dict[str, tuple[list[float], list[float]]]:
    """Train with strategies of unisono.parallel through the example train.py; return the losses and those alone."""
    import train as example
    from language.model import Shape
    from language.text import Text
    from unisono.parallel import group_of

    text = Text()
    found = {}
    shape = Shape(len(text.characters))
    group = group_of(None)
    own = group.split(group.rank)
    expected: dict[str, list[float]] = {}
    for words in cases:
        base = "--strategy moe" if "moe" in words else "--strategy ddp"
        losses = []
        for each, members in ((words, group), (base, own)):
            if each == base and base in expected:
                losses.append(expected[base])
                continue
            options = example.parse_options(f"--device {here().type} --steps 4 --batch 16 --sample 5 {each}".split())
            example.fill_in(options, members)
            losses.append(example.train(options, members, text, shape, lambda *_: None).losses)
        expected[base] = losses[1]
        found[words] = (losses[0], losses[1])
    return found


def own_layers() -> list[str]:
    """Run the layers of unisono.parallel on a GPU against their whole counterparts; return what differs."""
    from unisono.parallel import SyncBatchNorm, group_of

    group, wrong = group_of(None), []
    torch.manual_seed(3)
    rows = torch.randn(4 * group.size, 6)
    norm = SyncBatchNorm(6, group).to(here())
    mine = norm(rows.chunk(group.size)[group.rank].to(here()))
    right = nn.BatchNorm1d(6)(rows).chunk(group.size)[group.rank]
    if not torch.allclose(mine.cpu(), right, atol=1e-4):
        wrong.append("SyncBatchNorm")
    return wrong


def temporary_folder() -> str:
    """Return a folder that all ranks know."""
    found = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(found, 0)
    return str(Path(found[0]))


def saved_and_loaded() -> bool:
    return checkpoints(temporary_folder())
