"""What a module consists of when it is wrapped, and whether that is still so.

A strategy knows the parameters that it found at the start. A parameter that is added or put in another's place later
would train on each rank by itself, without a word.
"""

from __future__ import annotations

from operator import is_not

from torch import nn

from unisono.errors import UsageError


class Structure:
    """The parameters of a module and of all modules inside it, by identity."""

    def __init__(self, module: nn.Module, who: str) -> None:
        self.module, self.who = module, who
        self.parameters = dict(module.named_parameters(remove_duplicate=False))
        self._look()

    def _look(self) -> None:
        tables = [table for each in self.module.modules() for table in (each._parameters, each._modules)]
        self.tables = [(table, list(table.values())) for table in tables]

    def check(self) -> None:
        """Raise if a parameter was added, removed or replaced since the module was wrapped."""
        for table, expected in self.tables:
            if len(table) != len(expected) or any(map(is_not, table.values(), expected)):
                self._compare()
                self._look()  # other modules, but the same parameters
                return

    def _compare(self) -> None:
        now = dict(self.module.named_parameters(remove_duplicate=False))
        for name in [*self.parameters, *now]:
            before, after = self.parameters.get(name), now.get(name)
            if before is after:
                continue
            what = "added to" if before is None else "removed from" if after is None else "replaced in"
            raise UsageError(
                f"{self.who}: parameter {name!r} was {what} the module after it was wrapped, and would not be "
                "averaged over the ranks; change the module before it is wrapped, or change the values in place"
            )
