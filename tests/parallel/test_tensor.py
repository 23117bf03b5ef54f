from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from worlds import KINDS, run_groups  # noqa: E402

from unisono.parallel import ColumnLinear, ParallelMLP, RowLinear, full_state_dict, record  # noqa: E402

ROWS = 4


def entries(log):
    return [(entry.collective, entry.name, entry.bytes, entry.phase) for entry in log]


def like_linear(group, kind, options, features):
    """Compare a split layer with nn.Linear of the same seed: weights, outputs, gradients of everything."""
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(5)
    whole = nn.Linear(*features, bias=options.get("bias", True))
    torch.manual_seed(5)
    layer = kind(*features, group, **options)
    x = torch.randn(2, ROWS, features[0], requires_grad=True)
    own = x.detach().clone().requires_grad_()
    given = own
    if kind is RowLinear and options.get("input_is_split", True):
        given = own[..., layer.split.mine.start : layer.split.mine.stop]
    with record() as log:
        y = layer(given)
        cut = kind is ColumnLinear and not options.get("gather_output")
        expected = layer.split.along(2).cut(whole(x)) if cut else whole(x)
        gradient = torch.randn(2, ROWS, features[1])
        y.backward(layer.split.along(2).cut(gradient) if cut else gradient)
    whole(x).backward(gradient)
    with torch.no_grad():
        assert torch.allclose(y, expected, rtol=0, atol=1e-14)
        if given is own:
            assert torch.allclose(own.grad, x.grad, rtol=0, atol=1e-14)
        for name, parameter in layer.named_parameters():
            split, all_of_it = layer.splits.get(name), dict(whole.named_parameters())[name]
            part, its_gradient = (each if split is None else split.cut(each) for each in (all_of_it, all_of_it.grad))
            assert torch.equal(parameter, part)
            assert torch.allclose(parameter.grad, its_gradient, rtol=0, atol=1e-13)
    return entries(log), layer.weight.shape


@pytest.mark.parametrize(("kind", "bias"), [*((kind, True) for kind in KINDS), ("comm", False)])
def test_a_column_linear_communicates_backward_only(kind, bias):
    found = run_groups(like_linear, 3, ColumnLinear, {"bias": bias}, (6, 10), kind=kind)
    input_bytes = 2 * ROWS * 6 * 8
    assert [log for log, _ in found] == [[("all_reduce", "gradient of column.input", input_bytes, "backward")]] * 3
    assert [shape for _, shape in found] == [(4, 6), (3, 6), (3, 6)]


@pytest.mark.parametrize(("kind", "bias"), [*((kind, True) for kind in KINDS), ("comm", False)])
def test_a_row_linear_communicates_forward_only(kind, bias):
    found = run_groups(like_linear, 3, RowLinear, {"bias": bias}, (10, 6), kind=kind)
    output_bytes = 2 * ROWS * 6 * 8
    assert [log for log, _ in found] == [[("all_reduce", "row.output", output_bytes, "forward")]] * 3
    assert [shape for _, shape in found] == [(6, 4), (6, 3), (6, 3)]


def test_a_column_linear_can_return_all_outputs():
    filled = 3 * 4 * 2 * ROWS * 8  # shares of 4, 3, 3 are padded to 4, 4, 4
    for log, _ in run_groups(like_linear, 3, ColumnLinear, {"gather_output": True}, (6, 10)):
        assert log == [
            ("all_gather", "column.output", filled, "forward"),
            ("all_reduce", "gradient of column.input", 2 * ROWS * 6 * 8, "backward"),
        ]


def test_a_row_linear_can_split_its_input_itself():
    for log, _ in run_groups(like_linear, 3, RowLinear, {"input_is_split": False}, (10, 6)):
        assert log == [
            ("all_reduce", "row.output", 2 * ROWS * 6 * 8, "forward"),
            ("all_gather", "gradient of row.input", 3 * 4 * 2 * ROWS * 8, "backward"),
        ]


