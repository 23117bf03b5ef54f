"""Stage 3: detects computations that use an absent parameter, outside the forward of its unit.

Without this check the result would be NaN, and torch would raise in the backward pass ("modified by an inplace
operation") without naming the parameter. All torch functions are watched during the first forward pass that records
gradients only: watching takes time, and a model rarely uses other parameters in later passes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from unisono.errors import UsageError
from unisono.parallel.nested import tensors_in
from unisono.parallel.unit_buffers import ResidentUnit
from unisono.parallel.zero_messages import USED_OUTSIDE_UNIT


class AbsentUses(TorchFunctionMode):
    """Raises, within its block, when autograd records a function of an absent parameter."""

    def __init__(self, residents: Iterable[ResidentUnit]) -> None:
        super().__init__()
        self.owners = {
            id(parameter): (resident, name)
            for resident in residents
            for parameter, name in zip(resident.parameters, resident.parameter_names, strict=True)
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function; check its arguments if its result will be differentiated."""
        result = func(*args, **(kwargs or {}))
        if torch.is_grad_enabled() and any(each.grad_fn is not None for each in tensors_in(result)):
            for each in tensors_in((args, kwargs)):
                resident, name = self.owners.get(id(each), (None, ""))
                if resident is not None and not resident.is_whole:
                    raise UsageError(USED_OUTSIDE_UNIT(name=name, unit=resident.name))
        return result
