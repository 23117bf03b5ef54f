from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from naive_mixture import NaiveMixture  # noqa: E402
from torch import nn  # noqa: E402
from worlds import KINDS, run_groups  # noqa: E402

from unisono.parallel import (  # noqa: E402
    DataParallel,
    MixtureOfExperts,
    full_state_dict,
    is_expert,
    load_full_state_dict,
    record,
)

WIDTH = 5
FEW = {1: [9], 2: [6, 3], 3: [4, 0, 5], 4: [3, 1, 0, 5], 5: [2, 2, 2, 2, 1]}  # rows of each rank: 9 in all


def expert():
    return nn.Sequential(nn.Linear(WIDTH, 7), nn.Tanh(), nn.Linear(7, WIDTH))


def make(group, count, **options):
    torch.manual_seed(3)
    return MixtureOfExperts.of(WIDTH, count, expert, group, **options)


def make_naive(count, top_k, capacity_factor):
    """Make the same model from the same seed: first the experts, then the router."""
    torch.manual_seed(3)
    experts = [expert() for _ in range(count)]
    return NaiveMixture(nn.Linear(WIDTH, count, bias=False), experts, top_k, capacity_factor)


def rows_of_all(step, skewed):
    """Return the rows of all ranks; ``skewed``: so similar that the router sends all of them to the same experts."""
    x = torch.randn(9, WIDTH, generator=torch.Generator().manual_seed(step))
    return x * 0.1 + 3 if skewed else x


def differences_from_one_process(group, count, top_k, capacity_factor, skewed, losses, steps):
    """Train; return the largest differences from one process, and the numbers of dropped choices."""
    torch.set_default_dtype(torch.float64)
    layer = make(group, count, top_k=top_k, capacity_factor=capacity_factor, losses=losses)
    naive = make_naive(count, top_k, capacity_factor)
    optimizers = [torch.optim.SGD(model.parameters(), 0.1, momentum=0.9) for model in (layer, naive)]
    mean = group.size if losses == "mean" else 1
    worst, dropped = dict.fromkeys(("output", "balance", "input", "router", "experts", "parameters"), 0.0), [0, 0]

    def compare(what, found, expected):
        if found.numel():
            worst[what] = max(worst[what], float((found - expected).abs().max()))

    for step in range(steps):
        everything = rows_of_all(step, skewed)
        own = everything.split(FEW[group.size])[group.rank].clone().requires_grad_()
        everything.requires_grad_()
        for optimizer in optimizers:
            optimizer.zero_grad()
        found = layer(own)
        (found.output.square().sum() + 0.5 * found.balance_loss).backward()
        group.all_reduce(
            layer.router.weight.grad, op="avg" if losses == "mean" else "sum", name="r", phase="backward"
        )
        output, balance, missed = naive(everything)
        objective = output.square().sum() / mean + 0.5 * balance
        objective.backward()
        for parameter in naive.parameters():  # an expert that no row chose; momentum needs a zero
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        compare("output", found.output, output.split(FEW[group.size])[group.rank])
        compare("input", own.grad / mean, everything.grad.split(FEW[group.size])[group.rank])
        compare("router", layer.router.weight.grad, naive.router.weight.grad)
        for number, each in layer.experts.items():
            for a, b in zip(each.parameters(), naive.experts[int(number)].parameters(), strict=True):
                compare("experts", a.grad, b.grad)
        both = torch.tensor([found.balance_loss.item() / mean, found.dropped])
        group.all_reduce(both, name="sums", phase="forward")
        compare("balance", both[0], balance)
        dropped[0], dropped[1] = dropped[0] + int(both[1]), dropped[1] + missed
        for optimizer in optimizers:
            optimizer.step()
    full, expected = full_state_dict(layer), naive.state_dict()
    assert full.keys() == expected.keys()
    for name, value in expected.items():
        compare("parameters", full[name], value)
    return worst, dropped


def check(found, drops):
    for worst, (dropped, expected) in found:
        assert all(value < 1e-10 for value in worst.values()), worst
        assert dropped == expected
        assert (dropped > 0) == drops


