"""Buckets: gradients that are reduced together, as one tensor.

A *packed* bucket holds many short gradients, one after the other in a flat tensor. Once it is packed,
``parameter.grad`` is a view of that tensor. A gradient that was accumulated in place
(``zero_grad(set_to_none=False)``) is not copied; a new gradient of autograd is copied into the view, which then
replaces it.

A *single* bucket holds one long gradient, which is sent from autograd's memory without a copy.

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
from unisono.parallel.group import Group
from unisono.parallel.messages import SPARSE_GRADIENT


class Bucket(ABC):
    """Gradients that are reduced together."""

    def __init__(self, members: list[tuple[str, Tensor]]) -> None:
        self.names = [name for name, _ in members]
        self.parameters = [parameter for _, parameter in members]
        self.name = self.names[0] if len(members) == 1 else f"{self.names[0]}..{self.names[-1]}"
        self.dtype: torch.dtype = self.parameters[0].dtype
        self.bytes = sum(parameter.numel() * parameter.element_size() for parameter in self.parameters)
        self.codec: Any = None
        self.feedback: Any = None
        self.pending: set[str] = set(self.names)  # parameters whose gradient is not ready in this backward pass
        self.absent: list[tuple[str, Tensor, Tensor]] = []  # parameters without a gradient: name, parameter, view

    @abstractmethod
    def pack(self) -> Tensor:
        """Return the gradients as one flat tensor; add parameters without a gradient, as zeros, to ``absent``."""

    def encode(self, codec: Any, error_feedback: Callable[[Any], Any] | None, group: Group) -> None:
        """Set the codec: the given one, or the result of a function of this bucket. The group decides on auto."""
        if callable(codec):
            self.codec = codec(self)
        elif self.dtype == torch.float32:  # codecs encode float32 only
            self.codec = codec
        self.codec = group.choose_codec(self.codec, "all_reduce", self.bytes)
        if self.codec is not None and error_feedback is not None:
            self.feedback = error_feedback(self.codec)

    def reset(self) -> None:
        """Prepare for the next backward pass."""
        self.pending.update(self.names)
        self.absent.clear()

    def nan(self, flat: Tensor) -> str | None:
        """Return the name of the first parameter whose gradient has a NaN; the sum shows whether there may be one."""
        if not flat.sum().isnan():
            return None
        return first_nan(zip(self.names, (parameter.grad for parameter in self.parameters), strict=True))

    def _dense(self, name: str, gradient: Tensor) -> Tensor:
        if gradient.layout != torch.strided:
            raise UsageError(SPARSE_GRADIENT(location="DataParallel", name=name, layout=gradient.layout))
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
        """Copy the gradients that are not views of the flat tensor into it."""
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
    """One gradient, sent without a copy.

    The previous gradient is kept until the next one is ready, so that its memory is reused for later gradients. If
    ``zero_grad`` freed all gradients at once, the C library would return their memory to the system, which clears
    every page at its next use: 10 % of a step or more.
    """

    previous: Tensor | None = None

    def pack(self) -> Tensor:
        """Return the gradient itself, or a copy that replaces it where other tensors share its memory."""
        (name,), (parameter,) = self.names, self.parameters
        gradient = parameter.grad
        if gradient is None:
            gradient = torch.zeros_like(parameter, memory_format=torch.contiguous_format)
            self.absent.append((name, parameter, gradient))
        elif not (self._dense(name, gradient).is_contiguous() and _is_unshared(gradient)):
            gradient = parameter.grad = gradient.clone(memory_format=torch.contiguous_format)
        self.previous = gradient
        return gradient.view(-1)


def _is_unshared(gradient: Tensor) -> bool:
    """Return whether no other tensor shares the memory of a gradient.

    Autograd may return a view of a gradient that it still uses: in ``weight.view(-1) + x``, the gradients of the
    weight and of x share their memory.
    """
    return bool(torch._C._storage_Use_Count(gradient.untyped_storage()._cdata) == 2)  # the tensor, and this call


def fill_buckets(parameters: Iterable[tuple[str, Tensor]], bucket_bytes: int) -> list[Bucket]:
    """Put the parameters of a module, in its order, into buckets; return the buckets in the order of sending.

    A parameter of ``bucket_bytes`` or more gets a separate bucket; shorter ones of the same dtype share buckets of up
    to that size.
    """
    filled: list[tuple[int, Bucket]] = []  # each with the position of its last member
    open_members: dict[tuple[torch.dtype, torch.device], list[tuple[str, Tensor]]] = {}
    positions: dict[str, int] = {}
    for position, (name, parameter) in enumerate(reversed(list(parameters))):
        positions[name] = position
        size = parameter.numel() * parameter.element_size()
        if size >= bucket_bytes:
            filled.append((position, SingleBucket([(name, parameter)])))
            continue
        key = (parameter.dtype, parameter.device)
        members = open_members.setdefault(key, [])
        if sum(member.numel() * member.element_size() for _, member in members) + size > bucket_bytes:
            filled.append((positions[members[-1][0]], PackedBucket(members)))
            members = open_members[key] = []
        members.append((name, parameter))
    filled += [(positions[members[-1][0]], PackedBucket(members)) for members in open_members.values()]
    return [bucket for _, bucket in sorted(filled, key=lambda pair: pair[0])]
