"""DDP trains with gradients that a codec compresses."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from training import parameters_of, small_model, train

from torch_ranks import run_ranks
from unisono.errors import UsageError
from unisono.torch_backend import codec_hook

STEPS = 8


def train_with_codec(codec, error_feedback=False, state=False):
    model = DistributedDataParallel(small_model(), bucket_cap_mb=0.001)  # several buckets
    if codec is not None:
        group = dist.new_group(backend="unisono") if state else None
        model.register_comm_hook(group, codec_hook(codec, error_feedback=error_feedback))
    losses = train(model, torch.optim.SGD(model.parameters(), 0.05), dist.get_rank(), STEPS)
    return losses, parameters_of(model)


def assert_trains_alike(size, allowed, *settings):
    plain = run_ranks(train_with_codec, size, None)
    ours = run_ranks(train_with_codec, size, *settings)
    (first_losses, first), *others = ours
    for _, parameters in others:
        for mine, theirs in zip(first, parameters, strict=True):
            assert torch.equal(mine, theirs), "parameters differ between ranks"
    assert any(not torch.equal(a, b) for a, b in zip(first, plain[0][1], strict=True)), "nothing was rounded"
    assert all(
        abs(loss - exact) <= allowed * abs(exact) for loss, exact in zip(first_losses, plain[0][0], strict=True)
    )


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(("codec", "allowed"), [("bf16", 0.02), ("fp8_e4m3", 0.05), ("int8", 0.05)])
def test_ddp_trains_with_compressed_gradients(size, codec, allowed):
    assert_trains_alike(size, allowed, codec)


@pytest.mark.parametrize("size", [2, 3])
def test_ddp_trains_with_top_k_and_error_feedback(size):
    assert_trains_alike(size, 0.3, "topk:0.25", True)


def test_the_state_of_the_hook_is_the_group():
    assert_trains_alike(3, 0.05, "fp8_e4m3", True, True)


def test_on_one_host_an_allowed_codec_is_not_used():
    plain = run_ranks(train_with_codec, 2, None)
    allowed = run_ranks(train_with_codec, 2, "auto:fp8_e4m3", True)
    for (losses, parameters), (found_losses, found) in zip(plain, allowed, strict=True):
        torch.testing.assert_close(found_losses, losses, rtol=0, atol=0)
        assert all(torch.equal(a, b) for a, b in zip(parameters, found, strict=True))


def backward_with(dtype, codec):
    model = DistributedDataParallel(torch.nn.Linear(4, 4).to(dtype))
    model.register_comm_hook(None, codec_hook(codec))
    with pytest.raises(UsageError) as caught:
        model(torch.ones(2, 4, dtype=dtype)).sum().backward()
    return str(caught.value)


def test_gradients_of_an_unsupported_dtype_are_rejected():
    for text in run_ranks(backward_with, 2, torch.float64, "fp16"):
        assert "all_reduce: codec=fp16 with an array of float64; codecs are for float32" in text


def test_a_group_of_a_different_backend_is_rejected():
    for text in run_ranks(backward_with, 2, torch.float32, "fp16", backend="gloo"):
        assert "codec_hook('fp16'): the group's backend is gloo; expected unisono" in text


def test_an_unknown_codec_is_rejected_when_the_hook_is_created():
    with pytest.raises(UsageError, match="there is no codec 'fp9'"):
        codec_hook("fp9")
