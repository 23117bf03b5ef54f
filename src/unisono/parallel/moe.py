"""A mixture of experts: every rank has different rows and experts; rows are sent to the experts they choose.

::

    forward                                              backward

    x (own rows) ── router ──> choices, weights          router <── gradient of the weights
      │     all-gather of the expert counts (small)
      ├── dispatch: all-to-all of rows ──> experts       x <── all-to-all of gradients ──┐
      │                                      │                                       experts
    y = sum of weight * result <── combine: all-to-all   gradient of y ── all-to-all ──┘

The backward of an all-to-all is the all-to-all with sent and received rows exchanged. The number of rows that go to
each expert changes in every step, so before the rows every rank sends all others the number of its rows that chose
each expert: an all-gather of size * experts * k numbers. To receive the rows, an all-to-all would be enough (to each
rank the counts for its experts). But with the all-gather, every rank knows all counts, and an expert's capacity can
refer to the whole batch (see routing.py): the result does not depend on the number of ranks.

**Gradients.** An expert gets rows of all ranks, and with them the gradients of all ranks' losses, summed. The router
is on every rank and gets the gradients of this rank's loss alone; ``DataParallel`` averages them. For both to belong
to one objective, the mean of the ranks' losses, the gradients of experts are divided by the number of ranks. With
``losses="sum"`` the objective is the sum of the ranks' losses, and the router's gradients must be summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from unisono.errors import UsageError
from unisono.parallel.agreement import require_same
from unisono.parallel.functions import gradient_of, pair
from unisono.parallel.group import group_of
from unisono.parallel.layer_messages import (
    WRONG_CAPACITY_FACTOR,
    WRONG_CHOICE,
    WRONG_EXPERT_OUTPUT,
    WRONG_INPUT_WIDTH,
    WRONG_TOP_K,
)
from unisono.parallel.routing import ExpertAssignment, assign_experts, balance_loss, choose, expert_counts
from unisono.parallel.split import Split


class Mixed(NamedTuple):
    """The result of a mixture of experts.

    ``output``: the weighted sum of the results of the experts, in the shape of the input.
    ``balance_loss``: a loss that is smallest if all experts are used equally; add it, multiplied by about 0.01.
    ``dropped``: the number of choices of this rank's rows beyond the capacity of their expert.
    ``load``: (experts,), the number of rows of all ranks that chose each expert.
    """

    output: Tensor
    balance_loss: Tensor
    dropped: int
    load: Tensor


class MixtureOfExperts(nn.Module):
    """A layer that sends each row to ``top_k`` of the experts of all ranks.

    ``features``: the width of a row.
    ``experts``: the experts of this rank: modules that map (rows, features) to (rows, features), for zero rows as
    well. Ranks may have different numbers of them.
    ``group``: the ranks that share the experts. The router is the same on every rank: create the layer after the same
    ``torch.manual_seed``.
    ``top_k``: the number of experts for each row.
    ``capacity_factor``: an expert accepts at most this multiple of its fair share of the rows of all ranks; a choice
    beyond that is dropped and adds zero to the output. None: no limit.
    ``balance_over``: "group": the balance loss is that of the rows of all ranks, so one rank may use a single expert;
    "rank": that of this rank's rows. Neither communicates: over the group, each rank returns its part, and the mean
    (or sum, see ``losses``) over the ranks is the loss of the whole batch.
    ``losses``: "mean" or "sum": how the losses of the ranks form the objective.
    ``name``: its name in the log of ``record()``.
    ``device``, ``dtype``: of the router.
    """

    def __init__(
        self, features: int, experts: Sequence[nn.Module], group: Any, *, top_k: int = 2,
        capacity_factor: float | None = None, balance_over: str = "group", losses: str = "mean", name: str = "moe",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.group, self.name = group_of(group), name
        self.features, self.top_k, self.capacity_factor = features, top_k, capacity_factor
        self.balance_over, self.losses = balance_over, losses
        counts = self.group.all_gather_object(len(experts))
        self.starts = list(accumulate(counts, initial=0))  # rank r has experts starts[r] to starts[r + 1] - 1
        self.count = self.starts[-1]
        self._check_settings()
        first = self.starts[self.group.rank]
        self.experts = nn.ModuleDict({str(first + number): expert for number, expert in enumerate(experts)})
        for parameter in self.experts.parameters():
            parameter.is_expert = True
        self.different = {"experts": self.group}  # full_state_dict() reads it
        self.router = nn.Linear(features, self.count, bias=False, device=device, dtype=dtype)
        settings = {"features": features, "top_k": top_k, "capacity_factor": capacity_factor, "losses": losses}
        require_same(self.group, f"MixtureOfExperts {name}", settings, [self.router.weight])

    @classmethod
    def of(cls, features: int, count: int, make: Callable[[], nn.Module], group: Any, **options: Any) -> Any:
        """Create ``count`` experts, the same on every rank, and keep this rank's share of them.

        ``make``: a function that returns a new expert. ``features``, ``group``, ``options``: as in the class.
        """
        group = group_of(group)
        mine = Split(group, 0, count).mine
        created = ((number, make()) for number in range(count))
        return cls(features, [expert for number, expert in created if number in mine], group, **options)

    def forward(self, x: Tensor) -> Mixed:
        """Send the rows to their experts; return the weighted sum of the results. All ranks call this.

        ``x``: this rank's rows, (..., features).
        """
        if x.shape[-1] != self.features:
            sizes = {"found": x.shape[-1], "expected": self.features}
            raise UsageError(WRONG_INPUT_WIDTH(location=self._location(), **sizes))
        rows = x.flatten(0, -2)
        probabilities, experts, weights = choose(self.router(rows), self.top_k)
        own = expert_counts(experts, self.count)
        of_all = own.new_empty((self.group.size * self.count, self.top_k))
        self.group.all_gather(of_all, own, name=f"{self.name}.expert_counts", phase="forward")
        assignment = assign_experts(
            experts, of_all.view(self.group.size, *own.shape), self.group.rank, self.capacity_factor
        )
        results = self._at_experts(rows[assignment.rows], assignment)
        chosen = weights[assignment.rows, assignment.choices].unsqueeze(-1).to(rows.dtype)
        output = torch.zeros_like(rows).index_add(0, assignment.rows, (results * chosen).to(rows.dtype))
        return Mixed(
            output.view(x.shape), self._balance_loss(probabilities, own, assignment),
            experts.numel() - len(assignment.rows), assignment.load,
        )  # fmt: skip

    def expert_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of this rank's experts, which must not be averaged over ranks."""
        return list(self.experts.parameters())

    def _at_experts(self, rows: Tensor, assignment: ExpertAssignment) -> Tensor:
        """Send rows, sorted by expert, to the experts; return the results in the same order."""
        by_rank = [assignment.sent[first:last].sum(dim=0).tolist() for first, last in pairwise(self.starts)]
        in_rows = [amounts[self.group.rank] for amounts in by_rank]
        out_rows = by_rank[self.group.rank]
        # Experts get the gradients of all ranks' losses: see the module's docstring.
        scale = self.group.size if self.losses == "mean" else 1
        arrived = self._exchange(rows, in_rows, out_rows, scale, "dispatch")
        mine = assignment.sent[
            self.starts[self.group.rank] : self.starts[self.group.rank + 1]
        ]  # (own experts, ranks)
        owner = torch.arange(len(mine)).repeat(self.group.size).repeat_interleave(mine.t().flatten())
        order = owner.argsort(stable=True).to(rows.device)
        parts = arrived[order].split(mine.sum(dim=1).tolist())
        done = [self._apply_expert(number, part) for number, part in zip(self.experts, parts, strict=True)]
        results = torch.cat(done)[order.argsort()] if done else arrived
        return self._exchange(results, out_rows, in_rows, 1 / scale, "combine")

    def _apply_expert(self, number: str, rows: Tensor) -> Tensor:
        result = self.experts[number](rows)  # also for zero rows, so that it has a gradient in every step
        if result.shape != rows.shape:
            shapes = {"found": tuple(result.shape), "expected": tuple(rows.shape)}
            raise UsageError(WRONG_EXPERT_OUTPUT(location=self._location(), number=number, **shapes))
        return result

    def _exchange(self, rows: Tensor, in_rows: list[int], out_rows: list[int], scale: float, name: str) -> Tensor:
        def move(rows: Tensor, in_rows: list[int], out_rows: list[int], name: str, phase: str) -> Tensor:
            out = rows.new_empty((sum(out_rows), rows.shape[1]))
            rows = rows.detach().contiguous()
            self.group.all_to_all(out, rows, out_rows=out_rows, in_rows=in_rows, name=name, phase=phase)
            return out

        name = f"{self.name}.{name}"
        return pair(
            lambda rows: move(rows, in_rows, out_rows, name, "forward"),
            lambda gradient: move(gradient, out_rows, in_rows, gradient_of(name), "backward").mul_(scale),
            rows,
        )

    def _balance_loss(self, probabilities: Tensor, own: Tensor, assignment: ExpertAssignment) -> Tensor:
        if self.balance_over == "rank":
            return balance_loss(probabilities, own.sum(dim=1), len(probabilities), self.top_k)
        part = balance_loss(probabilities, assignment.load, assignment.total, self.top_k)
        return part * self.group.size if self.losses == "mean" else part

    def _location(self) -> str:
        return f"MixtureOfExperts {self.name}, rank {self.group.rank}"

    def _check_settings(self) -> None:
        location = self._location()
        if not 1 <= self.top_k <= self.count:
            raise UsageError(WRONG_TOP_K(location=location, top_k=self.top_k, count=self.count))
        if self.capacity_factor is not None and not self.capacity_factor > 0:
            raise UsageError(WRONG_CAPACITY_FACTOR(location=location, factor=self.capacity_factor))
        for option, value, allowed in (
            ("balance_over", self.balance_over, ("group", "rank")), ("losses", self.losses, ("mean", "sum")),
        ):  # fmt: skip
            if value not in allowed:
                first, second = allowed
                raise UsageError(
                    WRONG_CHOICE(location=location, option=option, found=value, first=first, second=second)
                )


def is_expert(parameter: Any) -> bool:
    """Return whether a ``parameter`` belongs to an expert; ``DataParallel(local=is_expert)`` does not average it."""
    return getattr(parameter, "is_expert", False)
