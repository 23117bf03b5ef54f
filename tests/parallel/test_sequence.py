from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from worlds import KINDS, run_groups  # noqa: E402

from unisono.errors import CommError, UsageError  # noqa: E402
from unisono.parallel import ColumnLinear, ParallelBlock, SequenceLayerNorm, Split, record  # noqa: E402

BATCH, WIDTH = 2, 6


def norm_of_shards(group, length):
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    x, gradient = torch.randn(BATCH, length, WIDTH), torch.randn(BATCH, length, WIDTH)
    split = Split(group, 1, length)
    whole, norm = nn.LayerNorm(WIDTH), SequenceLayerNorm(WIDTH, group)
    y = norm(split.cut(x))
    with record() as log:
        y.backward(split.cut(gradient))
    whole(x).backward(gradient)
    assert torch.allclose(y, split.cut(whole(x)), rtol=0, atol=1e-14)
    for a, b in zip(norm.parameters(), whole.parameters(), strict=True):
        assert torch.allclose(a.grad, b.grad, rtol=0, atol=1e-13)
    return [(entry.collective, entry.name, entry.bytes, entry.phase) for entry in log]


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradients_of_a_norm_are_summed_over_the_shards_in_one_call(kind):
    expected = [("all_reduce", "gradient of norm (parameters)", 2 * WIDTH * 8, "backward")]
    assert run_groups(norm_of_shards, 3, 7, kind=kind) == [expected] * 3


def test_a_sequence_may_be_shorter_than_the_group():
    run_groups(norm_of_shards, 5, 3)


def norms_with_less(group):
    x = torch.randn(2, 3, WIDTH)
    logs = []
    for options in ({"elementwise_affine": False}, {"bias": False}):
        norm = SequenceLayerNorm(WIDTH, group, **options)
        with record() as log:
            norm(x.clone().requires_grad_()).sum().backward()
        logs.append(sum(entry.bytes for entry in log))
    return logs


def test_a_norm_without_parameters_communicates_nothing():
    assert run_groups(norms_with_less, 2) == [[0, WIDTH * 4]] * 2


def block_of(group, sequence_parallel, length):
    block = ParallelBlock(WIDTH, 3, group, sequence_parallel=sequence_parallel)
    x = torch.randn(BATCH, length, WIDTH)
    x = (Split(group, 1, length).cut(x) if sequence_parallel else x).requires_grad_()
    with record() as log:
        block(x, length).sum().backward()
    return [(entry.collective, entry.bytes, entry.phase) for entry in log]


def test_a_sequence_parallel_block_scatters_and_gathers_instead_of_reducing():
    size = BATCH * 6 * WIDTH * 4
    for plain, split in zip(run_groups(block_of, 3, False, 6), run_groups(block_of, 3, True, 6), strict=True):
        assert plain == [("all_reduce", size, phase) for phase in ("forward", "forward", "backward", "backward")]
        large = [entry for entry in split if entry[1] == size]
        pair = [("all_gather", size), ("reduce_scatter", size)]
        assert large == [(*each, phase) for phase in ("forward", "backward") for each in pair * 2]
        small = [entry for entry in split if entry[1] != size]  # two norms and the biases of two rows
        assert sorted(small) == sorted(("all_reduce", n * WIDTH * 4, "backward") for n in (1, 1, 2, 2))


def wrong_length(group):
    layer, shard = ColumnLinear(WIDTH, 6, group, sequence_parallel=True), torch.zeros(BATCH, 3, WIDTH)
    with pytest.raises(UsageError if group.rank == 0 else CommError) as caught:
        layer(shard, length=7)
    return str(caught.value)


def test_a_shard_of_the_wrong_length_is_rejected():
    found = run_groups(wrong_length, 2)  # 4 and 3: rank 0 raises, and rank 1 is notified
    assert "rank 0 has closed its communicator" in found[1]
    assert "a shard of 3 positions; expected 4, this rank's share of a sequence of 7 on 2 ranks" in found[0]
