"""Stage 3: finds a computation with a parameter that is absent, outside of the forward of its unit.

Without this the result is NaN, and torch raises in the backward pass ("modified by an inplace operation"), where
nothing tells which parameter it is. All torch functions are watched during the first forward pass that records
gradients; watching takes time, and a model rarely uses other parameters in later passes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from unisono.errors import UsageError
from unisono.parallel.unit_buffers import ResidentUnit
from unisono.parallel.unit_hooks import tensors_in


class AbsentUses(TorchFunctionMode):
    """Raises, within its block, where an absent parameter is an argument of what autograd records."""

    def __init__(self, residents: Iterable[ResidentUnit], who: str) -> None:
        super().__init__()
        self.who = who
        self.owners = {
            id(parameter): (resident, name)
            for resident in residents
            for parameter, name in zip(resident.parameters, resident.parameter_names, strict=True)
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function, and look at its arguments if its result will be differentiated."""
        result = func(*args, **(kwargs or {}))
        if torch.is_grad_enabled() and any(each.grad_fn is not None for each in tensors_in(result)):
            for each in tensors_in((args, kwargs)):
                resident, name = self.owners.get(id(each), (None, ""))
                if resident is not None and not resident.is_whole:
                    raise UsageError(
                        f"{self.who}: parameter {name!r} was used outside of the forward of its unit, "
                        f"{resident.name!r}, where it is not whole (stage 3); use it only inside, give as a unit the "
                        "module that uses it (units=...), or use stage 2"
                    )
        return result
