"""Buckets: gradients that travel together, in one tensor.

*Packed* bucket: many short gradients, one after the other in a flat tensor. Once it is sent,
``parameter.grad`` is a view of that tensor. Where a gradient was accumulated in place
(``zero_grad(set_to_none=False)``) nothing is copied; where autograd has made a new one it is copied into the
view, and the view put in its place.

*Single* bucket: one long gradient. It is sent from where autograd has put it, without any copy.

Buckets are filled in the reverse order of the parameters, roughly the order in which gradients arrive.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from unisono.errors import UsageError
from unisono.parallel.checks import first_nan


class Bucket(ABC):
    """Gradients that travel together."""

    def __init__(self, members: list[tuple[str, Tensor]]) -> None:
        self.names = [name for name, _ in members]
        self.parameters = [parameter for _, parameter in members]
        self.name = self.names[0] if len(members) == 1 else f"{self.names[0]}..{self.names[-1]}"
        self.dtype: torch.dtype = self.parameters[0].dtype
        self.bytes = sum(parameter.numel() * parameter.element_size() for parameter in self.parameters)
        self.codec: Any = None
        self.feedback: Any = None
        self.pending: set[str] = set(self.names)  # whose gradients have not come yet in this backward pass
        self.absent: list[tuple[str, Tensor, Tensor]] = []  # name, parameter and place of those without a gradient

    @abstractmethod
    def pack(self) -> Tensor:
        """Return the gradients as one flat tensor. What has no gradient is zero there, and is noted in ``absent``."""

    def encode(self, codec: Any, error_feedback: Callable[[Any], Any] | None) -> None:
        """Choose how it is written on the wire: by a codec, or by what a function makes of this bucket."""
        if callable(codec):
            self.codec = codec(self)
        elif self.dtype == torch.float32:  # what codecs are for
            self.codec = codec
        if self.codec is not None and error_feedback is not None:
            self.feedback = error_feedback(self.codec)

    def reset(self) -> None:
        """Get ready for the next backward pass."""
        self.pending.update(self.names)
        self.absent.clear()

    def nan(self, flat: Tensor) -> str | None:
        """Return the name of the first parameter whose gradient has a NaN; a sum tells whether there may be one."""
        if not flat.sum().isnan():
            return None
        return first_nan(zip(self.names, (parameter.grad for parameter in self.parameters), strict=True))

    def _dense(self, name: str, gradient: Tensor) -> Tensor:
        if gradient.layout != torch.strided:
            raise UsageError(
                f"DataParallel: the gradient of {name!r} is {gradient.layout}; expected a dense one: make the "
                "embedding with sparse=False"
            )
        return gradient


class PackedBucket(Bucket):
    """Several gradients in one flat tensor."""

    def __init__(self, members: list[tuple[str, Tensor]]) -> None:
        super().__init__(members)
        lengths = [parameter.numel() for parameter in self.parameters]
        self.flat = torch.zeros(sum(lengths), dtype=self.dtype, device=self.parameters[0].device)
        self.views = [
            part.view(parameter.shape)
            for part, parameter in zip(self.flat.split(lengths), self.parameters, strict=True)
        ]

    def pack(self) -> Tensor:
        """Copy into the flat tensor what is not there already."""
        views, gradients = [], []
        for name, parameter, view in zip(self.names, self.parameters, self.views, strict=True):
            gradient = parameter.grad
            if gradient is view:
                continue
            if gradient is None:
                view.zero_()
                self.absent.append((name, parameter, view))
            else:
                views.append(view)
                gradients.append(self._dense(name, gradient))
                parameter.grad = view
        if views:
            torch._foreach_copy_(views, gradients)
        return self.flat


class SingleBucket(Bucket):
    """One gradient, sent from where it is.

    The last gradient is kept until the next one is there; then its memory serves gradients that come later.
    Were all gradients freed at once by ``zero_grad``, the C library would hand their memory back to the
    system, which clears it page by page when it is used again: a tenth of a step, and more.
    """

    kept: Tensor | None = None

    def pack(self) -> Tensor:
        """Return the gradient itself; or a copy, which takes its place, where others look at the same memory."""
        (name,), (parameter,) = self.names, self.parameters
        gradient = parameter.grad
        if gradient is None:
            gradient = torch.zeros_like(parameter, memory_format=torch.contiguous_format)
            self.absent.append((name, parameter, gradient))
        elif not (self._dense(name, gradient).is_contiguous() and _is_ours_alone(gradient)):
            gradient = parameter.grad = gradient.clone(memory_format=torch.contiguous_format)
        self.kept = gradient
        return gradient.view(-1)


def _is_ours_alone(gradient: Tensor) -> bool:
    """Whether no other tensor lies in the same memory.

    Autograd may hand out a view of a gradient that it still works with: of ``weight.view(-1) + x``, the
    gradients of the weight and of x are the same numbers in the same place.
    """
    return bool(torch._C._storage_Use_Count(gradient.untyped_storage()._cdata) == 2)  # the tensor's, and this one


def fill_buckets(parameters: Iterable[tuple[str, Tensor]], bucket_bytes: int) -> list[Bucket]:
    """Put the parameters of a module, in its order, into buckets; return those in the order of sending.

    A parameter of ``bucket_bytes`` or more is a bucket by itself; shorter ones of the same type share buckets
    of up to that size.
    """
    made: list[tuple[int, Bucket]] = []  # with the place of its last member
    open_ones: dict[tuple[torch.dtype, torch.device], list[tuple[str, Tensor]]] = {}
    places: dict[str, int] = {}
    for place, (name, parameter) in enumerate(reversed(list(parameters))):
        places[name] = place
        size = parameter.numel() * parameter.element_size()
        if size >= bucket_bytes:
            made.append((place, SingleBucket([(name, parameter)])))
            continue
        key = (parameter.dtype, parameter.device)
        members = open_ones.setdefault(key, [])
        if sum(member.numel() * member.element_size() for _, member in members) + size > bucket_bytes:
            made.append((places[members[-1][0]], PackedBucket(members)))
            members = open_ones[key] = []
        members.append((name, parameter))
    made += [(places[members[-1][0]], PackedBucket(members)) for members in open_ones.values()]
    return [bucket for _, bucket in sorted(made, key=lambda pair: pair[0])]
