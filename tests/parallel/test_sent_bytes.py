"""The log of a step computes the bytes that each rank sends; the engine counts them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from worlds import run_groups  # noqa: E402

from unisono.parallel import record  # noqa: E402

COUNT = 300_000  # divisible by 2, 3 and 5; long enough for algorithms that send the least


def send(group, collective, codec):
    """Return the bytes that the engine counted, and those of the log."""
    whole, part = torch.ones(COUNT), torch.ones(COUNT // group.size)
    arguments = {
        "all_reduce": (whole,), "all_gather": (whole, part), "reduce_scatter": (part, whole),
    }[collective]  # fmt: skip
    with record() as log:
        before = group.comm.sent_bytes
        getattr(group, collective)(*arguments, name="ones", phase="update", codec=codec)
        return group.comm.sent_bytes - before, log.sent_bytes


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter"])
@pytest.mark.parametrize("codec", [None, "fp16", "fp8_e4m3"])
def test_the_log_counts_the_bytes_that_the_engine_sends(collective, codec, size):
    for sent, logged in run_groups(send, size, collective, codec):
        assert logged == pytest.approx(sent, rel=0.02)
        assert (logged > 0) == (size > 1)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_the_log_counts_the_bytes_of_top_k_which_go_to_all_ranks(size):
    for sent, logged in run_groups(send, size, "all_reduce", "topk:0.01"):
        assert logged == sent == (size - 1) * (4 * 5 + 4 * COUNT // 100)
