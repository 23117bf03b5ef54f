"""Invalid layers and calls raise on every rank; nothing hangs."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from worlds import run_groups  # noqa: E402

from unisono.errors import CommError, UsageError  # noqa: E402
from unisono.parallel import ColumnLinear, ParallelMLP, ParallelTransformer, RowLinear  # noqa: E402


def making(group, case):
    linear = nn.Linear(4, 6)
    if case == "seed":
        torch.manual_seed(group.rank)
    if group.rank == 1:
        linear.bias.data[3] += 1
    make = {
        "few": lambda: ColumnLinear(4, 2, group),
        "few inputs": lambda: RowLinear(2, 4, group),
        "blocks": lambda: ColumnLinear(4, 10, group, blocks=3),
        "sizes": lambda: ColumnLinear(4 + (group.rank == 2), 6, group),
        "kinds": lambda: (RowLinear if group.rank == 1 else ColumnLinear)(4, 6, group),
        "seed": lambda: ParallelMLP(4, 6, group),
        "weights": lambda: RowLinear.from_linear(linear, group),
        "group": lambda: ColumnLinear(4, 6, "all"),
    }
    with pytest.raises(UsageError) as caught:
        make[case]()
    return str(caught.value)


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ("few", "2 outputs on 3 ranks; expected at least one for every rank; hint: use a group of at most 2 ranks"),
        ("few inputs", "2 inputs on 3 ranks"),
        ("blocks", "10 outputs; expected a multiple of 3"),
        ("sizes", "ColumnLinear column: in_features=4 on rank 0, 5 on rank 2; expected the same"),
        ("kinds", "rank 0 creates ColumnLinear column, rank 1 creates RowLinear row; expected the same layer"),
        ("seed", "rank 1's initial weights differ from rank 0's"),
        ("weights", "RowLinear row: rank 1's initial weights differ from rank 0's"),
        ("group", "expected a unisono.Communicator"),
    ],
)
def test_an_invalid_layer_is_rejected_on_every_rank(case, text):
    assert all(text in found for found in run_groups(making, 3, case))


def running(group, case):
    """Return the error of a rank when rank 1 deviates."""
    torch.manual_seed(0)
    odd = group.rank == 1
    mlp = ParallelMLP(4, 6, group, activation=broken if odd and case == "forward" else None)
    x = torch.randn(3 if odd and case == "rows" else 2, 3 if odd and case == "width" else 4, requires_grad=True)
    try:
        y = mlp(x)
        if odd and case == "backward":
            y.register_hook(broken)
        y.sum().backward()
    except (CommError, UsageError, ZeroDivisionError) as error:
        group.comm.abort(
            f"{type(error).__name__}: {error}"
        )  # as leaving `with unisono.connect()` with an exception does
        return f"{type(error).__name__}: {error}"
    return "nothing"


def broken(x):
    return x * (1 / 0)


@pytest.mark.parametrize(
    ("case", "of_all", "of_the_others"),
    [
        ("rows", "MismatchError", "rank 1 called all_reduce(12 float32, op=sum"),
        ("width", "", "an input with 3 features; expected 4"),
        ("forward", "", "rank 1 aborted: ZeroDivisionError: division by zero"),
        ("backward", "", "rank 1 aborted: ZeroDivisionError: division by zero"),
    ],
)
def test_a_rank_that_deviates_is_an_error_on_all_ranks(case, of_all, of_the_others):
    found = run_groups(running, 3, case)
    assert "nothing" not in found, found
    assert any(of_all in text for text in found), found
    assert all(of_the_others in text for rank, text in enumerate(found) if rank != 1), found


def long_text(group):
    model = ParallelTransformer(13, 6, 3, 1, 4, group)
    with pytest.raises(UsageError) as caught:
        model(torch.zeros(1, 5, dtype=torch.int64))
    return str(caught.value)


def test_a_sequence_that_is_too_long_is_rejected():
    assert run_groups(long_text, 2) == ["ParallelTransformer: a sequence of 5 positions; expected at most 4"] * 2