@pytest.mark.parametrize(
    ("size", "capacity_factor"),
    [
        (1, 1.25), (2, 1.25), (3, None), (3, 1.25),
        pytest.param(2, None, marks=pytest.mark.slow), pytest.param(3, 0.5, marks=pytest.mark.slow),
        pytest.param(4, 1.25, marks=pytest.mark.slow), pytest.param(5, None, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_a_mixture_matches_one_process_with_all_rows_and_experts(size, capacity_factor):
    found = run_groups(differences_from_one_process, size, 6, 2, capacity_factor, False, "mean", 20)
    check(found, drops=capacity_factor is not None)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_mixture_is_the_same_on_torch_process_groups(kind):
    check(run_groups(differences_from_one_process, 3, 5, 2, 1.25, False, "mean", 3, kind=kind), drops=True)


@pytest.mark.parametrize(("top_k", "losses"), [(1, "mean"), (3, "sum"), (5, "sum")])
def test_every_number_of_choices_per_row_works(top_k, losses):
    check(run_groups(differences_from_one_process, 3, 5, top_k, None, False, losses, 3), drops=False)


def test_experts_without_rows_and_overfull_experts_work():
    check(run_groups(differences_from_one_process, 3, 7, 1, 1.0, True, "mean", 3), drops=True)


def empty_batch(group):
    layer = make(group, 4)
    found = layer(torch.zeros(0, WIDTH, requires_grad=True))
    (found.output.sum() + found.balance_loss).backward()
    gradients = [parameter.grad for parameter in layer.parameters()]
    return found.output.shape, found.dropped, found.load.tolist(), all(not each.any() for each in gradients)


@pytest.mark.parametrize("kind", ["comm", "gloo"])
def test_an_empty_batch_works(kind):
    assert run_groups(empty_batch, 3, kind=kind) == [((0, WIDTH), 0, [0] * 4, True)] * 3


def collectives_of_a_step(group, rows):
    layer = make(group, 4, top_k=2, capacity_factor=None)
    x = torch.randn(2, rows, WIDTH, requires_grad=True)
    with record() as log:
        found = layer(x)
        found.output.sum().backward()
    received = log.entries[2].bytes // (4 * WIDTH)  # the combined rows are those that were received
    total = torch.tensor([received])
    group.all_reduce(total, name="total", phase="forward")
    lines = [(entry.collective, entry.name, entry.bytes, entry.phase) for entry in log]
    return lines, received, int(total), found.load.sum().item()


@pytest.mark.parametrize("rows", [3, 0])
def test_a_step_makes_two_all_to_alls_in_each_direction_after_one_small_all_gather(rows):
    size, k, experts = 3, 2, 4
    for lines, received, total, load in run_groups(collectives_of_a_step, size, rows):
        sent = 2 * rows * k * WIDTH * 4
        assert lines == [
            ("all_gather", "moe.expert_counts", size * experts * k * 8, "forward"),
            ("all_to_all", "moe.dispatch", sent, "forward"),
            ("all_to_all", "moe.combine", received * WIDTH * 4, "forward"),
            ("all_to_all", "gradient of moe.combine", sent, "backward"),
            ("all_to_all", "gradient of moe.dispatch", received * WIDTH * 4, "backward"),
        ]
        assert total == load == size * 2 * rows * k


def with_data_parallel_router(group):
    """Average the router's gradients with DataParallel; each rank keeps the gradients of its experts."""
    layer = make(group, 3)
    layer.router = DataParallel(layer.router, group)
    torch.manual_seed(group.rank)
    layer(torch.randn(4, WIDTH)).output.square().sum().backward()
    return layer.router.module.weight.grad.tolist(), layer.expert_parameters()[0].grad.tolist()


def test_the_router_can_be_data_parallel_while_experts_are_not():
    routers, experts = zip(*run_groups(with_data_parallel_router, 3), strict=True)
    assert routers[0] == routers[1] == routers[2]
    assert len({str(gradient) for gradient in experts}) == 3


def balance_of(group, over):
    layer = make(group, 4, top_k=1, balance_over=over)
    with torch.no_grad():  # feature r selects expert r: rank r uses only expert r
        layer.router.weight.copy_(torch.eye(4, WIDTH) * 50)
    x = torch.zeros(6, WIDTH)
    x[:, group.rank] = 1.0
    with record() as log:
        found = layer(x)
    return float(found.balance_loss), [entry.collective for entry in log]


@pytest.mark.parametrize(("over", "expected"), [("rank", 4.0), ("group", 1.0)])
def test_ranks_that_each_use_one_expert_are_balanced_over_the_group_but_not_per_rank(over, expected):
    for loss, collectives in run_groups(balance_of, 4, over):
        assert loss == pytest.approx(expected)
        assert collectives == ["all_gather", "all_to_all", "all_to_all"]  # neither costs communication


def there_and_back(group):
    layer, other = make(group, 5), make(group, 5)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    load_full_state_dict(other, full_state_dict(layer))
    same = all(torch.equal(a, b) for a, b in zip(layer.parameters(), other.parameters(), strict=True))
    marked = [name for name, parameter in layer.named_parameters() if is_expert(parameter)]
    return same, sorted(full_state_dict(layer)), marked, len(layer.expert_parameters())


def test_the_full_state_has_the_experts_of_all_ranks():
    names = [
        f"experts.{number}.{layer}.{kind}" for number in range(5) for layer in (0, 2) for kind in ("bias", "weight")
    ]
    found = run_groups(there_and_back, 3)
    assert [same for same, *_ in found] == [True] * 3
    assert all(state == [*names, "router.weight"] for _, state, *_ in found)
    assert [marked == 4 * held for (*_, marked), held in zip(found, (2, 2, 1), strict=True)] == [True] * 3
    assert all("router" not in name for *_, marked, _ in found for name in marked)


def different_numbers_of_experts(group):
    """Run a layer of which rank r holds r experts."""
    layer = MixtureOfExperts(WIDTH, [nn.Identity() for _ in range(group.rank)], group, top_k=2)
    x = torch.randn(4, WIDTH)
    return list(layer.experts), bool(torch.allclose(layer(x).output, x))


def test_ranks_may_hold_different_numbers_of_experts():
    assert run_groups(different_numbers_of_experts, 3) == [([], True), (["0"], True), (["1", "2"], True)]


def by_gradcheck(group):
    """Perturb the same rows on all ranks at once: their losses are summed, and all ranks use all experts."""
    torch.set_default_dtype(torch.float64)
    layer = make(group, 3, top_k=2, losses="sum")
    x = torch.randn(4, WIDTH, requires_grad=True)
    return torch.autograd.gradcheck(lambda rows: layer(rows).output, (x,))


def test_gradients_of_the_rows_match_finite_differences():
    assert run_groups(by_gradcheck, 3) == [True] * 3


def error_of(group, case):
    try:
        if case == "top_k too large":
            make(group, 2, top_k=3)
        elif case == "no capacity":
            make(group, 2, capacity_factor=0.0)
        elif case == "losses":
            make(group, 2, losses="max")
        elif case == "different seed":
            torch.manual_seed(group.rank)
            MixtureOfExperts(WIDTH, [expert()], group)
        elif case == "different top_k":
            make(group, 3, top_k=1 + (group.rank == 1))
        elif case == "too few features":
            make(group, 3)(torch.zeros(2, WIDTH - 1))
        elif case == "output shape":
            MixtureOfExperts(WIDTH, [nn.Linear(WIDTH, 2)], group, top_k=1)(torch.zeros(2, WIDTH))
        elif case == "exception in an expert":
            layer = make(group, 3)
            if group.rank == 1:
                layer.experts["1"].forward = lambda rows: 1 / 0
            layer(torch.randn(4, WIDTH))
    except Exception as error:
        group.comm.abort(str(error))
        return f"{type(error).__name__}: {error}"
    return "nothing"


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ("top_k too large", "UsageError: MixtureOfExperts moe, rank 2: top_k=3; expected 1 to 2"),
        ("no capacity", "capacity_factor=0.0; expected None or a number above 0"),
        ("losses", "losses='max'; expected 'mean' or 'sum'"),
        ("different seed", "rank 1's initial weights differ from rank 0's"),
        ("different top_k", "top_k=1 on rank 0, 2 on rank 1"),
        ("too few features", "an input with 4 features; expected 5"),
        ("output shape", "2) for rows of shape ("),
        ("exception in an expert", "Aborted: rank 1 aborted: division by zero"),
    ],
)
def test_invalid_calls_are_rejected(case, text):
    found = run_groups(error_of, 3, case)
    assert text in found[2], found
    assert "nothing" not in found
