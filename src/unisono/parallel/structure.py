"""Checks that a wrapped module still consists of the same parameters.

A strategy handles the parameters that the module has when it is wrapped. A parameter that is added or replaced later
would be trained on each rank separately, without an error.
"""

from __future__ import annotations

from operator import is_not

from torch import nn

from unisono.errors import UsageError
from unisono.parallel.messages import PARAMETER_ADDED, PARAMETER_REMOVED, PARAMETER_REPLACED


class Structure:
    """The parameters of a module and of all modules inside it, by identity."""

    def __init__(self, module: nn.Module, location: str) -> None:
        self.module, self.location = module, location
        self.parameters = dict(module.named_parameters(remove_duplicate=False))
        self._remember()

    def _remember(self) -> None:
        tables = [table for each in self.module.modules() for table in (each._parameters, each._modules)]
        self.tables = [(table, list(table.values())) for table in tables]

    def check(self) -> None:
        """Raise if a parameter was added, removed or replaced since the module was wrapped."""
        for table, expected in self.tables:
            if len(table) != len(expected) or any(map(is_not, table.values(), expected)):
                self._compare()
                self._remember()  # modules were replaced, but not parameters
                return

    def _compare(self) -> None:
        now = dict(self.module.named_parameters(remove_duplicate=False))
        for name in [*self.parameters, *now]:
            before, after = self.parameters.get(name), now.get(name)
            if before is after:
                continue
            template = PARAMETER_REPLACED
            if before is None or after is None:
                template = PARAMETER_ADDED if before is None else PARAMETER_REMOVED
            raise UsageError(template(location=self.location, name=name))
