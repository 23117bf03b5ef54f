"""Units: the parts of a model whose parameters travel together.

::

    model ─┬─ embedding     ┐
           ├─ blocks ─┬─ 0  │ unit "blocks.0"
           │          ├─ 1  │ unit "blocks.1"
           │          └─ 2  │ unit "blocks.2"
           └─ head          ┘ what is in no unit, or used in two of them: the unit "root"

A *unit* is a module and the parameters that belong to it. A unit is whole while its module runs, so a unit is
the grain of memory; it is sent in one piece, so it is also the grain of communication.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from unisono.errors import UsageError

ROOT = "root"
Units = Iterable[nn.Module] | Callable[[str, nn.Module], bool] | None


@dataclass
class Member:
    """A parameter of a unit, under all of its names: a tied one has several."""

    parameter: Any
    names: list[str]


@dataclass
class Part:
    """A unit before it has any memory: its module, the units around it, its parameters."""

    name: str
    module: nn.Module
    around: tuple[str, ...]  # the names of the units that its module is inside of, outermost first
    members: list[Member] = field(default_factory=list)


def find_parts(module: nn.Module, units: Units = None) -> list[Part]:
    """Divide a model: the root first, then its units in the order in which they are registered.

    ``units`` are the modules themselves, or a function of a module's name and the module that says whether it is one;
    by default, the children of the largest ``ModuleList`` or ``Sequential``. Units may lie inside of each other.
    """
    names = _chosen_names(module, units)
    modules = dict(module.named_modules())
    parts = {ROOT: Part(ROOT, module, ())}
    for name in names:
        around = (ROOT, *(other for other in names if _is_inside(name, other)))
        parts[name] = Part(name, modules[name], around)
    for member in _members(module):
        homes = {_home(name, names) for name in member.names}
        parts[homes.pop() if len(homes) == 1 else ROOT].members.append(member)
    return [part for part in parts.values() if part.members or part.name == ROOT]


def _chosen_names(module: nn.Module, units: Units) -> list[str]:
    """Return the names of the units, outer ones before those inside of them."""
    if units is None:
        wanted = set(_children_of_largest_list(module))
    elif callable(units):
        wanted = {each for name, each in module.named_modules() if name and units(name, each)}
    else:
        wanted = set(units)
        strangers = wanted - set(module.modules())
        if strangers:
            kinds = ", ".join(sorted(type(each).__name__ for each in strangers))
            raise UsageError(f"units: {kinds} is no part of the {type(module).__name__} that is to be sharded")
    return [name for name, each in module.named_modules() if name and each in wanted]


def _children_of_largest_list(module: nn.Module) -> list[nn.Module]:
    lists = [each for each in module.modules() if isinstance(each, nn.ModuleList | nn.Sequential)]
    if not lists:
        return []
    largest = max(lists, key=lambda each: sum(parameter.numel() for parameter in each.parameters()))
    return list(largest.children())


def _members(module: nn.Module) -> list[Member]:
    """Return every parameter once."""
    found: dict[int, Member] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        found.setdefault(id(parameter), Member(parameter, [])).names.append(name)
    return list(found.values())


def _home(parameter_name: str, unit_names: list[str]) -> str:
    """Return the innermost unit around a parameter."""
    around = [name for name in unit_names if _is_inside(parameter_name, name)]
    return max(around, key=len, default=ROOT)


def _is_inside(name: str, unit_name: str) -> bool:
    return name.startswith(unit_name + ".")
