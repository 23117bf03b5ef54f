"""Codecs that are allowed, in groups on several hosts, here pretended ones."""

from __future__ import annotations

import os

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402
from unisono import Options  # noqa: E402
from unisono.parallel import DataParallel  # noqa: E402
from unisono.torch_backend import codec_hook, store_rendezvous  # noqa: E402

pytestmark = pytest.mark.usefixtures("fork_server")


def average_with_allowed_codec(hosts, options):
    """Average gradients of DDP with an allowed codec; return the rates, the error, and the codec of DataParallel."""
    rank = int(os.environ["RANK"])
    here = store_rendezvous.host_info()
    store_rendezvous.host_info = lambda: {**here, "host": hosts[rank], "processes": f"pid:[{hosts[rank]}]"}
    dist.init_process_group("unisono", pg_options=options)
    rates = [group.communicator.link_rate for group in (dist.group.WORLD, dist.new_group())]
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 64, bias=False)
    inputs = [torch.randn(8, 64) for _ in hosts]
    ours = DataParallel(torch.nn.Linear(64, 64, bias=False), codec="auto:bf16", broadcast_parameters=True)
    wrapped = DistributedDataParallel(model)
    wrapped.register_comm_hook(None, codec_hook("auto:bf16", error_feedback=True))
    wrapped(inputs[rank]).sum().backward()
    exact = torch.stack([each.sum(0).expand(64, 64) for each in inputs]).mean(0)
    error = ((model.weight.grad - exact).abs().max() / exact.abs().max()).item()
    return rates, error, str(ours.buckets[0].codec)


def test_an_allowed_codec_is_used_where_the_links_are_slow():
    for rates, error, codec in run_ranks(average_with_allowed_codec, 2, "ab", Options(link_rate=1e7), init=False):
        assert rates == [1e7, 1e7]
        assert 1e-5 < error < 0.02
        assert codec == "bf16"


def test_an_allowed_codec_is_not_used_where_the_links_are_fast():
    for _, error, codec in run_ranks(average_with_allowed_codec, 2, "ab", Options(link_rate=1e11), init=False):
        assert error < 1e-6
        assert codec == "None"
