from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from worlds import KINDS, run_groups  # noqa: E402

from unisono.errors import UsageError  # noqa: E402
from unisono.parallel import group_of, record  # noqa: E402


def every_call(group):
    rank, size = group.rank, group.size
    with record() as log:
        summed = torch.full((3,), float(rank + 1))
        group.all_reduce(summed, name="a", phase="backward", async_op=True).wait()
        averaged = torch.full((3,), float(rank))
        group.all_reduce(averaged, op="avg", name="b", phase="backward", async_op=True).wait()
        gathered = torch.empty(2 * size)
        group.all_gather(gathered, torch.full((2,), float(rank)), name="c", phase="forward")
        part = torch.empty(2)
        group.reduce_scatter(part, torch.arange(2.0 * size), op="avg", name="d", phase="backward")
        rows = [rank + 1] * size
        exchanged = torch.empty(sum(range(1, size + 1)), 2)
        group.all_to_all(
            exchanged, torch.full((sum(rows), 2), float(rank)), out_rows=list(range(1, size + 1)), in_rows=rows,
            name="e", phase="forward",
        )  # fmt: skip
        received = torch.full((2,), float(rank))
        group.broadcast(received, root=size - 1, name="f", phase="start")
    everyone = group.all_gather_object({"rank": rank})
    half = group.split(rank % 2, axis="dp")
    log_of_all = [(entry.collective, entry.name, entry.bytes, entry.phase, entry.size) for entry in log]
    return summed, averaged, gathered, part, exchanged, received, everyone, (half.rank, half.size), log_of_all


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 3])
def test_every_kind_of_group_returns_the_same_results(kind, size):
    for rank, found in enumerate(run_groups(every_call, size, kind=kind)):
        summed, averaged, gathered, part, exchanged, received, everyone, half, log = found
        assert summed.tolist() == [size * (size + 1) / 2] * 3
        assert averaged.tolist() == [(size - 1) / 2] * 3
        assert gathered.tolist() == [float(r) for r in range(size) for _ in range(2)]
        assert part.tolist() == [2.0 * rank, 2.0 * rank + 1]
        assert exchanged[:, 0].tolist() == [float(r) for r in range(size) for _ in range(r + 1)]
        assert received.tolist() == [size - 1.0] * 2
        assert everyone == [{"rank": r} for r in range(size)]
        assert half == (rank // 2, (size + 1) // 2 if rank % 2 == 0 else size // 2)
        assert log == [
            ("all_reduce", "a", 12, "backward", size), ("all_reduce", "b", 12, "backward", size),
            ("all_gather", "c", 8 * size, "forward", size), ("reduce_scatter", "d", 8 * size, "backward", size),
            ("all_to_all", "e", 8 * (rank + 1) * size, "forward", size), ("broadcast", "f", 8, "start", size),
        ]  # fmt: skip


def test_an_argument_that_is_not_a_group_is_rejected():
    with pytest.raises(UsageError, match=r"expected a unisono\.Communicator"):
        group_of(3)
    with pytest.raises(UsageError, match="init_process_group"):
        group_of(None)
