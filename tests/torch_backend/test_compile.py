"""torch.compile: compiled models train on Unisono, and compiled code can contain collectives."""

from __future__ import annotations

import os

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
import torch.distributed._functional_collectives as functional  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from training import parameters_of, small_model, train  # noqa: E402

from torch_ranks import assert_close, run_ranks  # noqa: E402

LIMIT_S = 240  # includes the time of a C++ compiler


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of compiled code, which all tests and ranks share."""
    return str(tmp_path_factory.mktemp("compiled"))


def compile_into(folder):
    os.environ |= {"TORCHINDUCTOR_CACHE_DIR": folder, "TORCHINDUCTOR_COMPILE_THREADS": "1"}


class Model(torch.nn.Module):
    """A user-defined module: torch.compile does not trace models that consist only of torch modules."""

    def __init__(self):
        super().__init__()
        self.layers = small_model()

    def forward(self, inputs):
        return torch.tanh(self.layers(inputs) * 2)


def train_compiled(folder, backend):
    compile_into(folder)
    found = []
    for compiled in (True, False):
        model = DistributedDataParallel(Model())
        called = torch.compile(model, backend=backend) if compiled else model
        train(called, torch.optim.SGD(model.parameters(), 0.1), dist.get_rank(), 3)
        found.append(parameters_of(model))
    return counters["stats"]["unique_graphs"], found


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.long)])
def test_a_compiled_model_trains_like_an_uncompiled_one(folder, backend):
    results = run_ranks(train_compiled, 2, str(folder), backend, limit_s=LIMIT_S)
    for graphs, (compiled, plain) in results:
        assert graphs > 0
        assert_close(compiled, plain, 16, "differs from the result without torch.compile")
        assert_close(compiled, results[0][1][0], 60, "differs from rank 0")


def collectives_inside(backend):
    @torch.compile(fullgraph=True, backend=backend)
    def shared_norm(tensor):
        total = functional.all_reduce((tensor * tensor).sum(0), "sum", dist.group.WORLD)
        everything = functional.all_gather_tensor(tensor, 0, dist.group.WORLD)
        part = functional.reduce_scatter_tensor(everything, "sum", 0, dist.group.WORLD)
        return part / total.sqrt()

    torch.manual_seed(dist.get_rank())
    tensor = torch.randn(4, 3)
    mine = (
        tensor * dist.get_world_size()
    )  # every rank gathers the same, so the sum is ``size`` times the value of each rank
    total = (tensor * tensor).sum(0)
    dist.all_reduce(total)
    return shared_norm(tensor), mine / total.sqrt()


@pytest.mark.parametrize("size", [2, pytest.param(4, marks=pytest.mark.long)])
def test_collectives_are_traced(size):
    for found, expected in run_ranks(collectives_inside, size, "aot_eager", limit_s=LIMIT_S):
        assert_close(found, expected, 18, "differs from the result without torch.compile")


def compiled_collectives_inside(folder):
    compile_into(folder)
    return collectives_inside("inductor")


@pytest.mark.long  # half a minute of C++ compiler; the tests below compile without it
def test_collectives_are_compiled(folder):
    for found, expected in run_ranks(compiled_collectives_inside, 2, str(folder), limit_s=LIMIT_S):
        assert_close(found, expected, 18, "differs from the result without torch.compile")
