"""Units: the parts of a model whose parameters are gathered and reduced together.

::

    model ─┬─ embedding     ┐
           ├─ blocks ─┬─ 0  │ unit "blocks.0"
           │          ├─ 1  │ unit "blocks.1"
           │          └─ 2  │ unit "blocks.2"
           └─ head          ┘ parameters in no unit, or in two of them: the unit "root"

A *unit* is a module and the parameters that belong to it. The parameters of a unit are whole while its module runs,
and one collective moves all of them, so the units determine both the memory and the number of collectives of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from unisono.errors import UsageError
from unisono.message import listed
from unisono.parallel.zero_messages import NOT_A_PART

ROOT = "root"
Units = Iterable[nn.Module] | Callable[[str, nn.Module], bool] | None


@dataclass
class Member:
    """A parameter of a unit with all its names: a tied parameter has several."""

    parameter: Any
    names: list[str]


@dataclass
class Part:
    """A unit before memory is allocated: its module, the enclosing units and its parameters."""

    name: str
    module: nn.Module
    around: tuple[str, ...]  # the names of the units that enclose its module, outermost first
    members: list[Member] = field(default_factory=list)


def find_parts(module: nn.Module, units: Units = None) -> list[Part]:
    """Divide a model into units: the root first, then the others in the order in which they are registered.

    ``units``: the modules, or a function of the name and the module that returns whether it is a unit; by default the
    children of the largest ``ModuleList`` or ``Sequential``. Units may be nested.
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
    """Return the names of the units, outer units before inner ones."""
    if units is None:
        chosen = set(_children_of_largest_list(module))
    elif callable(units):
        chosen = {each for name, each in module.named_modules() if name and units(name, each)}
    else:
        chosen = set(units)
        unknown = chosen - set(module.modules())
        if unknown:
            kinds = listed(sorted(type(each).__name__ for each in unknown))
            raise UsageError(NOT_A_PART(kinds=kinds, module=type(module).__name__))
    return [name for name, each in module.named_modules() if name and each in chosen]


def _children_of_largest_list(module: nn.Module) -> list[nn.Module]:
    lists = [each for each in module.modules() if isinstance(each, nn.ModuleList | nn.Sequential)]
    if not lists:
        return []
    largest = max(lists, key=lambda each: sum(parameter.numel() for parameter in each.parameters()))
    return list(largest.children())


def _members(module: nn.Module) -> list[Member]:
    """Return every parameter once, with all its names."""
    members: dict[int, Member] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        members.setdefault(id(parameter), Member(parameter, [])).names.append(name)
    return list(members.values())


def _home(parameter_name: str, unit_names: list[str]) -> str:
    """Return the innermost unit that encloses a parameter."""
    around = [name for name in unit_names if _is_inside(parameter_name, name)]
    return max(around, key=len, default=ROOT)


def _is_inside(name: str, unit_name: str) -> bool:
    return name.startswith(unit_name + ".")