def mlp_of(group, sequence_parallel):
    mlp = ParallelMLP(6, 10, group, sequence_parallel=sequence_parallel)
    with record() as log:
        mlp(torch.randn(2, ROWS, 6, requires_grad=True)).sum().backward()
    return entries(log)


def test_an_mlp_makes_one_all_reduce_in_each_direction():
    size = 2 * ROWS * 6 * 4
    expected = [
        ("all_reduce", "mlp.down.output", size, "forward"),
        ("all_reduce", "gradient of mlp.up.input", size, "backward"),
    ]
    assert run_groups(mlp_of, 3, False) == [expected] * 3


def test_a_sequence_parallel_mlp_gathers_and_scatters_instead():
    size = 3 * 2 * ROWS * 6 * 4  # ROWS are one rank's shard
    expected = [
        ("all_gather", "mlp.up.input", size, "forward"),
        ("reduce_scatter", "mlp.down.output", size, "forward"),
        ("all_reduce", "gradient of mlp.down.bias", 6 * 4, "backward"),
        ("all_gather", "gradient of mlp.down.output", size, "backward"),
        ("reduce_scatter", "gradient of mlp.up.input", size, "backward"),
    ]
    found = run_groups(mlp_of, 3, True)
    assert [sorted(each) for each in found] == [sorted(expected)] * 3
    assert [each[:2] for each in found] == [expected[:2]] * 3


def of_an_input_without_gradient(group):
    layer = ColumnLinear(4, 6, group)
    with record() as log:
        layer(torch.randn(2, 4)).sum().backward()
    return len(log), bool(layer.weight.grad.any())


def test_the_first_layer_of_a_model_does_not_sum_gradients_of_its_input():
    assert run_groups(of_an_input_without_gradient, 2) == [(0, True)] * 2


def from_and_to_linear(group):
    torch.manual_seed(group.rank)  # not needed when the whole layer is given
    linears = [nn.Linear(7, 5), nn.Linear(7, 5, bias=False)]
    for linear in linears:
        linear.load_state_dict({name: torch.arange(value.numel()).view(value.shape) * 1.0
                                for name, value in linear.state_dict().items()})  # fmt: skip
    for kind in (ColumnLinear, RowLinear):
        for linear in linears:
            linear.weight.requires_grad_(False)
            layer = kind.from_linear(linear, group)
            full = full_state_dict(layer)
            assert full.keys() == linear.state_dict().keys()
            assert all(torch.equal(full[name], value) for name, value in linear.state_dict().items())
            assert not layer.weight.requires_grad
            assert layer.weight.data_ptr() != linear.weight.data_ptr()
    return True


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_can_be_split_and_reassembled(kind):
    assert run_groups(from_and_to_linear, 3, kind=kind) == [True] * 3


def by_gradcheck(group):
    """All ranks perturb the same elements at the same time."""
    torch.set_default_dtype(torch.float64)
    mlp = ParallelMLP(3, 5, group)
    x = torch.randn(2, 3, requires_grad=True)
    return torch.autograd.gradcheck(mlp, (x,))


def test_gradients_match_finite_differences():
    assert run_groups(by_gradcheck, 3) == [True] * 3


def under_autocast(group):
    torch.manual_seed(0)
    mlp, x = ParallelMLP(8, 16, group), torch.randn(4, 8, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        y = mlp(x)
    y.float().sum().backward()
    return y.dtype, x.grad.dtype, mlp.up.weight.grad.dtype, bool((y.float() - mlp(x)).abs().max() < 0.02)


def test_autocast_gives_the_result_of_whole_layers():
    assert run_groups(under_autocast, 2) == [(torch.bfloat16, torch.float32, torch.float32, True)] * 2


def copied(group):
    mlp = ParallelMLP(4, 6, group)
    other = copy.deepcopy(mlp)
    x = torch.randn(2, 4)
    return torch.equal(mlp(x), other(x)), other.up.group is mlp.up.group, repr(mlp.up)


def test_a_copy_of_a_module_communicates_with_the_same_ranks():
    found = run_groups(copied, 3)
    expected = "ColumnLinear(4 of 4 inputs, 2 of 6 outputs)"
    assert found == [(True, True, expected)] * 3
