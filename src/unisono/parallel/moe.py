"""A mixture of experts: every rank has other rows and other experts; rows travel to the experts they choose.

::

    forward                                              backward

    x (own rows) ── router ──> choices, weights          router <── gradient of the weights
      │     all-gather of the expert counts (small)
      ├── dispatch: all-to-all of rows ──> experts       x <── all-to-all of gradients ──┐
      │                                      │                                       experts
    y = sum of weight * result <── combine: all-to-all   gradient of y ── all-to-all ──┘

The backward of an all-to-all is the all-to-all with what was sent and what was received exchanged. How many
rows go where differs in every step: before the rows, every rank tells all others how many of its rows would
like to go to which expert. That is an all-gather of size * experts * k numbers, where an all-to-all (to each
rank the counts for its experts) would do to receive the rows. But with it everybody knows everything, and an
expert's capacity can be that of the whole batch (see routing.py): the result does not depend on how many
ranks the rows are on.

**Gradients.** Rows of all ranks come to an expert, and with them the gradients of all ranks' losses, added
up. The router is on every rank, and has the gradients of this rank's loss alone: ``DataParallel`` makes the
mean of them. So that both belong to one objective, the mean of the ranks' losses, experts get the mean as
well; with ``losses="sum"`` it is the sum of the ranks' losses, and the router's gradients are to be summed.
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
from unisono.parallel.routing import ExpertAssignment, assign_experts, balance_loss, choose, expert_counts
from unisono.parallel.split import Split


class Mixed(NamedTuple):
    """What a mixture of experts returns."""

    output: Tensor  # of the shape of the input
    balance_loss: Tensor  # to be added to the loss, times some 0.01
    dropped: int  # choices of this rank's rows for which there was no room
    load: Tensor  # (experts,): how many rows of all ranks chose each expert


class MixtureOfExperts(nn.Module):
    """A layer whose rows each go to ``top_k`` of the experts of all ranks.

    ``experts`` are those of this rank: modules that map (rows, features) to (rows, features), also for no
    rows. Ranks may have different numbers of them. The router is made alike on every rank, after the same
    ``torch.manual_seed``.

    ``capacity_factor``: an expert takes at most so many times its fair share of the rows of all ranks; a
    choice beyond is dropped, and adds zero to the output. None: there is room for all. ``balance_over``: the
    balance loss is that of the rows of all ranks ("group": of the whole batch, so that a rank may well use
    one expert alone), or of this rank's ("rank"). Both cost no communication: over the group, the loss is
    this rank's part of it, and the mean (or sum, as ``losses`` says) over the ranks is the loss of the whole
    batch.
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
        held = self.group.all_gather_object(len(experts))
        self.starts = list(accumulate(held, initial=0))  # rank r has experts starts[r] to starts[r + 1] - 1
        self.count = self.starts[-1]
        self._require_possible()
        first = self.starts[self.group.rank]
        self.experts = nn.ModuleDict({str(first + number): expert for number, expert in enumerate(experts)})
        for parameter in self.experts.parameters():
            parameter.is_expert = True
        self.different = {"experts": self.group}  # full_state_dict() reads it
        self.router = nn.Linear(features, self.count, bias=False, device=device, dtype=dtype)
        facts = {"features": features, "top_k": top_k, "capacity_factor": capacity_factor, "losses": losses}
        require_same(self.group, f"MixtureOfExperts {name}", facts, [self.router.weight])

    @classmethod
    def of(cls, features: int, count: int, make: Callable[[], nn.Module], group: Any, **options: Any) -> Any:
        """Make ``count`` experts alike on every rank, one after the other, and keep this rank's share of them."""
        group = group_of(group)
        mine = Split(group, 0, count).mine
        made = ((number, make()) for number in range(count))
        return cls(features, [expert for number, expert in made if number in mine], group, **options)

    def forward(self, x: Tensor) -> Mixed:
        """Send the rows to their experts and add up what comes back. All ranks call this, with any number of rows."""
        if x.shape[-1] != self.features:
            raise UsageError(f"{self._who()}: an input with {x.shape[-1]} features; expected {self.features}")
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
        """Return the parameters that only this rank has: not to be averaged with those of other ranks."""
        return list(self.experts.parameters())

    def _at_experts(self, rows: Tensor, assignment: ExpertAssignment) -> Tensor:
        """Send rows, sorted by expert, there and back."""
        by_rank = [assignment.sent[first:last].sum(dim=0).tolist() for first, last in pairwise(self.starts)]
        in_rows = [amounts[self.group.rank] for amounts in by_rank]
        out_rows = by_rank[self.group.rank]
        # Rows of one expert come from many ranks. Experts get the gradients of all ranks' losses (see above).
        scale = self.group.size if self.losses == "mean" else 1
        arrived = self._exchange(rows, in_rows, out_rows, scale, "dispatch")
        mine = assignment.sent[
            self.starts[self.group.rank] : self.starts[self.group.rank + 1]
        ]  # (own experts, ranks)
        owner = torch.arange(len(mine)).repeat(self.group.size).repeat_interleave(mine.t().flatten())
        order = owner.argsort(stable=True).to(rows.device)
        parts = arrived[order].split(mine.sum(dim=1).tolist())
        done = [self._ask(number, part) for number, part in zip(self.experts, parts, strict=True)]
        results = torch.cat(done)[order.argsort()] if done else arrived
        return self._exchange(results, out_rows, in_rows, 1 / scale, "combine")

    def _ask(self, number: str, rows: Tensor) -> Tensor:
        found = self.experts[number](rows)  # also for no rows, so that it has a gradient in every step
        if found.shape != rows.shape:
            raise UsageError(
                f"{self._who()}: expert {number} makes {tuple(found.shape)} of {tuple(rows.shape)}; expected the same"
            )
        return found

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

    def _who(self) -> str:
        return f"MixtureOfExperts {self.name}, rank {self.group.rank}"

    def _require_possible(self) -> None:
        if not 1 <= self.top_k <= self.count:
            raise UsageError(f"{self._who()}: top_k={self.top_k}; expected 1 to {self.count}, the number of experts")
        if self.capacity_factor is not None and not self.capacity_factor > 0:
            raise UsageError(
                f"{self._who()}: capacity_factor={self.capacity_factor}; expected None or a number above 0"
            )
        for word, value, allowed in (
            ("balance_over", self.balance_over, ("group", "rank")), ("losses", self.losses, ("mean", "sum")),
        ):  # fmt: skip
            if value not in allowed:
                raise UsageError(f"{self._who()}: {word}={value!r}; expected {allowed[0]!r} or {allowed[1]!r}")


def is_expert(parameter: Any) -> bool:
    """Whether a parameter is one of an expert, and so on one rank only: what ``DataParallel`` must leave alone."""
    return getattr(parameter, "is_expert", False)
